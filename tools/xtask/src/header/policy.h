/* A policy says what is allowed, as one line of text or as a struct:
 *
 *     LIMIT "/" PERIOD [ "burst" N ] [ "algo" NAME ] [ options ]
 *
 *     100/s        3/min burst 3 algo interval anchor first       250000000/s burst 1mb unit bytes
 *     1000/day     10/100ms burst 20 init 0       120/60s algo sliding-window segments 6 mode strict
 *
 * PERIOD is `s min h day` or a number with `ns us ms s min h d`. Without `algo` it is gcra.
@ALGORITHM_NAMES@
 *
 * Options, in any order, each with the algorithms that have it:
 *
@ALGORITHM_OPTIONS@
 *
 * Windows begin at multiples of their length since time 0 of the clock, unless the policy says `anchor first`. The clocks of limiters and
 * tables count UTC, so a new window of `1000/day algo fixed-window` begins at midnight UTC.
 *
 * The most that a policy admits in any window of one period:
 *
@ALGORITHM_BOUNDS@
 */

/* A buffer of this size takes any policy's text. */
#define TOLLBAR_POLICY_TEXT_MAX 256

@ALGORITHM_NUMBERS@

