/* What a process and the driver share: a file of 64-bit words, mapped by both.
 *
 *     word 0   the process has opened the table       word 1   it may begin       word 2   it is to end
 *     word 8 + 3k   calls begun on key k               9 + 3k   admitted          10 + 3k   refused
 *
 * A call is counted as begun before it is made and as answered after it, so that what a killed process leaves says which call it
 * died in: the one that is begun and not answered, at most one in all. */
enum { READY, GO, STOP, FIRST = 8, EACH = 3, KEYS = 4, WORDS = FIRST + EACH * KEYS };
