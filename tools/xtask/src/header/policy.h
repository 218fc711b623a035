/* A policy says what is allowed, as one line of text or as a struct:
 *
 *     LIMIT "/" PERIOD [ "burst" N ] [ "algo" NAME ] [ options ]
 *
 *     100/s        3/min burst 3 algo interval anchor first       250000000/s burst 1mb unit bytes
 *     1000/day     10/100ms burst 20 init 0       120/60s algo sliding-window segments 6 mode strict
 *
 * PERIOD is `s min h day` or a number with `ns us ms s min h d`. NAME is one of gcra (which it is
 * without `algo`; token-bucket and leaky-bucket are the same), interval, fixed-window,
 * weighted-window, sliding-window, sliding-log, pacer, warm-up. Options, in any order:
 *
 *     burst N                                gcra, interval, pacer, warm-up; LIMIT if not given
 *     init N, borrow                         gcra
 *     anchor first|epoch                     interval, fixed-window, sliding-window
 *     segments N, mode n|strict|interpolated sliding-window
 *     slack N                                pacer
 *     warm TIME, cold N                      warm-up
 *     count rejected                         fixed-window, sliding-log
 *     unit bytes|permits                     all; with bytes, sizes may carry kb mb gb kib mib gib
 *
 * Windows with `anchor epoch` (which they have unless `anchor first` is given) begin at multiples of their length since time 0 of the
 * clock. By the clocks of limiters and tables that is UTC: `1000/day algo fixed-window` begins anew at midnight UTC.
 *
 * The most that a policy admits in any window of one period:
 *
 *     gcra              burst + limit        sliding-log      limit
 *     interval          burst + limit        pacer            slack + limit + 1 (unit costs)
 *     fixed-window      2 * limit            warm-up          limit + 1 (unit costs)
 *     weighted-window   below 2 * limit      sliding-window   limit if strict, else 2 * limit
 */

/* A buffer of this size takes any policy's text. */
#define TOLLBAR_POLICY_TEXT_MAX 256

