/* What the holders of in_flight.py do, in each language: they acquire permits of the key "k" for
 * `LIMIT`, and each permit must find one of as many files that no other holder has locked. The
 * kernel takes a dead process's locks before it says that the process has ended, so a free permit
 * always means a free file. A holder keeps a file for half a millisecond, so files seldom change
 * hands while another looks at all of them; if it finds none on 20 rounds, there are more permits
 * than files. A holder ends with 0 when the file `stop` exists, with 3 if it found no file, and
 * with 4 if a ticket of its own is void. It says `held` once it has had its first permit. */
enum { LIMIT = 4, TRIES = 20 };
