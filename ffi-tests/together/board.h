/* The board, which a process and the driver share: a file of 64-bit words that both map.
 *
 *     word 0   the process has opened the table     word 1   it may begin     word 2   it must end
 *     word 8 + 3k   calls begun on key k               9 + 3k   admitted          10 + 3k   refused
 *
  * The process counts a call as begun before it makes the call, and as answered after it. So the
  * board of a killed
  * process says in which call it died: the one that has begun and has no answer. There is at most one. */
enum { READY, GO, STOP, FIRST = 8, EACH = 3, KEYS = 4, WORDS = FIRST + EACH * KEYS };
