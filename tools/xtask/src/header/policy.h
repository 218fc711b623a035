/* A policy says what is allowed, as one line of text or as a struct:
 *
 *     LIMIT "/" PERIOD [ "burst" N ] [ "algo" NAME ] [ options ] [ ";" the same again ]
 *
 *     100/s                                                   100 a second, all of them at once if need be
 *     100/s burst 20                                          100 a second, at most 20 of them at once
 *     10 per 2 minutes                                        words for 10/2min
 *     10/s; 1000/day                                          both rates hold
 *     3/min burst 3 algo interval anchor first                all three come back a minute after the first
 *     120/60s algo sliding-window segments 6 mode strict      no window of 60 s has more than 120
 *     10/100ms burst 20 init 0                                a fresh state is empty
 *     250000000/s burst 1mb unit bytes                        a permit is a byte
 *     100/s reserve low 20 high 0                             requests of class low leave 20 to others
 *     500/forever                                             a quota: no permit comes back
 *     1000/month zone Europe/Berlin                           a calendar
 *     100/week from sun
 *     100/min curve ln                                        more permits early in each minute
 *     100/min curve 0:0 50%:80% 100%:100%
 *     100/s burst 200 refill 0:50% 50%:100%                   an emptier bucket refills more slowly
 *
 * PERIOD is `s min h day week`, or a number with one of these or with `ns us ms`. Longer names such
 * as `minute` and `minutes` mean the same, and `per` means `/`, so "10 per 2 minutes" is 10/2min
 * and "1/week" is 1/7day. `forever` makes a quota. `month`, `year`, `zone` and `from` make a
 * calendar. The only number that `month` and `year` take is 1. If none of these words is given, and
 * no `algo`, the algorithm is gcra.
@ALGORITHM_NAMES@
 *
 * Options, in any order, each with the algorithms that have it:
 *
@ALGORITHM_OPTIONS@
 *
 * Lists. Two policies joined by `;` are a list. "10/s; 1000/day" admits a request if both policies
 * do. An admission charges both, and a refusal charges neither. The answer has the longest wait and
 * the fewest permits left, and `bound` is the index of the policy that decided it. A list is one
 * policy in every call, with one state word, so one compare-and-swap charges both.
 *
 *   - Both must be gcra without `init`, `borrow` and `ban`, and of one unit.
 *   - The word counts time in steps that divide each policy's time per permit: 10 ms for "10/s; 1000/day". The list
 *     never admits a request that one of its policies would refuse. A bucket that has been full counts from the end
 *     of the running step, so a permit may come back up to a step later than under the policy alone.
 *   - A word with too few bits for steps of half a permit's time, as for "100/s; 1000000/day", makes the list an
 *     error, TOLLBAR_E_LIST. Then make a limiter or a table's policy of each of the two, and use tollbar_take_many.
 *
 * Curves. A curve says how early in each slice of one period its permits come, and exactly `limit` come in a slice.
 * Slices are aligned to time 0. `ln` and `log2` follow ln(1 + (e - 1)t) and log2(1 + t). `front` gives half at the
 * beginning and the rest evenly. `step` gives a quarter at the beginning of each quarter. Up to 64 knots make another
 * curve: TIME:SHARE in percents of the slice and of the limit, with at most two decimals. tollbar_policy_spec_curve
 * makes the knots of a function.
 *
 * Bands. Permits of level-refill come back at a rate that depends on the level: up to 4 bands
 * LEVEL:RATE, in whole percents of the burst and of the policy's rate.
 *
 * Windows begin at multiples of their length since time 0 of the clock, unless the policy says
 * `anchor first`. The clocks of limiters and tables count UTC, so a new window of
 * `1000/day algo fixed-window` begins at midnight UTC.
 *
 * Calendars. The windows are the days, weeks, months or years of a zone. So a calendar needs
 * TOLLBAR_CLOCK_WALL, and no cell can have one. A zone is one of
 *
 *   - UTC;
 *   - a rule as in the variable TZ (`CET-1CEST,M3.5.0,M10.5.0/3`);
 *   - a name. The call that reads the text takes the rule from the system's zone data (/usr/share/zoneinfo), and
 *     refuses a name whose future is not one rule;
 *   - `RULE until UNIX_SECONDS RULE`, a zone whose rule changes once.
 *
 * The policy holds the rule and not the name, so processes that share a table agree. A later change
 * of the system's zone data changes no limit: read the text again and call
 * tollbar_table_set_policy.
 *
 * In any interval t a token bucket admits at most burst + rate * t. If limit / gcd(limit, period in
 * nanoseconds) is above 7, the clock is rounded, and a request may pass less than a nanosecond
 * early. An interval may then see a part of a permit more than that, and always less than one
 * permit: up to 0.97, at rates above 1.5 million a second.
 *
 * The most that a policy admits in any window of one period:
 *
@ALGORITHM_BOUNDS@
 */

/* A buffer of this size takes any policy's text. */
#define TOLLBAR_POLICY_TEXT_MAX 1024

@ALGORITHM_NUMBERS@

