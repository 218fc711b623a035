/* tollbar.h: exact, lock-free rate limiting.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 * Written by `cargo xtask header` from crates/tollbar-c/src; changes belong there.
 *
 * A limiter decides whether a request may pass. The shortest complete program:
 *
 *     #include <stdio.h>
 *     #include <tollbar.h>
 *
 *     int main(void) {
 *         tollbar_limiter *limiter;
 *         if (tollbar_limiter_from_text("100/s burst 20", &limiter, NULL) != 0)
 *             return 1;
 *         puts(tollbar_limiter_check(limiter, 1, NULL) == TOLLBAR_ALLOWED ? "passes" : "too many requests");
 *         tollbar_limiter_free(limiter);
 *         return 0;
 *     }
 *
 * Which layer to take. Each works without the others.
 *
 *     limiter    if you limit one thing in one process. It has any algorithm, a clock, waiting and counts.
 *     table      if you limit many keys, or if several processes share a limit. It is one block of memory that never grows.
 *     cell       if each of your structs has room for its own 64-bit state word.
 *     lease      if machines share a limit through Redis or Valkey (tollbar_redis.h, libtollbar-redis).
 *
 * Which call to take. A call for a key begins with tollbar_table_, the one for a limiter with
 * tollbar_limiter_.
 *
 *     may this request pass?                              tollbar_limiter_check, tollbar_table_check
 *     would it pass? (charges nothing)                    tollbar_limiter_peek, tollbar_table_peek
 *     many requests at once                               tollbar_limiter_check_many, tollbar_table_check_many
 *     several limits for one request, charged all or none tollbar_take_many
 *     wait until it may pass                              tollbar_limiter_wait, tollbar_table_wait
 *     when may it pass? (books; the caller waits)         tollbar_limiter_reserve, tollbar_table_reserve
 *     charge after the work                               tollbar_limiter_charge, tollbar_table_charge
 *     charge an estimate now, the real cost later         tollbar_table_take, tollbar_table_settle
 *     how many are open at one time                       tollbar_in_flight_acquire, tollbar_in_flight_release
 *     change a limit while it is in use                   tollbar_limiter_set_policy, tollbar_table_set_policy
 *     header fields and metrics                           tollbar_http_fields, tollbar_metrics
 *
 * Read sections 1 to 3 first: policies, clocks, and decisions in full, which every layer uses. Then
 * read limiters or tables. Each section after those is for one task. A banner says "Advanced" or
 * "Experimental" where a section is that. The last two sections are the version, and all results
 * and errors.
 *
 * Conventions
 *
 * [C1] 0 means go. A decision returns TOLLBAR_ALLOWED (0), TOLLBAR_DENIED (1), TOLLBAR_NEVER (2) or a negative error,
 *      so `if (tollbar_..._check(...)) refuse();` fails closed. "check" charges, "peek" and "validate" do not. A call
 *      that answers a question returns TOLLBAR_YES (1), TOLLBAR_NO (0) or a negative error. Every other int32_t call
 *      returns 0 or an error.
 * [C2] A call writes its outputs only if it succeeds. A decision succeeds with any verdict. An output may be NULL
 *      where the call says so. Four outputs are also written on failure:
 *        - the tollbar_policy_error of a text,
 *        - the column of tollbar_lease_client_new,
 *        - the length of a text, on TOLLBAR_E_BUFFER_TOO_SMALL,
 *        - the health from tollbar_table_validate and tollbar_table_repair, on TOLLBAR_E_SLOTS_INVALID.
 * [C3] Times are nanoseconds of one clock, counted from that clock's zero. A call that ends in _at uses the caller's
 *      time, and the others read a clock. If the time goes back between calls or threads, the limit admits no more
 *      than before. Durations are nanoseconds too, except those whose names end in _ms. Each policy has a last time,
 *      2^61 - 2 ns (73 years) for all but the fastest policies (tollbar_policy_spec_last_time). At later times,
 *      UINT64_MAX among them, every call refuses every cost above 0. All bounds hold in the times that the calls use.
 *      Windows and logs count a call whose time is before their newest admission at the time of that admission: after
 *      a step back a strict sliding window or a sliding log holds its bound in these times. If the times lag behind
 *      true time by up to s (TOLLBAR_CLOCK_COARSE: 1 to 10 ms), a window of true time may see rate * s permits more.
 * [C4] A NULL, misaligned or out-of-range argument is an error, never a crash. A pointer to memory that is not what
 *      the call expects is undefined behaviour.
 * [C5] Threads, processes and the kernel.
 *      Any number of threads may call at once with one object, on both sides of a fork. The exceptions:
 *        - No other call may use the object of _free, _close, _init_in, tollbar_table_repair, tollbar_table_set_hot_keys or
 *          tollbar_hierarchy_add.
 *        - One tollbar_lease_client belongs to one thread at a time. tollbar_lease_client_circuit and _stop are for all threads.
 *        - A tollbar_pacing serves one call at a time.
 *      No call locks. No decision allocates, sleeps or enters the kernel. The exceptions:
 *        - Every call reads the system's clock in a process's first millisecond. The first reading of a process, and of a child after a
 *          fork, asks for its time namespace.
 *        - A process allocates once for each of the first 4,096 policies that it meets in a table.
 *        - A thread's first decision under a policy of a table asks the system which of up to 32 processes live. A child's first
 *          decision after a fork asks for its process number and PID namespace.
 *        - tollbar_in_flight_acquire asks the system which owners live, as its section says.
 *      These calls may allocate, sleep or enter the kernel: those that make or end objects, tollbar_limiter_set_policy,
 *      tollbar_limiter_wait, tollbar_table_wait, tollbar_table_sync, tollbar_table_bytes, tollbar_table_top_refused, the
 *      tollbar_queue_ calls as their section says, the tollbar_lease_client_ and tollbar_schedule_ calls, and those that read a
 *      text with the name of a time zone.
 *      No call takes more than 16 KiB of stack, so threads with small stacks may make any of them.
 * [C6] A struct that starts with `struct_size` may grow. Initialise it with its _INIT macro. A library of another
 *      version reads and writes only the fields that both versions know. It refuses with TOLLBAR_E_RESERVED a field
 *      that it would have to ignore.
 * [C7] No call unwinds, aborts or prints. The numbers of results never change their meaning.
 * [C8] Arguments come in one order: self, policy, key, length, cost, now, output. A call that ends in _at is the
 *      plain call with `now_ns` before its output.
 *
 * Every name exists since 0.1.0, unless its text names another version. A name that will be removed
 * is marked deprecated in its text for at least one minor version, and only a major version removes
 * it. Experimental sections are not part of that promise: a program sees their names only if it
 * defines TOLLBAR_EXPERIMENTAL before it includes this header, and a minor version may change or
 * remove them.
 *
 * Costs: instructions of one call at the caller's time, unless a clock is named. Keys have 8 bytes,
 * and half of the table's slots are taken. Counted by callgrind with rustc 1.95.0 (59807616e 2026-04-14).
 *
 *     tollbar_cell_check_at                              57
 *     tollbar_limiter_check_at, allowed                  66
 *     tollbar_limiter_check_at, denied                   59
 *     tollbar_limiter_check, TSC                         85
 *     tollbar_limiter_check, credit                      68
 *     tollbar_limiter_check_at, credit                   72
 *     tollbar_table_check_at, known key                 168
 *     tollbar_limiter_check_at, two rates                84
 *     tollbar_table_check_at, known key, two rates      211
 *     tollbar_table_check_at, known key beside overrides  652
 *     tollbar_table_check_at, full decision             331
 *     tollbar_table_peek_at, known key                  188
 *     tollbar_table_peek_at, fresh key                  304
 *     tollbar_table_check_at, fresh key                 336
 *     tollbar_table_check_at, fresh key of a flood      367
 *     tollbar_table_check_at, hot key                   143
 *     tollbar_table_check_at, hot key, full decision    551
 *     tollbar_take_many_at, two known keys              364
 *     tollbar_table_check_many_at, a key of 32          165
 */

#ifndef TOLLBAR_H
#define TOLLBAR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. */
#define TOLLBAR_VERSION_MAJOR 0
#define TOLLBAR_VERSION_MINOR 1
#define TOLLBAR_VERSION_PATCH 0
#define TOLLBAR_VERSION_STRING "0.1.0"
#define TOLLBAR_VERSION                                                                              \
    ((TOLLBAR_VERSION_MAJOR << 16) | (TOLLBAR_VERSION_MINOR << 8) | TOLLBAR_VERSION_PATCH)

/* --------------------------------------------------------------------------------------------
 * 1. Policies
 * -------------------------------------------------------------------------------------------- */

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
 * NAME is one of gcra (also token-bucket, leaky-bucket), interval, fixed-window, weighted-window,
 * sliding-window, sliding-log, pacer, warm-up, quota, curve, level-refill, calendar.
 *
 * Options, in any order, each with the algorithms that have it:
 *
 *     burst N                      gcra, interval, pacer, warm-up, level-refill; LIMIT if not given
 *     algo NAME                    all; gcra if not given
 *     init N                       gcra; permits of a fresh state; the burst if not given, 0 with borrow
 *     borrow                       gcra; a bucket without debt lets any cost pass; later requests wait until that cost is refilled
 *     anchor first|epoch           interval, fixed-window, sliding-window; epoch if not given
 *     segments N                   sliding-window; 10 if not given
 *     mode n|strict|interpolated   sliding-window; n if not given
 *     slack N                      pacer; 0 if not given
 *     warm TIME                    warm-up; required
 *     cold N                       warm-up; 3 if not given
 *     ban TIME                     gcra; a key that is refused too often is denied everything for that time; not with init or borrow
 *     after N                      gcra; with ban: the N-th refusal bans, 1 if not given; the count starts again when the key's bucket is full
 *     curve SHAPE                  curve; `linear`, `ln`, `log2`, `front` or `step`, or knots TIME:SHARE such as 0:0 50%:80% 100%:100%; makes the policy one of curve
 *     refill BANDS                 level-refill; 1 to 4 bands LEVEL:RATE such as 0:50% 50%:100%; makes the policy one of level-refill
 *     count rejected               fixed-window, sliding-log; refused requests count too
 *     from DAY                     calendar; month: 1 to 31, the last day of shorter months; week: mon to sun; year: MM-DD; the first day if not given
 *     zone ZONE                    calendar; UTC, a name of the system's zone data or a rule as in TZ; UTC if not given
 *     unit bytes|permits           all; with bytes, sizes may carry kb mb gb kib mib gib
 *     reserve CLASS N ...          gcra, interval, fixed-window, weighted-window, quota; permits that a class of requests leaves to others, up to four classes; not with borrow
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
 *     gcra                         burst + limit
 *     gcra borrow                  burst + limit + the largest cost
 *     gcra ban 1h                  burst + limit
 *     interval                     burst + limit
 *     fixed-window                 2 * limit
 *     weighted-window              below 2 * limit
 *     sliding-window               2 * limit
 *     sliding-window mode strict   limit
 *     sliding-window mode interpolated below 2 * limit
 *     sliding-log                  limit
 *     pacer                        slack + limit + 1, if every cost is 1
 *     warm-up                      limit + 1, if every cost is 1
 *     quota                        limit, and no more until a reset
 *     curve                        2 * limit; exactly limit in a slice
 *     level-refill                 burst + limit
 *     calendar                     3 * limit; 2 * limit if no window is shorter than the mean
 */

/* A buffer of this size takes any policy's text. */
#define TOLLBAR_POLICY_TEXT_MAX 1024

/* The generic cell rate algorithm: a token bucket, and a leaky bucket as a meter. One word. */
#define TOLLBAR_ALGORITHM_GCRA 0u
/* All permits of a period come back at its end. One word. */
#define TOLLBAR_ALGORITHM_INTERVAL 1u
/* A counter for each window. One word. */
#define TOLLBAR_ALGORITHM_FIXED_WINDOW 2u
/* The previous window's count fades while the current one's grows. One word. */
#define TOLLBAR_ALGORITHM_WEIGHTED_WINDOW 3u
/* A ring of sub-windows. 8 bytes a segment. */
#define TOLLBAR_ALGORITHM_SLIDING_WINDOW 4u
/* The time of every admission, exact. 8 bytes a permit. */
#define TOLLBAR_ALGORITHM_SLIDING_LOG 5u
/* Evenly spaced departures. One word. */
#define TOLLBAR_ALGORITHM_PACER 6u
/* A rate that grows from cold to its limit. One word. */
#define TOLLBAR_ALGORITHM_WARM_UP 7u
/* A lifetime quota: LIMIT/forever, which no time refills. One word. */
#define TOLLBAR_ALGORITHM_QUOTA 8u
/* Permits come along a curve within each slice of one period. One word. */
#define TOLLBAR_ALGORITHM_CURVE 9u
/* A token bucket whose refill depends on how empty it is. One word. */
#define TOLLBAR_ALGORITHM_LEVEL_REFILL 10u
/* A counter for each day, week, month or year of a time zone. One word. */
#define TOLLBAR_ALGORITHM_CALENDAR 11u
/* The algorithms that lend without TOLLBAR_POLICY_BORROW (pacer, warm-up), each as the bit
 * 1u << TOLLBAR_ALGORITHM_NAME: a request may cost more permits than are left, and later
 * requests wait until that debt is paid. */
#define TOLLBAR_ALGORITHMS_LENDING 192u

/* Windows are aligned to time 0 of the clock. By the clocks of limiters and tables that is UTC. */
#define TOLLBAR_ANCHOR_EPOCH 0u

/* Windows are aligned to the first request of a fresh state. */
#define TOLLBAR_ANCHOR_FIRST 1u

/* Sliding window: the last `segments` segments count, the running one among them. */
#define TOLLBAR_MODE_N 0u

/* Sliding window: one more segment counts. Every window of a period then stays within the limit. */
#define TOLLBAR_MODE_STRICT 1u

/* Sliding window: one more segment counts, by the part of it that is still in the window. */
#define TOLLBAR_MODE_INTERPOLATED 2u

/* The period of a quota: no permit comes back. */
#define TOLLBAR_FOREVER UINT64_MAX

/* The period of a calendar with windows of a day. */
#define TOLLBAR_DAY UINT64_C(86400000000000)

/* The period of a calendar with windows of a week. */
#define TOLLBAR_WEEK UINT64_C(604800000000000)

/* The period of a calendar with windows of a month: the mean month of 400 years. */
#define TOLLBAR_MONTH UINT64_C(2629746000000000)

/* The period of a calendar with windows of a year: the mean year of 400 years. */
#define TOLLBAR_YEAR UINT64_C(31556952000000000)

/* A permit is a request, a call, a message. */
#define TOLLBAR_UNIT_PERMITS 0u

/* A permit is a byte. */
#define TOLLBAR_UNIT_BYTES 1u

/* gcra: a bucket without debt lets any cost pass, and later requests wait until that cost is
 * refilled. */
#define TOLLBAR_POLICY_BORROW 1u

/* fixed window, sliding log: refused requests count too. */
#define TOLLBAR_POLICY_COUNT_REJECTED 2u

/* gcra: a fresh state holds `init` permits. Without this flag it holds the burst, or nothing with
 * TOLLBAR_POLICY_BORROW. */
#define TOLLBAR_POLICY_HAS_INIT 4u

/* After a change of policy a limiter, or a key of a table, keeps the number of permits that it has
 * left, up to the new burst. No wait becomes longer than the new policy's refill, and the change
 * admits no request that was refused, with two exceptions: windows of one length keep the permits
 * used (tollbar_table_set_policy), and a key that has taken no permit of a curve is fresh. */
#define TOLLBAR_KEEP_COUNT 0

/* After a change of policy the limiter or key keeps its debt, as the time until that debt is paid.
 * To and from a quota, which has no such time, it keeps the number of permits used. */
#define TOLLBAR_KEEP_TIME 1

/* After a change of policy the limiter or key has a fresh state. */
#define TOLLBAR_KEEP_RESET 2

/* The most classes of a policy. */
#define TOLLBAR_CLASSES_MOST 4

/* The bytes of a class's name, with at least one 0 at the end. */
#define TOLLBAR_CLASS_NAME_SIZE 16

/* The values of a function that tollbar_policy_spec_samples takes as they are. */
#define TOLLBAR_CURVE_TIMES 40001

/* A compiled policy for cells: read-only, for any number of cells and threads. */
typedef struct tollbar_policy tollbar_policy;

/* A class of requests, and the permits that its requests leave to the others. */
typedef struct tollbar_class {
    /* The name: a letter, then letters, digits, `-` and `_`, and zeroes to the end. All zeroes: no
     * class. */
    char name[16];
    /* A request of the class passes only if so many permits are left after it. Below the burst. */
    uint64_t reserve;
} tollbar_class;

/* A policy as plain data. Start from TOLLBAR_POLICY_SPEC_INIT and set `limit`, `period_ns` and
 * `burst`; leave the options of other algorithms at 0. */
typedef struct tollbar_policy_spec {
    /* sizeof(tollbar_policy_spec), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* A TOLLBAR_ALGORITHM_ number. */
    uint32_t algorithm;
    /* Permits per period. 0 denies every request. */
    uint64_t limit;
    /* The period in nanoseconds, from 1 on. TOLLBAR_FOREVER for a quota. TOLLBAR_DAY, _WEEK,
     * _MONTH or _YEAR for a calendar. */
    uint64_t period_ns;
    /* The most permits that can be taken at once, at least 1. Windows and logs: equal to `limit`.
     * Pacer and warm-up: the largest cost. */
    uint64_t burst;
    /* gcra with TOLLBAR_POLICY_HAS_INIT: permits of a fresh state, at most `burst`. */
    uint64_t init;
    /* pacer: the number of departures that may leave at once after an idle time. */
    uint64_t slack;
    /* warm-up: nanoseconds from cold to warm. */
    uint64_t warm_up_ns;
    /* warm-up: the factor by which the rate is lower when cold, 1 to 1000. */
    uint32_t cold;
    /* sliding window: the number of segments, 1 to 1024. */
    uint32_t segments;
    /* sliding window: a TOLLBAR_MODE_ number. */
    uint32_t mode;
    /* interval, fixed window, sliding window: a TOLLBAR_ANCHOR_ number. */
    uint32_t anchor;
    /* A TOLLBAR_UNIT_ number. It changes the text form only. */
    uint32_t unit;
    /* TOLLBAR_POLICY_ flags. */
    uint32_t flags;
    /* gcra, without `init` and borrow: the length of a ban in nanoseconds; 0 for no ban. */
    uint64_t ban_ns;
    /* gcra, with `ban_ns`: the refusal that bans, 1 to 1000; 0 stands for 1. */
    uint32_t ban_after;
    /* calendar: the first day of each window, from 0. Of a month: the day of the month less 1, up
     * to 30. Of a week: the day from Monday, up to 6. Of a year: 32 times the month less 1, plus
     * the day of the month less 1. */
    uint32_t from;
    /* gcra, without `init`, borrow and ban: permits per `second_period_ns` of a second bucket,
     * which a request needs and charges as well ("10/s; 1000/day"). 0: no second bucket. */
    uint64_t second_limit;
    /* The second bucket's period in nanoseconds. */
    uint64_t second_period_ns;
    /* The most permits that can be taken at once of the second bucket. */
    uint64_t second_burst;
    /* gcra without borrow, interval, fixed window, weighted window, quota: the classes of
     * requests, the used ones first. */
    tollbar_class classes[4];
    /* In hundredths of a percent. curve: up to 64 knots of two numbers, {time in the period, share
     * of `limit`}, without {0, 0}, where each curve begins; none is a straight line. level-refill:
     * up to 4 bands of two numbers, {level as a share of `burst`, rate as a share of the
     * policy's}, whole percents; none is one rate at all levels. Unused numbers are 0.
     * tollbar_policy_spec_parse knows the curves' names, and tollbar_policy_spec_curve makes the
     * knots of a function. */
    uint16_t knots[128];
    /* calendar: the zone, all 0 for UTC. tollbar_policy_spec_parse writes the words of a name or a
     * rule. */
    uint64_t zone[5];
} tollbar_policy_spec;

/* Why a policy's text was refused. */
typedef struct tollbar_policy_error {
    /* sizeof(tollbar_policy_error), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* The result that the call returned. */
    int32_t code;
    /* The column, from 1, at which the wrong part of the text begins: a word, a number, or an
     * option with its value. If the text ends too early, the column after its last byte. */
    uint64_t column;
    /* What was expected there, or why the policy is refused. The string is static. */
    const char *expected;
} tollbar_policy_error;

/* How near a curve is to the function that it was made of, or why there is none. */
typedef struct tollbar_curve_fit {
    /* sizeof(tollbar_curve_fit), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* The result that the call returned. */
    int32_t code;
    /* After 0: the largest difference between the curve and the function that was found, as a
     * share of the limit (0.001 is a permille). Otherwise 0. */
    double error;
    /* The time of that difference, or of the refused value, as a share of the slice. */
    double time;
    /* The function's value at that time. */
    double value;
    /* The value that the call expected there, in English. The string is static. It is empty if the
     * call returned 0. */
    const char *expected;
} tollbar_curve_fit;

/* Reads one line of text such as "100/s burst 20" into `out`.
 *
 * `text` has `len` bytes and needs no NUL. Initialise `out` and `error` by their _INIT macros.
 * Returns 0, or an error: of the text (TOLLBAR_E_SYNTAX to TOLLBAR_E_DUPLICATE_OPTION), or of the
 * policy that it names (TOLLBAR_E_PERIOD_ZERO to TOLLBAR_E_CALENDAR). After such an error `error`,
 * unless NULL, says where the fault is and what was expected. */
int32_t tollbar_policy_spec_parse(const char *text,
                                  size_t len,
                                  tollbar_policy_spec *out,
                                  tollbar_policy_error *error);

/* Writes the canonical text of a policy, with a NUL, into `buffer` of `capacity` bytes.
 *
 * tollbar_policy_spec_parse reads that text as an equal policy. `length`, unless NULL, gets the
 * text's length without the NUL. TOLLBAR_POLICY_TEXT_MAX bytes are always enough. If the buffer is
 * too small, the call writes only `length` and returns TOLLBAR_E_BUFFER_TOO_SMALL. */
int32_t tollbar_policy_spec_print(const tollbar_policy_spec *spec,
                                  char *buffer,
                                  size_t capacity,
                                  size_t *length);

/* Returns 0 if a limiter can have this policy, or the error that tollbar_limiter_new would return. */
int32_t tollbar_policy_spec_validate(const tollbar_policy_spec *spec);

/* Writes to `*last_ns` the policy's last time in nanoseconds: at later times every cost above 0 is
 * refused (clause C3). Returns 0, or the error that tollbar_policy_spec_validate would return. */
int32_t tollbar_policy_spec_last_time(const tollbar_policy_spec *spec, uint64_t *last_ns);

/* Writes to `*refill_ns` the time in nanoseconds after which the policy has refilled one permit.
 * tollbar_take_many charges limits in the order of this time. Two values are no times:
 *
 * - TOLLBAR_NO_TIME: a table does not give keys under this policy all unused permits back
 * (tollbar_table_cancel);
 * - TOLLBAR_NO_TIME - 1: a lifetime quota, which refills none.
 *
 * Returns 0, or the error that tollbar_policy_spec_validate would return. */
int32_t tollbar_policy_spec_refill(const tollbar_policy_spec *spec, uint64_t *refill_ns);

/* Writes to `*most` the most permits of one key that the policy admits in some half-open window of
 * `window_ns` nanoseconds, by requests that cost 1 and come at the worst times: for "120/min" and
 * a minute 239, which are 120 at once and one each half second after that.
 *
 * Under a policy with `borrow` a key can get its largest request besides. Classes change nothing:
 * permits that one class must leave may be taken by another. A window of 0 admits 0. Returns 0, or
 * the error that tollbar_policy_spec_validate would return. For days, weeks, months and years the
 * call looks at all of them from 1970 on, and may take some milliseconds. */
int32_t tollbar_policy_spec_worst_case(const tollbar_policy_spec *spec,
                                       uint64_t window_ns,
                                       uint64_t *most);

/* Compiles a policy. The caller frees `*out` with tollbar_policy_free. A calendar is refused,
 * because a cell's clock is not the wall clock. */
int32_t tollbar_policy_new(const tollbar_policy_spec *spec, tollbar_policy **out);

/* Reads and compiles a NUL-terminated text. The caller frees `*out` with tollbar_policy_free.
 * `error` may be NULL. */
int32_t tollbar_policy_from_text(const char *text,
                                 tollbar_policy **out,
                                 tollbar_policy_error *error);

/* Frees a policy of tollbar_policy_new or tollbar_policy_from_text that no call is using. Cells
 * outlive their policy. With NULL the call does nothing. */
void tollbar_policy_free(tollbar_policy *policy);

/* Returns the number of bytes that tollbar_policy_init_in needs. */
size_t tollbar_policy_size(void);

/* Returns the alignment that tollbar_policy_init_in needs. */
size_t tollbar_policy_align(void);

/* Compiles a policy into the caller's memory of `size` bytes. `*out` is that memory. A compiled
 * policy holds no pointers and may be copied or mapped. Do not call tollbar_policy_free with it. */
int32_t tollbar_policy_init_in(void *memory,
                               size_t size,
                               const tollbar_policy_spec *spec,
                               tollbar_policy **out);

/* Makes a policy of the algorithm `curve` whose permits come as a function says: `share` gets a
 * time in the slice from 0 to 1 and returns the share of `limit` that has come by then, from 0 to
 * 1. A slice is `period_ns` nanoseconds long and admits exactly `limit` permits.
 *
 * The call asks `share` at 40,001 times in rising order and sets up to 64 knots, so the policy's
 * text is that of any curve. Unless NULL, `fit` gets the largest difference between curve and
 * function: at most half a permille of the limit for a smooth function of up to twelve convex or
 * concave pieces, and at most a permille for up to twenty. The difference is larger in two
 * places, because knots stand at hundredths of a percent of the slice. If the function jumps
 * between two of them, the curve jumps at the later one. And the curve cannot follow a function
 * that rises by a percent or more from one to the next, as the square root does at 0.
 *
 * `share` must not fall, must end at 1, and is not called any more after a value that breaks a
 * rule. The call then returns TOLLBAR_E_OUT_OF_RANGE for a value that is no share (such as NaN),
 * or TOLLBAR_E_KNOTS for one that falls or a last one that is not 1, and `fit` has the time and
 * the value. Differences below 1e-7 are taken for rounding. Other results: TOLLBAR_E_NO_MEMORY,
 * and those of tollbar_policy_spec_validate. `context` is passed on as it is. `share` must return,
 * so it throws no C++ exception and does not longjmp. */
int32_t tollbar_policy_spec_curve(uint64_t limit,
                                  uint64_t period_ns,
                                  double (*share)(double time, void *context),
                                  void *context,
                                  tollbar_policy_spec *out,
                                  tollbar_curve_fit *fit);

/* tollbar_policy_spec_curve for values instead of a function: the shares at `count` times with
 * equal distances, the first at 0 and the last at 1. Between two of them the function is straight.
 * There are at least two. Of TOLLBAR_CURVE_TIMES values each is used as it is. */
int32_t tollbar_policy_spec_samples(uint64_t limit,
                                    uint64_t period_ns,
                                    const double *shares,
                                    size_t count,
                                    tollbar_policy_spec *out,
                                    tollbar_curve_fit *fit);

/* A spec to start from: gcra, all options unset; set limit, period_ns and burst. */
#define TOLLBAR_POLICY_SPEC_INIT                                                                     \
    { (uint32_t)sizeof(tollbar_policy_spec), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  \
      { { "", 0 }, { "", 0 }, { "", 0 }, { "", 0 } }, \
      { 0 }, \
      { 0, 0, 0, 0, 0 } }

/* An error report to start from. */
#define TOLLBAR_POLICY_ERROR_INIT { (uint32_t)sizeof(tollbar_policy_error), 0, 0, NULL }

/* A report of a fit to start from. */
#define TOLLBAR_CURVE_FIT_INIT { (uint32_t)sizeof(tollbar_curve_fit), 0, 0, 0, 0, NULL }
/* --------------------------------------------------------------------------------------------
 * 2. Clocks
 * -------------------------------------------------------------------------------------------- */

/* Calls without _at read a clock.
 *
 * Limiters and tables count nanoseconds of UTC since 2025-03-13 00:00:00 (TOLLBAR_TIME_ZERO), so
 * windows begin at full minutes, hours and days of UTC. tollbar_limiter_now and tollbar_table_now
 * return that time. A process asks the system for the date once. From then on the time never steps.
 * If the system's date is before 2025-03-13, or more than 40 years after it, windows are aligned to
 * the machine's start instead.
 *
 * Cells count from the machine's start, in every process of the machine (tollbar_clock_now). */

/* The processor's counter on CLOCK_MONOTONIC's scale. It reads CLOCK_MONOTONIC instead for the
 * first millisecond of a process, and where the processor does not call its counter invariant or
 * Linux has struck it from its list of clock sources. */
#define TOLLBAR_CLOCK_TSC 0u

/* CLOCK_MONOTONIC of the machine's first time namespace. In another time namespace the library
 * subtracts how far the caller's CLOCK_MONOTONIC is ahead, for this clock, for TOLLBAR_CLOCK_TSC
 * and for TOLLBAR_CLOCK_COARSE. So processes of different time namespaces can share a table, and
 * times that the caller reads itself with clock_gettime are on another scale there. */
#define TOLLBAR_CLOCK_MONOTONIC 1u

/* CLOCK_MONOTONIC_COARSE: cheap, in steps of the kernel's tick (1 to 10 ms). */
#define TOLLBAR_CLOCK_COARSE 2u

/* CLOCK_REALTIME, Unix nanoseconds. It follows each step of the system's clock: after a step back
 * by an hour, a key that had used up its limit before the step is refused for up to an hour. A
 * state word can hold Unix time until January 2043. A policy whose last time
 * (tollbar_policy_spec_last_time) is earlier is refused on this clock with
 * TOLLBAR_E_RATE_TOO_HIGH. */
#define TOLLBAR_CLOCK_WALL 3u

/* Where the times of limiters and tables begin, in Unix nanoseconds: 2025-03-13 00:00:00 UTC,
 * 20,160 days after
 * 1970. A window whose length divides 20,160 days (so every one that divides a day, 2 to 10 days,
 * and 4 weeks) begins when it would in Unix time. */
#define TOLLBAR_TIME_ZERO UINT64_C(1741824000000000000)

/* Reads the clock of that TOLLBAR_CLOCK_ number. TOLLBAR_CLOCK_WALL counts nanoseconds since 1970,
 * the others since the machine's start, alike in every process. The time is for cells and for
 * intervals. Limiters and tables count from another zero (tollbar_limiter_now, tollbar_table_now). */
int32_t tollbar_clock_now(uint32_t clock, uint64_t *now_ns);

/* Returns TOLLBAR_YES if TOLLBAR_CLOCK_TSC reads the processor's counter, TOLLBAR_NO if it reads
 * CLOCK_MONOTONIC instead. */
int32_t tollbar_clock_is_counter(void);

/* --------------------------------------------------------------------------------------------
 * 3. Decisions in full
 * -------------------------------------------------------------------------------------------- */

/* The limit had the permits: the usual reason of TOLLBAR_ALLOWED. */
#define TOLLBAR_REASON_ADMITTED 0

/* Denied: the permits are spent. They come back with time, or never if the limit is 0. */
#define TOLLBAR_REASON_RATE 1

/* Never: the cost is above the burst. */
#define TOLLBAR_REASON_BURST 2

/* The table has no free slot for a new key. TOLLBAR_ON_FULL_DENY denies the request, and
 * TOLLBAR_ON_FULL_ALLOW allows it without storing the key. */
#define TOLLBAR_REASON_TABLE_FULL 3u

/* Denied: a new key inherits the debt of the key whose slot it needs (TOLLBAR_ON_FULL_INHERIT),
 * and that debt is too high. */
#define TOLLBAR_REASON_INHERITED_DEBT 4

/* The request had an empty key. The table's options say whether such requests pass. */
#define TOLLBAR_REASON_MISSING_KEY 5u

/* Allowed and not charged: the key is exempt. */
#define TOLLBAR_REASON_EXEMPT 6

/* Denied: the permits would have come within the caller's `max_wait_ns`, but the maximum number of
 * callers sleeps already (`waiters` of tollbar_limiter_options and tollbar_table_options). */
#define TOLLBAR_REASON_QUEUE_FULL 7

/* Denied: the state is damaged. C calls return an error instead. */
#define TOLLBAR_REASON_FAULT 8

/* Denied for now: the client has asked the store, and the store has not answered yet. */
#define TOLLBAR_REASON_PENDING 9

/* Denied: by the store's last answer the limit is used up. */
#define TOLLBAR_REASON_STORE_DENIED 10

/* The store does not answer: the options of the lease decided. */
#define TOLLBAR_REASON_STORE_DOWN 11

/* Denied: the key is banned (the policy's option `ban`). For a cost of 1 `retry_after_ns` is the
 * end of the ban. */
#define TOLLBAR_REASON_BANNED 12

/* Denied: as many permits as the limit are in flight. They come back when their holders release
 * them, so no wait is known. */
#define TOLLBAR_REASON_IN_FLIGHT 13

/* Denied or never: the request's class leaves permits to others. Without the reserve the request
 * would have passed. */
#define TOLLBAR_REASON_RESERVE 14

/* A decision with its times and its reason. */
typedef struct tollbar_decision {
    /* sizeof(tollbar_decision), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* TOLLBAR_ALLOWED, TOLLBAR_DENIED or TOLLBAR_NEVER: what the call returned. */
    uint32_t verdict;
    /* Permits that could be taken at this instant, after this decision. */
    uint64_t remaining;
    /* Nanoseconds until the same request would be admitted if no other request came first. 0 if
     * the request was admitted, TOLLBAR_NO_TIME if no wait would help. */
    uint64_t retry_after_ns;
    /* Nanoseconds until the state is as good as fresh if no other request comes first. */
    uint64_t reset_after_ns;
    /* One of TOLLBAR_REASON_*. */
    uint32_t reason;
    /* Which policy of a list bound, from 0: of a refusal the one with the longest wait, and of an
     * admission the one with the fewest permits left. 0 without a list. */
    uint32_t bound;
} tollbar_decision;

/* Returns a reason in a few English words, such as "over the rate". The string is static and never
 * NULL. Numbers that this version does not know give "unknown reason". */
const char *tollbar_strreason(uint32_t reason);

/* A decision to be filled in. */
#define TOLLBAR_DECISION_INIT { (uint32_t)sizeof(tollbar_decision), 0, 0, 0, 0, 0, 0 }

/* --------------------------------------------------------------------------------------------
 * 4. Limiters: any algorithm, with a clock
 * -------------------------------------------------------------------------------------------- */

/* A limiter has one state of any algorithm, on a cache line of its own, and a clock.
 *
 *     tollbar_decision decision = TOLLBAR_DECISION_INIT;
 *     if (tollbar_limiter_check(limiter, 1, &decision) == TOLLBAR_DENIED)
 *         reply(429, "Retry-After: %llu",
 *               (unsigned long long)((decision.retry_after_ns + 999999999) / 1000000000));
 *
 * Credit is an option for threads that check one limiter all the time, and so wait for its cache
 * line:
 *
 *     tollbar_limiter_options options = TOLLBAR_LIMITER_OPTIONS_INIT;
 *     options.credit = TOLLBAR_CREDIT_ON;
 *
 * A thread that is admitted is then charged for more permits than its request costs. It keeps the
 * rest as credit on a cache line of its own, and spends it on its next requests without reading the
 * clock, if they ask for no full decision. Threads have nothing to set up or to end.
 *
 *   - The bound stays burst + rate * t in every interval t, whatever the threads do.
 *   - Credit costs part of the burst. The credit of all threads together is at most C, an eighth of the burst and at
 *     most 65,536 permits, or 0 if the burst is below 32. Up to C permits of a burst may be refused that a limiter
 *     without credit admits, and a cost above burst - C is TOLLBAR_NEVER.
 *   - A thread keeps at most a sixteenth of the remaining permits. Near the limit a thread keeps none, and each
 *     request is decided as by a limiter of burst - C.
 *   - The credit of a thread that ends or stops asking is lost when another thread takes credit in a later slice of
 *     time. A slice is at least 16 refills of the bucket and at least one second long. Less than one permit in a
 *     hundred is lost this way.
 *   - `remaining` counts the shared permits and the calling thread's own credit. tollbar_limiter_take_up_to spends
 *     the credit first. tollbar_limiter_reserve_at and tollbar_limiter_wait book on the shared permits what the
 *     credit does not pay at once. tollbar_limiter_reset leaves credit as it is.
 *   - A signal handler must not use such a limiter if it may have interrupted a call with it on its thread. */

/* No thread takes permits in advance: every decision is exact to the permit. */
#define TOLLBAR_CREDIT_OFF 0

/* Threads take permits in advance (see above). The policy is gcra without `borrow` and with a
 * limit above 0, or the call that makes the limiter returns TOLLBAR_E_OPTION_MISMATCH. With a
 * burst below 32 there is no credit, and every decision is that of a limiter without. */
#define TOLLBAR_CREDIT_ON 1

/* A limiter. Any number of threads may use it at once, in all calls but tollbar_limiter_free and
 * tollbar_limiter_close. After a fork each process has a copy of its own. A limiter must not lie
 * in memory that processes share, because their threads would overwrite each other's counts of
 * decisions. The counts take 2.75 KiB: 32 threads have a cache line each, and further threads
 * share eight more. */
typedef struct tollbar_limiter tollbar_limiter;

/* How a limiter is made. All zero but `struct_size` is the default. */
typedef struct tollbar_limiter_options {
    /* sizeof(tollbar_limiter_options), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* A TOLLBAR_CLOCK_ number, for the calls without `_at` (tollbar_limiter_now). */
    uint32_t clock;
    /* Callers that may sleep in tollbar_limiter_wait at one time. 0 means 1024. A further caller
     * is refused at once. */
    uint32_t waiters;
    /* TOLLBAR_CREDIT_OFF, which is the default, or TOLLBAR_CREDIT_ON. */
    uint32_t credit;
} tollbar_limiter_options;

/* Makes a limiter. `options` may be NULL. The caller frees `*out` with tollbar_limiter_free. */
int32_t tollbar_limiter_new(const tollbar_policy_spec *spec,
                            const tollbar_limiter_options *options,
                            tollbar_limiter **out);

/* Makes a limiter of a NUL-terminated text such as "100/s burst 20", with default options. `error`
 * may be NULL. */
int32_t tollbar_limiter_from_text(const char *text,
                                  tollbar_limiter **out,
                                  tollbar_policy_error *error);

/* Frees a limiter that no call is using. With NULL the call does nothing. */
void tollbar_limiter_free(tollbar_limiter *limiter);

/* Returns the number of bytes that tollbar_limiter_init_in needs. */
size_t tollbar_limiter_size(void);

/* Returns the alignment that tollbar_limiter_init_in needs: a cache line or two. */
size_t tollbar_limiter_align(void);

/* Makes a limiter in the caller's memory of `size` bytes; `*out` is that memory. `options` may be
 * NULL.
 *
 * The caller ends the limiter with tollbar_limiter_close, not with tollbar_limiter_free. The call
 * allocates the arrays of a sliding window or a sliding log, and the threads' credit. For other
 * limiters it allocates nothing. */
int32_t tollbar_limiter_init_in(void *memory,
                                size_t size,
                                const tollbar_policy_spec *spec,
                                const tollbar_limiter_options *options,
                                tollbar_limiter **out);

/* Ends a limiter of tollbar_limiter_init_in that no call is using. Its memory is the caller's
 * again. With NULL the call does nothing. */
void tollbar_limiter_close(tollbar_limiter *limiter);

/* Writes the time that calls without `_at` use to `*now_ns`: nanoseconds of UTC since
 * TOLLBAR_TIME_ZERO. The process reads CLOCK_REALTIME once and counts on from there, so this time
 * never steps. On TOLLBAR_CLOCK_WALL it is Unix time. */
int32_t tollbar_limiter_now(const tollbar_limiter *limiter, uint64_t *now_ns);

/* Default options. */
#define TOLLBAR_LIMITER_OPTIONS_INIT { (uint32_t)sizeof(tollbar_limiter_options), 0, 0, 0 }

/* --------------------------------------------------------------------------------------------
 * 5. Decisions of limiters
 * -------------------------------------------------------------------------------------------- */

/* A limiter's state, for people and metrics. */
typedef struct tollbar_limiter_state {
    /* sizeof(tollbar_limiter_state), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* Callers asleep in tollbar_limiter_wait. */
    uint32_t waiting;
    /* The limiter's time when the state was read. */
    uint64_t now_ns;
    /* Permits that could be taken at that time. */
    uint64_t remaining;
    /* Nanoseconds until one permit could be taken; 0 if one can. */
    uint64_t retry_after_ns;
    /* Nanoseconds until the state is as good as fresh. */
    uint64_t reset_after_ns;
    /* Requests whose time was earlier than that of a request admitted before them. */
    uint64_t backward_steps;
    /* Calls of all threads, since the limiter was made, that returned TOLLBAR_ALLOWED. Each
     * request of a batch counts as a call. Peeks and errors do not count. tollbar_limiter_reset
     * keeps the counts. */
    uint64_t allowed;
    /* Calls that returned TOLLBAR_DENIED. */
    uint64_t denied;
    /* Calls that returned TOLLBAR_NEVER. */
    uint64_t never;
} tollbar_limiter_state;

/* Takes `cost` permits now, or takes none. A cost of 0 asks without charging.
 *
 * Returns TOLLBAR_ALLOWED if the limiter had the permits and has charged them, TOLLBAR_DENIED if
 * it does not have them now, TOLLBAR_NEVER if `cost` is more than it can ever have at once, or an
 * error. The call writes the full decision to `out`, such as the time until the same request would
 * pass. With NULL for `out` it is cheaper. */
int32_t tollbar_limiter_check(const tollbar_limiter *limiter, uint64_t cost, tollbar_decision *out);

/* tollbar_limiter_check at the caller's time. All calls to one limiter use one scale of time: that
 * of tollbar_limiter_now, as the calls without a time do, or another one that every call passes. */
int32_t tollbar_limiter_check_at(const tollbar_limiter *limiter,
                                 uint64_t cost,
                                 uint64_t now_ns,
                                 tollbar_decision *out);

/* Returns what tollbar_limiter_check would return, and changes nothing. */
int32_t tollbar_limiter_peek(const tollbar_limiter *limiter, uint64_t cost, tollbar_decision *out);

/* tollbar_limiter_peek at the caller's time. */
int32_t tollbar_limiter_peek_at(const tollbar_limiter *limiter,
                                uint64_t cost,
                                uint64_t now_ns,
                                tollbar_decision *out);

/* Decides on `count` requests in turn with one reading of the clock. `results[i]` gets what
 * tollbar_limiter_check would have returned for `costs[i]`. If `costs` is NULL, each request costs
 * one permit. Returns 0, or an error of the whole batch. Then nothing has been charged. */
int32_t tollbar_limiter_check_many(const tollbar_limiter *limiter,
                                   const uint64_t *costs,
                                   size_t count,
                                   int32_t *results);

/* tollbar_limiter_check_many at the caller's time. */
int32_t tollbar_limiter_check_many_at(const tollbar_limiter *limiter,
                                      const uint64_t *costs,
                                      size_t count,
                                      uint64_t now_ns,
                                      int32_t *results);

/* Takes all permits that are left, `most` at the most, and writes their number to `*taken`.
 * Returns TOLLBAR_ALLOWED if it took any, otherwise TOLLBAR_DENIED. */
int32_t tollbar_limiter_take_up_to(const tollbar_limiter *limiter, uint64_t most, uint64_t *taken);

/* tollbar_limiter_take_up_to at the caller's time. */
int32_t tollbar_limiter_take_up_to_at(const tollbar_limiter *limiter,
                                      uint64_t most,
                                      uint64_t now_ns,
                                      uint64_t *taken);

/* Makes the limiter fresh. Other calls may run at the same time, and admissions in the same
 * instant may survive the reset. */
int32_t tollbar_limiter_reset(const tollbar_limiter *limiter);

/* Writes the limiter's present state to `out`, and takes no permits. */
int32_t tollbar_limiter_get_state(const tollbar_limiter *limiter,
                                  tollbar_limiter_state *out);

/* Changes the policy while other threads use the limiter. `keep`, a TOLLBAR_KEEP_ number, says
 * what the limiter keeps of its state. Between windows of one length, quotas, and intervals of one
 * limit and period, TOLLBAR_KEEP_COUNT and TOLLBAR_KEEP_TIME keep the usage, up to the new limit.
 *
 * Calls that run at the same time neither wait nor fail, and are decided under one of the two
 * policies. In any interval the limiter admits at most the sum of the bounds of all policies that
 * were in force in that interval, each as often as it came into force. Reserved permits keep their
 * departures.
 *
 * The call allocates a state for each policy that is new to the limiter. tollbar_limiter_free and
 * tollbar_limiter_close free all of them. Returns TOLLBAR_E_POLICY_CHANGES after 4,096 policies,
 * and TOLLBAR_E_OPTION_MISMATCH for a limiter with TOLLBAR_CREDIT_ON. Then the policy stays as it
 * was. */
int32_t tollbar_limiter_set_policy(const tollbar_limiter *limiter,
                                   const tollbar_policy_spec *spec,
                                   uint32_t keep);

/* tollbar_limiter_set_policy at the caller's time, for a limiter that is asked at the caller's
 * time. The limiter converts what it keeps by that time. */
int32_t tollbar_limiter_set_policy_at(const tollbar_limiter *limiter,
                                      const tollbar_policy_spec *spec,
                                      uint32_t keep,
                                      uint64_t now_ns);

/* Writes the limiter's policy to `out`: the one that it was made with, or was last changed to. */
int32_t tollbar_limiter_get_policy(const tollbar_limiter *limiter, tollbar_policy_spec *out);

/* A state to be filled in. */
#define TOLLBAR_LIMITER_STATE_INIT { (uint32_t)sizeof(tollbar_limiter_state), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* --------------------------------------------------------------------------------------------
 * 6. Tables: millions of keys in memory that processes share
 * -------------------------------------------------------------------------------------------- */

/* A table has a state for each of millions of keys, in one block of memory that never grows. A key is bytes: an address, a
 * user, a token. The first charge of a key takes a slot. The key keeps the slot until its debt is
 * paid. Then another key may take it. Threads and processes use a table at once, without locks. A
 * process that is killed blocks no other.
 *
 *     const char *text = "5/min burst 3";
 *     tollbar_policy_spec policy = TOLLBAR_POLICY_SPEC_INIT;
 *     tollbar_policy_spec_parse(text, strlen(text), &policy, NULL);
 *     const tollbar_policy_spec *policies[] = { &policy };
 *
 *     tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(1000000);
 *     tollbar_table *logins;
 *     int error = tollbar_table_open("/run/logins/table", policies, 1, &options, &logins);
 *
 *     if (tollbar_table_check(logins, 0, address, address_length, 1, NULL) != TOLLBAR_ALLOWED)
 *         return try_later();
 *
 * A table may have several policies. The policy is part of a key's identity, so one address has a
 * separate state under each policy. docs/internals/table-inside.md describes the layout and proves
 * the protocol.
 *
 * Hot keys is an option for a few keys that several threads check at once, such as large tenants
 * among many small ones:
 *
 *     options.hot_keys = 1000;
 *
 * Each check of such a key writes its slot, so the slot's cache line moves from core to core. With
 * `hot_keys` each thread takes some permits of the keys that it checks most often in advance, as
 * its credit. The thread's next checks of these keys read the clock and are decided on a cache line
 * of its own. A single thread gains too if there is room for most of its keys. Keys that are
 * checked seldom gain nothing.
 *
 *   - The bound of a key stays burst + rate * t in every interval t, whatever threads and processes do.
 *   - A key's credit is at most a sixteenth of its remaining permits, and at most 1,024. Near the limit, and with a
 *     burst below 32, there is no credit, and every request is decided as without the option. So is every request of
 *     an algorithm other than gcra.
 *   - Credit expires when the key's bucket would be full without it. A full bucket therefore gives up some permits:
 *     the refill of an eighth of a second, and at most an eighth of the burst. The permits that a thread has not
 *     spent by then are lost: they are charged, and no request passes for them. A thread that ends leaves its credit
 *     to expire.
 *   - A thread whose time goes back spends no credit until its time is that of its latest credit again.
 *   - 128 threads of a process can have credit in a table, each 34 bytes a key; others decide without. A forked child
 *     starts without credit.
 *
 * What other calls do with the calling thread's credit of a key:
 *
 *     a full decision, tollbar_table_peek       count it in `remaining`
 *     tollbar_table_take_up_to                  spends it first
 *     tollbar_table_reserve, tollbar_table_wait book what it does not pay at once
 *     tollbar_table_check_many                  asks the table and leaves it alone
 *     tollbar_table_charge                      charges the table
 *     tollbar_table_reset                       voids it; other threads keep theirs
 *     a change of the policy                    voids all credit under it
 *
 * A policy under which a thread has had credit gives nothing back (tollbar_table_cancel, tollbar_table_settle). */

/* The table admits a new key as a fresh one. The new key takes the slot that would have expired
 * first and keeps its expiry. The table forgets the key that had the slot. */
#define TOLLBAR_ON_FULL_EVICT_NEAREST 0u

/* A new key takes over the slot that would have expired first, together with its debt. */
#define TOLLBAR_ON_FULL_INHERIT 1u

/* The table admits a new key as a fresh one, and does not store it. */
#define TOLLBAR_ON_FULL_ALLOW 2u

/* The table refuses a new key. It evicts no key, and admits no key without a count. Use it only
 * for keys that a stranger cannot invent, because a stranger with invented keys can fill the table
 * and shut out all new keys. */
#define TOLLBAR_ON_FULL_DENY 3u

/* The table refuses a request without a key (NULL, or a length of 0). */
#define TOLLBAR_MISSING_DENY 0u

/* The table admits a request without a key, and charges no key. */
#define TOLLBAR_MISSING_ALLOW 1u

/* A request without a key returns TOLLBAR_E_MISSING_KEY. */
#define TOLLBAR_MISSING_REPORT 2u

/* The table uses `seed`. Without this flag the seed is random. */
#define TOLLBAR_TABLE_HAS_SEED 1u

/* The library does not advise the system to use huge pages. */
#define TOLLBAR_TABLE_SMALL_PAGES 2u

/* The call opens a file whatever its owner and permissions are. Every user who may write the file
 * can admit or refuse keys, and the file's owner can end this process by SIGBUS at any time. */
#define TOLLBAR_TABLE_TRUST_ANYONE 4u

/* This process's view of a table. Any number of threads may use it at once, on both sides of a
 * fork, in all calls but tollbar_table_close and tollbar_table_repair. */
typedef struct tollbar_table tollbar_table;

/* How a table is made. Start from TOLLBAR_TABLE_OPTIONS_INIT. */
typedef struct tollbar_table_options {
    /* sizeof(tollbar_table_options), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* A TOLLBAR_ON_FULL_ number. It says what the table does with a new key if all slots of that
     * key are taken. 0 is TOLLBAR_ON_FULL_EVICT_NEAREST. */
    uint32_t on_full;
    /* The number of keys that can have a debt at one time. The table has a quarter more slots, and
     * at least 5,120. */
    uint64_t capacity;
    /* The seed of the hash, with TOLLBAR_TABLE_HAS_SEED. A client that knows the seed can choose
     * keys that collide. */
    uint64_t seed;
    /* A TOLLBAR_MISSING_ number: how the table decides on a request without a key. */
    uint32_t missing_key;
    /* A TOLLBAR_CLOCK_ number: the clock that calls without `_at` read (tollbar_table_now). */
    uint32_t clock;
    /* The permissions of a new file. 0 means 0600. An existing file is refused if a user may write
     * it whom `mode` does not let write. */
    uint32_t mode;
    /* TOLLBAR_TABLE_ flags. */
    uint32_t flags;
    /* Callers of this object that may sleep in tollbar_table_wait at one time. 0 means 1024. A
     * further caller is refused at once. */
    uint32_t waiters;
    /* The keys for which each thread of this process may take permits in advance (see above): the
     * keys that it checks most often. 0: none. A number below 64 means 64, and a number above
     * 16,384 means 16,384. It may differ from process to process. */
    uint32_t hot_keys;
    /* The keys that may have a policy of their own at one time (tollbar_table_set_override), 32
     * bytes each. 0: 1024. At most 524,288. */
    uint32_t overrides;
    /* The most segments of a sliding window, or permits of a sliding log, for which each slot has
     * room. With room the table may have any policies, and each may change to any other
     * (tollbar_table_set_policy). 0: none, and a sliding window or log must be the only policy.
     * Room for n takes 32 bytes a slot, and 16 for each place: the next power of two from n + 2
     * on. */
    uint32_t room;
} tollbar_table_options;

/* Writes to `*bytes` the size of a table with these options and policies. A table's size never
 * changes. */
int32_t tollbar_table_bytes(const tollbar_policy_spec *const *policies,
                            size_t count,
                            const tollbar_table_options *options,
                            uint64_t *bytes);

/* Makes a table in this process's own memory. `policies` points to `count` specs, 1 to 128. A
 * request names a policy by its index. The caller frees `*out` with tollbar_table_close. */
int32_t tollbar_table_new(const tollbar_policy_spec *const *policies,
                          size_t count,
                          const tollbar_table_options *options,
                          tollbar_table **out);

/* tollbar_table_new in memory that this process shares with the processes that it forks later. */
int32_t tollbar_table_new_shared(const tollbar_policy_spec *const *policies,
                                 size_t count,
                                 const tollbar_table_options *options,
                                 tollbar_table **out);

/* Opens the table in the file at `path`, or makes the file if there is none. If several processes
 * call at once, one makes the file and the others open it. With `count` 0 and `options` NULL or of
 * capacity 0, the call makes no file and opens any table.
 *
 * In /run and /dev/shm a table lasts as long as the machine runs. On a disk it survives a restart
 * of the machine, and its times go on by the wall clock. If the file has another table, the call
 * returns an error that says why, and the file stays as it is. The call reserves all of the file's
 * space at once.
 *
 * Give the file a directory of the service's own, such as /run/SERVICE. The call returns
 * TOLLBAR_E_OWNER if the file belongs to another user than the caller or root, if a user may write
 * it whom `mode` does not let write, or if another user may replace it, unless the flags have
 * TOLLBAR_TABLE_TRUST_ANYONE. To share a table with processes that you do not trust, use
 * tollbar_table_new_sealed.
 *
 * Without /proc/sys (systemd's ProcSubset=pid) the file must be in tmpfs, as /dev/shm and /run
 * are, or the clock must be TOLLBAR_CLOCK_WALL: otherwise TOLLBAR_E_BOOT_ID. Without all of /proc,
 * before Linux 6.11, the clock must be TOLLBAR_CLOCK_WALL: otherwise TOLLBAR_E_TIME_NAMESPACE,
 * from tollbar_table_attach and tollbar_table_open_fd, too. */
int32_t tollbar_table_open(const char *path,
                           const tollbar_policy_spec *const *policies,
                           size_t count,
                           const tollbar_table_options *options,
                           tollbar_table **out);

/* tollbar_table_new in memory with a descriptor (Linux: a memfd). A process that gets the
 * descriptor `*fd`, by inheritance or through a socket, opens the table with
 * tollbar_table_open_fd. An exec closes the descriptor. The caller may close it at any time,
 * because the table does not need it.
 *
 * The memory is sealed: no process can truncate it and so end the others by SIGBUS, as the owner
 * of a file can. A process that has the descriptor can still write to the memory, and so grant
 * permits. */
int32_t tollbar_table_new_sealed(const tollbar_policy_spec *const *policies,
                                 size_t count,
                                 const tollbar_table_options *options,
                                 int *fd,
                                 tollbar_table **out);

/* Opens the table behind a descriptor of tollbar_table_new_sealed, of this process or another. The
 * descriptor stays the caller's, who may close it afterwards. Returns TOLLBAR_E_UNSEALED for a
 * file that a process could truncate. */
int32_t tollbar_table_open_fd(int fd, tollbar_table **out);

/* Makes a table in the caller's memory, which other processes may share. The table takes as many
 * of the `size` bytes as tollbar_table_bytes says, and overwrites them. `memory` must be aligned
 * to 64 bytes and must outlive `*out`. */
int32_t tollbar_table_init_in(void *memory,
                              size_t size,
                              const tollbar_policy_spec *const *policies,
                              size_t count,
                              const tollbar_table_options *options,
                              tollbar_table **out);

/* Opens the table that tollbar_table_init_in has made in the caller's memory, in this process or
 * another, at this address or another. */
int32_t tollbar_table_attach(void *memory, size_t size, tollbar_table **out);

/* Sets the option `hot_keys` of a view that came without options, from tollbar_table_attach or
 * tollbar_table_open_fd. Credit that threads have through this view is lost. No other call may use
 * the view at the same time. */
int32_t tollbar_table_set_hot_keys(tollbar_table *table, uint32_t keys);

/* Ends this process's view of a table that no call is using. A table in a file, in the caller's
 * memory or in use by other processes stays as it is. With NULL the call does nothing. */
void tollbar_table_close(tollbar_table *table);

/* Options for a table of `keys` keys, with the defaults for everything else. */
#define TOLLBAR_TABLE_OPTIONS_INIT(keys)                                                             \
    { (uint32_t)sizeof(tollbar_table_options), 0, (keys), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* --------------------------------------------------------------------------------------------
 * 7. Decisions of tables
 * -------------------------------------------------------------------------------------------- */

/* Takes `cost` permits of a key now, or takes none. `key` points to `length` bytes, which the
 * table does not keep. `policy` is the index of one of the table's policies. A cost of 0 asks
 * without charging.
 *
 * Returns TOLLBAR_ALLOWED if the key had the permits and has been charged, TOLLBAR_DENIED if it
 * does not have them now, TOLLBAR_NEVER if `cost` is more than it can ever have at once, or an
 * error. The call writes the full decision to `out`, such as the time until the same request would
 * pass. With NULL for `out` it is cheaper. */
int32_t tollbar_table_check(const tollbar_table *table,
                            uint32_t policy,
                            const void *key,
                            size_t length,
                            uint64_t cost,
                            tollbar_decision *out);

/* tollbar_table_check at the caller's time: on the scale of tollbar_table_now, or another that all
 * callers of this table share. */
int32_t tollbar_table_check_at(const tollbar_table *table,
                               uint32_t policy,
                               const void *key,
                               size_t length,
                               uint64_t cost,
                               uint64_t now_ns,
                               tollbar_decision *out);

/* Returns what tollbar_table_check would return. It takes no permits and stores no key. */
int32_t tollbar_table_peek(const tollbar_table *table,
                           uint32_t policy,
                           const void *key,
                           size_t length,
                           uint64_t cost,
                           tollbar_decision *out);

/* tollbar_table_peek at the caller's time. */
int32_t tollbar_table_peek_at(const tollbar_table *table,
                              uint32_t policy,
                              const void *key,
                              size_t length,
                              uint64_t cost,
                              uint64_t now_ns,
                              tollbar_decision *out);

/* --------------------------------------------------------------------------------------------
 * 8. Batches, and other calls for keys of tables
 * -------------------------------------------------------------------------------------------- */

/* One request of a batch. */
typedef struct tollbar_request {
    /* The key. */
    const void *key;
    /* Its bytes. */
    size_t length;
    /* The permits asked for. */
    uint64_t cost;
    /* The policy's number. */
    uint32_t policy;
    /* 0, or the number of the request's class: 1 for the policy's first one. */
    uint32_t class_number;
} tollbar_request;

/* Decides on `count` requests in turn with one reading of the clock. `results[i]` gets what
 * tollbar_table_check would have returned for the i-th. It is faster than one call for each
 * request, because it prefetches the memory of all keys first. Returns 0, or an error of the whole
 * batch. Then nothing has been charged. */
int32_t tollbar_table_check_many(const tollbar_table *table,
                                 const tollbar_request *requests,
                                 size_t count,
                                 int32_t *results);

/* tollbar_table_check_many at the caller's time. */
int32_t tollbar_table_check_many_at(const tollbar_table *table,
                                    const tollbar_request *requests,
                                    size_t count,
                                    uint64_t now_ns,
                                    int32_t *results);

/* Takes all permits that are left, `most` at the most, and writes their number to `*taken`.
 * Returns TOLLBAR_ALLOWED if it took any, otherwise TOLLBAR_DENIED. */
int32_t tollbar_table_take_up_to(const tollbar_table *table,
                                 uint32_t policy,
                                 const void *key,
                                 size_t length,
                                 uint64_t most,
                                 uint64_t *taken);

/* tollbar_table_take_up_to at the caller's time. */
int32_t tollbar_table_take_up_to_at(const tollbar_table *table,
                                    uint32_t policy,
                                    const void *key,
                                    size_t length,
                                    uint64_t most,
                                    uint64_t now_ns,
                                    uint64_t *taken);

/* Gives a key a fresh state. The key's slot stays taken until its debt would have been paid, and
 * its next charge takes another slot. If all of its other slots are taken, by earlier resets of
 * the key or because the table is full, a key under gcra begins again in its slot. Returns
 * TOLLBAR_YES. Under other algorithms the call then returns TOLLBAR_NO and changes nothing. */
int32_t tollbar_table_reset(const tollbar_table *table,
                            uint32_t policy,
                            const void *key,
                            size_t length);

/* tollbar_table_reset at the caller's time. */
int32_t tollbar_table_reset_at(const tollbar_table *table,
                               uint32_t policy,
                               const void *key,
                               size_t length,
                               uint64_t now_ns);

/* Exempts a key under that policy: it always passes and is charged nothing. A table has room for
 * some 1,600 exempt keys. */
int32_t tollbar_table_exempt(const tollbar_table *table,
                             uint32_t policy,
                             const void *key,
                             size_t length);

/* Ends a key's exemption under that policy. Returns TOLLBAR_YES, or TOLLBAR_NO if the key was not
 * exempt. */
int32_t tollbar_table_unexempt(const tollbar_table *table,
                               uint32_t policy,
                               const void *key,
                               size_t length);

/* Writes the hash by which the table knows a key to `*hash`. tollbar_table_next shows the same
 * hash. */
int32_t tollbar_table_hash(const tollbar_table *table,
                           uint32_t policy,
                           const void *key,
                           size_t length,
                           uint64_t *hash);

/* Writes the time that calls without `_at` use to `*now_ns`: nanoseconds of UTC since
 * TOLLBAR_TIME_ZERO. The process that made the table read CLOCK_REALTIME once, and all processes
 * count on from there, so this time never steps. A file's time goes on after a restart of the
 * machine. On TOLLBAR_CLOCK_WALL it is Unix time. */
int32_t tollbar_table_now(const tollbar_table *table, uint64_t *now_ns);

/* A request of a batch. */
#define TOLLBAR_REQUEST_INIT { NULL, 0, 1, 0, 0 }
/* --------------------------------------------------------------------------------------------
 * 9. In flight: how many are open at one time
 * -------------------------------------------------------------------------------------------- */

/* A rate limits how many requests begin in a time. It does not limit how many run: if each takes ten times as long, ten times as many run. An
 * in-flight table limits how many requests, connections or uploads a key has open at one time.
 *
 *     tollbar_in_flight_options options = TOLLBAR_IN_FLIGHT_OPTIONS_INIT;
 *     tollbar_in_flight *uploads;
 *     options.capacity = 10000;
 *     if (tollbar_in_flight_open("/dev/shm/uploads", &options, &uploads) != 0)
 *         return -1;
 *     ...
 *     tollbar_ticket ticket;
 *     if (tollbar_in_flight_acquire(uploads, user, user_length, 4, &ticket) != TOLLBAR_ALLOWED)
 *         return too_many();
 *     receive(upload);
 *     tollbar_in_flight_release(uploads, ticket);
 *
 * A key never has more permits in flight than the limit, however processes and threads interleave.
 * Each call gives its own limit, so the limit may change at any time. If more permits than the new
 * limit are in flight, calls are refused until enough of them are released. Near the limit a call
 * may be refused although a permit is free, if it meets calls of other threads for the same key at
 * each of 24 attempts.
 *
 * Cost. If no other thread changes the key's slot, an acquisition is two atomic read-modify-write
 * operations. It takes no lock and allocates nothing. It makes system calls only if it is the first
 * of its process, or if it meets the limit or a full table.
 *
 * Processes. Each view of a table is an *owner* from its first permit on.
 *
 *   - A process that ends, or is killed, needs to release nothing. When the key refuses a request of another process,
 *     that process asks the system which owners of the key's permits have ended, at most once a millisecond for each
 *     owner. It frees the permits of those owners and tries again. Nothing sweeps the table, and no request waits.
 *   - A process that is stopped, or whose first thread has ended, still lives, and keeps its permits. So does a
 *     process that calls exec: close the table before.
 *   - A forked child is another owner. It can use its parent's view, and cannot release its parent's tickets. A child
 *     in another PID namespace cannot tell whether the other owners live, nor they whether it does:
 *     TOLLBAR_E_PID_NAMESPACE.
 *
 * A *send window* limits the permits of one process, without keys, in 8 bytes of the caller's
 * memory, as the send window of TCP does. The receiver acknowledges permits one by one
 * (tollbar_send_window_release) or all up to a number (tollbar_send_window_acknowledge). Use only
 * one of the two calls for a window.
 *
 *     static tollbar_send_window window;
 *     tollbar_send_window_resize(&window, 4);
 *     ...
 *     if (tollbar_send_window_acquire(&window, 1, &message->number) != TOLLBAR_ALLOWED)
 *         return wait_for_acknowledgement();
 *     ...
 *     tollbar_send_window_acknowledge(&window, answer->last_number);
 */

/* The call opens a file whatever its owner and permissions are (TOLLBAR_TABLE_TRUST_ANYONE). */
#define TOLLBAR_IN_FLIGHT_TRUST_ANYONE 1u

/* This process's view of an in-flight table. Any number of threads may use it at once, and a
 * forked child may use it, too. Only tollbar_in_flight_close needs the view for itself. */
typedef struct tollbar_in_flight tollbar_in_flight;

/* How an in-flight table is made. Start from TOLLBAR_IN_FLIGHT_OPTIONS_INIT. */
typedef struct tollbar_in_flight_options {
    /* sizeof(tollbar_in_flight_options), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* The number of processes that have permits of one key at one time. 0: 8. A key has room for
     * four times as many, and at least for 32. */
    uint32_t processes;
    /* The number of keys that can have permits in flight at one time. A key with permits of
     * several processes counts once for each process. */
    uint64_t capacity;
    /* The permissions of a new file. 0 means 0600. The call refuses an existing file that more
     * users may write than `mode` lets write. */
    uint32_t mode;
    /* TOLLBAR_IN_FLIGHT_ flags. */
    uint32_t flags;
} tollbar_in_flight_options;

/* A permit in flight. It is plain data: any thread of the process may release it. 0 is no ticket. */
typedef uint64_t tollbar_ticket;

/* A send window: one word of the caller's memory, which threads may share. If it is 0, the limit
 * is 0; tollbar_send_window_resize sets the limit. */
typedef struct tollbar_send_window {
    /* The library's own. */
    uint64_t word;
} tollbar_send_window;

/* The state of a send window at one instant. `sent` and `acknowledged` count permits modulo 2^22.
 * Their difference is in flight. */
typedef struct tollbar_send_window_state {
    /* sizeof(tollbar_send_window_state), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* The most permits that may be in flight. */
    uint32_t limit;
    /* The number of the last permit that was sent. */
    uint32_t sent;
    /* The number of the last permit that was acknowledged. With tollbar_send_window_release: how
     * many permits were released, modulo 2^22. */
    uint32_t acknowledged;
    /* Permits sent and not acknowledged. */
    uint32_t in_flight;
    /* Permits that may be sent now. */
    uint32_t usable;
} tollbar_send_window_state;

/* Writes to `*bytes` the size of a table with these options. A table's size never changes. */
int32_t tollbar_in_flight_bytes(const tollbar_in_flight_options *options, uint64_t *bytes);

/* Makes a table in this process's own memory. The caller frees `*out` with
 * tollbar_in_flight_close. */
int32_t tollbar_in_flight_new(const tollbar_in_flight_options *options,
                              tollbar_in_flight **out);

/* tollbar_in_flight_new in memory that this process shares with the processes that it forks later. */
int32_t tollbar_in_flight_new_shared(const tollbar_in_flight_options *options,
                                     tollbar_in_flight **out);

/* Opens the table in the file at `path`, or makes the file if there is none. If several processes
 * call at once, one makes the file and the others open it. With `options` NULL the call makes no
 * file and opens any table. TOLLBAR_E_OTHER_CAPACITY: the file's table has another capacity, or is
 * for another number of processes.
 *
 * Give the file a directory of the service's own, such as /run/SERVICE, or /dev/shm. All processes
 * that have the file open at one time must be in one PID namespace (TOLLBAR_E_PID_NAMESPACE),
 * because each asks the system whether the others still run. A file that no process has open
 * begins empty, if it is of another boot or of another PID namespace. The call never frees the
 * permits of a file that is in use: TOLLBAR_E_OTHER_BOOT if its users' system gives another boot
 * id, and TOLLBAR_E_BOOT_ID if this process cannot read the boot id and the file is not in tmpfs.
 * Whom the call trusts: tollbar_table_open. */
int32_t tollbar_in_flight_open(const char *path,
                               const tollbar_in_flight_options *options,
                               tollbar_in_flight **out);

/* Makes a table in the caller's memory, which other processes may share. It overwrites as many of
 * the `size` bytes as tollbar_in_flight_bytes says; with capacity 0 it takes all. `memory` must be
 * aligned to 64 bytes and must outlive `*out`. */
int32_t tollbar_in_flight_init_in(void *memory,
                                  size_t size,
                                  const tollbar_in_flight_options *options,
                                  tollbar_in_flight **out);

/* Opens the table that tollbar_in_flight_init_in has made in the caller's memory, in this process
 * or another, at this address or another. */
int32_t tollbar_in_flight_attach(void *memory, size_t size, tollbar_in_flight **out);

/* Makes this process an owner now, so that its first tollbar_in_flight_acquire makes no system
 * calls for it. TOLLBAR_E_OWNERS_FULL: 1,024 owners use the table. TOLLBAR_E_PID_NAMESPACE: this
 * process is a forked child in another PID namespace, or cannot read in which one it is. */
int32_t tollbar_in_flight_join(const tollbar_in_flight *table);

/* Takes a permit of a key, unless `limit` permits of the key are in flight. Each call may give
 * another limit. With TOLLBAR_ALLOWED the caller gives `*ticket` to tollbar_in_flight_release,
 * once.
 *
 * Returns TOLLBAR_ALLOWED, TOLLBAR_DENIED, or an error. TOLLBAR_E_IN_FLIGHT_FULL: no slot is free
 * among those that the key may use. Before that, at most once a second, the call frees the slots
 * of killed processes and tries again. TOLLBAR_E_OWNERS_FULL and TOLLBAR_E_PID_NAMESPACE: as
 * tollbar_in_flight_join. A key has at most 2,097,120 permits in flight, whatever its limit. */
int32_t tollbar_in_flight_acquire(const tollbar_in_flight *table,
                                  const void *key,
                                  size_t length,
                                  uint32_t limit,
                                  tollbar_ticket *ticket);

/* Releases a permit. TOLLBAR_E_TICKET, and nothing changes, if `ticket` is 0, has been released,
 * belongs to another view of the table, or was acquired by this process's parent before a fork.
 *
 * Release each ticket once. Tickets of one key may be equal numbers, and so may tickets of two
 * keys of one process, because a slot that has become free may go to another key. So a second
 * release of one ticket may release another permit of this process. The key may then have one
 * permit more than its limit in flight, and the release of that other permit returns
 * TOLLBAR_E_TICKET. */
int32_t tollbar_in_flight_release(const tollbar_in_flight *table, tollbar_ticket ticket);

/* Writes to `*count` how many permits of a key are in flight. The count includes permits of a
 * killed process until the key refuses a request of another process. */
int32_t tollbar_in_flight_count(const tollbar_in_flight *table,
                                const void *key,
                                size_t length,
                                uint64_t *count);

/* Closes this process's view of a table and releases all permits that the process acquired through
 * it. No other call may use the view at the same time or later. The table stays for other
 * processes. With NULL the call does nothing. */
void tollbar_in_flight_close(tollbar_in_flight *table);

/* Sends `permits` permits: TOLLBAR_ALLOWED, or TOLLBAR_DENIED, and it sends none, if fewer are
 * usable. The call writes the number of the last permit to `*last`, unless `last` is NULL. */
int32_t tollbar_send_window_acquire(tollbar_send_window *window,
                                    uint32_t permits,
                                    uint32_t *last);

/* Releases any `permits` of the permits in flight. TOLLBAR_E_TICKET, and nothing changes, if fewer
 * are in flight. */
int32_t tollbar_send_window_release(tollbar_send_window *window, uint32_t permits);

/* Releases all permits up to number `last`, which a call of tollbar_send_window_acquire has
 * written. TOLLBAR_E_TICKET, and nothing changes, if no permit in flight has this number. */
int32_t tollbar_send_window_acknowledge(tollbar_send_window *window, uint32_t last);

/* Sets the limit, 1,048,575 at most (TOLLBAR_E_OUT_OF_RANGE). If more permits are in flight than
 * the new limit, none is usable until enough of them are released. */
int32_t tollbar_send_window_resize(tollbar_send_window *window, uint32_t limit);

/* Writes the state of a window to `*out`. */
int32_t tollbar_send_window_read(const tollbar_send_window *window,
                                 tollbar_send_window_state *out);

/* Options with their defaults; set capacity. */
#define TOLLBAR_IN_FLIGHT_OPTIONS_INIT { (uint32_t)sizeof(tollbar_in_flight_options), 0, 0, 0, 0 }

/* Details to be filled in. */
#define TOLLBAR_SEND_WINDOW_STATE_INIT { (uint32_t)sizeof(tollbar_send_window_state), 0, 0, 0, 0, 0 }

/* --------------------------------------------------------------------------------------------
 * 10. Several limits in one request
 * -------------------------------------------------------------------------------------------- */

/* A request often has several limits: one for its user and one for its address, one a second and one a day. A program that checks them one
 * after the other has already charged the first when the second refuses. tollbar_take_many charges
 * all of them or none:
 *
 *     const tollbar_limit limits[] = {
 *         TOLLBAR_LIMIT_OF_KEY(table, PER_SECOND, user, user_length, 1),
 *         TOLLBAR_LIMIT_OF_KEY(table, PER_DAY, user, user_length, 1),
 *         TOLLBAR_LIMIT_OF_LIMITER(everybody, 1),
 *     };
 *     tollbar_taken taken = TOLLBAR_TAKEN_INIT;
 *     if (tollbar_take_many(limits, 3, NULL, &taken) != TOLLBAR_ALLOWED)
 *         return try_later(names[taken.bound], taken.retry_after_ns);
 *
 * The guarantee: a call charges all of its limits or none, and no limit ever admits more than its
 * bound. The last two points below are the exceptions to "none".
 *
 *   - The call first peeks at all limits. If one refuses, the call charges none. Each limit that refuses records the
 *     refusal, as a check would: `ban` and `count rejected` count it, and a bucket with `init` begins to fill. Limits
 *     that admit the request record nothing.
 *   - If all limits admit the request, the call charges them in an order that is the same for all callers: the limit
 *     that refills a permit fastest comes first. So calls that race meet at the first limit that they share, and one
 *     of them passes.
 *   - If another call takes the last permits of a limit between the peek and the charge, the call returns the permits
 *     that it has charged to the limits before that one. Until then these limits may refuse other requests. Permits
 *     that they have refilled meanwhile stay charged.
 *   - If a process is killed between two charges, the charges that it made stay until the limits have refilled them.
 *
 * Some limits cannot take permits back, and the call charges these after all others:
 *
 *   - gcra with `borrow` or `ban`, sliding windows, logs, pacer, warm-up, level-refill, and interval with
 *     `anchor epoch`;
 *   - limiters with credit, and keys of which a thread has had credit;
 *   - in tables lists, and gcra at a few rates such as 7/s (docs/table.md names them).
 *
 * The limit that is charged last is never charged for a request that another limit refuses. If a
 * request has two such limits, the one that is charged first stays charged when the call loses a
 * race for the second.
 *
 * A limit may also be a permit in flight, such as "10 a second, and at most 4 open at one time":
 *
 *     tollbar_ticket ticket;
 *     const tollbar_limit limits[] = {
 *         TOLLBAR_LIMIT_OF_KEY(table, PER_SECOND, user, user_length, 1),
 *         TOLLBAR_LIMIT_OF_PERMIT(uploads, user, user_length, 4, &ticket),
 *     };
 *     if (tollbar_take_many(limits, 2, NULL, NULL) != TOLLBAR_ALLOWED)
 *         return too_many();
 *     receive(upload);
 *     tollbar_in_flight_release(uploads, ticket);
 *
 * The call acquires permits in flight before it charges a rate. If a rate refuses, the call
 * releases the permit and leaves `ticket` as it was. If the in-flight limit refuses
 * (TOLLBAR_REASON_IN_FLIGHT), no rate is charged. `retry_after_ns` is then TOLLBAR_NO_TIME, because
 * nobody knows when a holder releases its permit. A permit in flight adds nothing to
 * `reset_after_ns`. A key that is named twice takes two permits, each with its own ticket.
 *
 * A limiter or a table's key that is named twice is charged once, for both costs together. Two
 * views of one file are one table. If the two requests are of different classes, they pass if they
 * pass one after the other in some order. Every limit counts an admission in its statistics. Only
 * the binding limit (`bound` of tollbar_taken) counts a refusal there.
 */

/* The most limits of one call. */
#define TOLLBAR_LIMITS_MOST 16

/* One of several limits: a limiter, a key under a policy of a table, or a permit of a key of an
 * in-flight table. One of `limiter`, `table` and `in_flight` is not NULL. */
typedef struct tollbar_limit {
    /* The limiter, or NULL. */
    const tollbar_limiter *limiter;
    /* The table, or NULL. */
    const tollbar_table *table;
    /* The key of a table or an in-flight table. */
    const void *key;
    /* The number of the key's bytes. */
    size_t length;
    /* The cost of the request in this limit. It must be 1 for an in-flight table. */
    uint64_t cost;
    /* The number of the table's policy. */
    uint32_t policy;
    /* The most permits of the key in flight. It must be 0 for a limiter or a table. */
    uint32_t most;
    /* The in-flight table, or NULL. */
    const tollbar_in_flight *in_flight;
    /* Gets the ticket of the permit in flight if the request is admitted. NULL for a limiter or a
     * table. */
    tollbar_ticket *ticket;
    /* The name of the request's class, NUL-terminated, or NULL for none. NULL for an in-flight
     * table. */
    const char *class_name;
} tollbar_limit;

/* The common answer of several limits. */
typedef struct tollbar_taken {
    /* sizeof(tollbar_taken), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* TOLLBAR_ALLOWED, TOLLBAR_DENIED or TOLLBAR_NEVER: what the call returned. */
    uint32_t verdict;
    /* The smallest number of permits that a limit has left. */
    uint64_t remaining;
    /* The nanoseconds after which all limits would admit the same request if no other request came
     * first. 0 if the request was admitted, TOLLBAR_NO_TIME if no wait would help. */
    uint64_t retry_after_ns;
    /* Nanoseconds until all limits are as good as fresh if no other request comes first. */
    uint64_t reset_after_ns;
    /* The reason of the binding limit: one of TOLLBAR_REASON_*. */
    uint32_t reason;
    /* The index of the binding limit. If the request was refused, that is the limit with the
     * longest wait, otherwise the limit with the fewest permits left. */
    uint32_t bound;
} tollbar_taken;

/* Charges each of `count` limits, 1 to TOLLBAR_LIMITS_MOST, with its cost, or charges none. Each
 * limit reads its own clock.
 *
 * Returns TOLLBAR_ALLOWED, TOLLBAR_DENIED, TOLLBAR_NEVER, or an error. After an error nothing has
 * been charged. `out`, unless NULL, gets the common answer. `decisions`, unless NULL, points to
 * `count` structs of the first one's `struct_size` and gets the decision of each limit. If the
 * request is refused, each limit gives the decision that it would make alone. With NULL for both
 * the call is cheaper.
 *
 * Limits that are the same count as one, with the sum of their costs: one limiter, or one key
 * under one policy of one table, also through two views of its file. Requests of several classes
 * at one limit pass if they pass one after the other in some order. */
int32_t tollbar_take_many(const tollbar_limit *limits,
                          size_t count,
                          tollbar_decision *decisions,
                          tollbar_taken *out);

/* tollbar_take_many at the caller's time, which must be on the scale of every limit. */
int32_t tollbar_take_many_at(const tollbar_limit *limits,
                             size_t count,
                             uint64_t now_ns,
                             tollbar_decision *decisions,
                             tollbar_taken *out);

/* A limit that is a limiter. */
#define TOLLBAR_LIMIT_OF_LIMITER(limiter, cost) { (limiter), NULL, NULL, 0, (cost), 0, 0, NULL, NULL, NULL }

/* A limit that is a key of a table. */
#define TOLLBAR_LIMIT_OF_KEY(table, policy, key, length, cost)                                       \
    { NULL, (table), (key), (length), (cost), (policy), 0, NULL, NULL, NULL }

/* A limit that is a permit of a key of an in-flight table, of which at most `most` are in flight.
 * `*ticket` gets the permit's ticket. */
#define TOLLBAR_LIMIT_OF_PERMIT(in_flight, key, length, most, ticket)                                \
    { NULL, NULL, (key), (length), 1, 0, (most), (in_flight), (ticket), NULL }

/* TOLLBAR_LIMIT_OF_PERMIT whose most permits are the present value of a tollbar_adaptive (TOLLBAR_EXPERIMENTAL). When the
 * request ends, give `*ticket` to tollbar_adaptive_release_key with the request's latency. */
#define TOLLBAR_LIMIT_OF_ADAPTIVE(adaptive, in_flight, key, length, ticket)                          \
    { NULL, NULL, (key), (length), 1, 0, tollbar_adaptive_limit(adaptive), (in_flight), (ticket), NULL }

/* An outcome to be filled in. */
#define TOLLBAR_TAKEN_INIT { (uint32_t)sizeof(tollbar_taken), 0, 0, 0, 0, 0, 0 }

/* --------------------------------------------------------------------------------------------
 * 11. Reservations: permits booked ahead
 * -------------------------------------------------------------------------------------------- */

/* tollbar_table_check refuses a request and says when to try again. A job that would rather wait than fail has two calls.
 * tollbar_table_wait sleeps. tollbar_table_reserve returns at once and leaves the waiting to the
 * caller, who may have an event loop: it takes the permits first, for the earliest instant at which
 * they may be used. So reservations depart one after the other, however many there are.
 *
 *     tollbar_reservation mail;
 *     if (tollbar_table_reserve(table, MAILS, tenant, strlen(tenant), 1, patience_ns, &mail) != TOLLBAR_ALLOWED)
 *         return try_later();
 *     run_after(mail.wait_ns, send_mail, tenant);
 *
 *     tollbar_table_cancel(table, MAILS, tenant, strlen(tenant), &mail, NULL);        // the user has changed her mind
 *
 * tollbar_table_cancel gives back the permits that no later reservation waits behind.
 *
 * Callers of tollbar_table_wait wait in a queue for each key, in the order in which they came. A
 * caller that comes while others wait joins the queue, also if a permit is there. Only the first of
 * a queue holds a reservation, so callers that give up, and a process that is killed, leave no more
 * than one behind. Each process (each tollbar_table object) has its own queues. Between them turns
 * go by their first callers: a later caller of another queue may depart before this one, at most
 * one of each other queue for each caller before this one in its own.
 *
 * Gcra, lists of two, pacer, warm-up, and interval aligned to time 0 book ahead. All other
 * algorithms cannot: there a reserve is denied, and the first of a queue sleeps until a permit
 * could be free and tries again. A caller that checks in a loop may take every such permit; past a
 * reservation it gets none. The same calls exist for a limiter.
 */

/* Booked permits. This is plain data: it may be copied, and sent to another process that has the
 * same table. */
typedef struct tollbar_reservation {
    /* When the permits may be used, on the scale of the call's time. */
    uint64_t departs_ns;
    /* Nanoseconds from the call's time to `departs_ns`. 0 if the permits may be used at once. */
    uint64_t wait_ns;
    /* The permits that were charged: the call's `cost`, or 0 where no key was charged (an exempt
     * or empty key, and a new key that a full table admits without storing it). */
    uint64_t cost;
} tollbar_reservation;

/* Takes `cost` permits for the earliest instant at which they may be used. On TOLLBAR_ALLOWED the
 * caller must act `out->wait_ns` from now, not earlier.
 *
 * Returns TOLLBAR_DENIED if the wait would be longer than `max_wait_ns` or if the algorithm cannot
 * book ahead, and TOLLBAR_NEVER if the cost is above the burst. Then nothing has been charged. */
int32_t tollbar_limiter_reserve(const tollbar_limiter *limiter,
                                uint64_t cost,
                                uint64_t max_wait_ns,
                                tollbar_reservation *out);

/* tollbar_limiter_reserve at the caller's time: the wait counts from `now_ns`. */
int32_t tollbar_limiter_reserve_at(const tollbar_limiter *limiter,
                                   uint64_t cost,
                                   uint64_t max_wait_ns,
                                   uint64_t now_ns,
                                   tollbar_reservation *out);

/* Takes `cost` permits, sleeping up to `max_wait_ns` for them. Callers wait in a queue and get
 * their permits in the order in which they came.
 *
 * The call refuses at once, and charges nothing, if the permits would come later than that, after
 * those of all callers before it, or if `waiters` callers sleep already (tollbar_limiter_options;
 * TOLLBAR_REASON_QUEUE_FULL). A sliding window or log counts the callers before it only up to its
 * limit. A caller may then sleep until its time is up, and is refused then.
 *
 * A signal does not end the sleep, and the call is no cancellation point on Linux: a cancelled
 * thread ends its wait first. A signal handler must not leave the call by longjmp, and must not
 * wait itself. Returns the results of tollbar_limiter_check. */
int32_t tollbar_limiter_wait(const tollbar_limiter *limiter,
                             uint64_t cost,
                             uint64_t max_wait_ns,
                             tollbar_decision *out);

/* tollbar_limiter_reserve for a key of a table under policy number `policy`. A new key takes a
 * slot as with tollbar_table_check. If the table refuses the new key, the call returns
 * TOLLBAR_DENIED. */
int32_t tollbar_table_reserve(const tollbar_table *table,
                              uint32_t policy,
                              const void *key,
                              size_t length,
                              uint64_t cost,
                              uint64_t max_wait_ns,
                              tollbar_reservation *out);

/* tollbar_table_reserve at the caller's time: the wait counts from `now_ns`. */
int32_t tollbar_table_reserve_at(const tollbar_table *table,
                                 uint32_t policy,
                                 const void *key,
                                 size_t length,
                                 uint64_t cost,
                                 uint64_t max_wait_ns,
                                 uint64_t now_ns,
                                 tollbar_reservation *out);

/* tollbar_limiter_wait for a key of a table. Each tollbar_table object has its own queues, one for
 * each key; `waiters` callers of all keys may sleep in them at one time (tollbar_table_options).
 * The first callers of a key's queues, in all processes, depart in the order of their bookings. */
int32_t tollbar_table_wait(const tollbar_table *table,
                           uint32_t policy,
                           const void *key,
                           size_t length,
                           uint64_t cost,
                           uint64_t max_wait_ns,
                           tollbar_decision *out);

/* Gives back the permits of a reservation that the caller does not use, and writes the number that
 * came back to `*back`. `back` may be NULL. Cancel a reservation once only.
 *
 * All permits of the latest reservation come back. Of an earlier one only those come back that no
 * later reservation waits behind, usually none, because the later callers keep the departure times
 * that they have. Permits that the limit has refilled meanwhile do not come back again. So a
 * cancelled reservation never admits more than the limit.
 *
 * These algorithms give permits back, and the others write 0: gcra without `borrow` and `ban`, in
 * limiters and tables without credit; lifetime quotas; fixed windows, interval with
 * `anchor first`, curves and calendars, in the window or slice of the charge; weighted windows, in
 * that window and the next. Of a list each policy gets back the permits that it has not refilled,
 * in a table only the policy that refills faster. The number is that of the policy that got more
 * back.
 *
 * If the policy has become a slower one since the reservation, the call may return permits that
 * the former policy has refilled. The limiter may then admit that many permits more than the
 * slower policy's bound, and never more than the bounds of both policies together. */
int32_t tollbar_limiter_cancel(const tollbar_limiter *limiter,
                               const tollbar_reservation *reservation,
                               uint64_t *back);

/* tollbar_limiter_cancel at the caller's time, which must not be earlier than that of any call for
 * this limiter that has returned. */
int32_t tollbar_limiter_cancel_at(const tollbar_limiter *limiter,
                                  const tollbar_reservation *reservation,
                                  uint64_t now_ns,
                                  uint64_t *back);

/* tollbar_limiter_cancel for a reservation of a table's key. A key that is not in the table gets
 * nothing back. A key that was reset or evicted and is in the table again may get back permits of
 * its former state. So cancel before you reset a key. A receipt (tollbar_table_take) knows its
 * policy, and returns none after a change. */
int32_t tollbar_table_cancel(const tollbar_table *table,
                             uint32_t policy,
                             const void *key,
                             size_t length,
                             const tollbar_reservation *reservation,
                             uint64_t *back);

/* tollbar_table_cancel at the caller's time, which must not be earlier than that of any call for
 * this key that has returned. */
int32_t tollbar_table_cancel_at(const tollbar_table *table,
                                uint32_t policy,
                                const void *key,
                                size_t length,
                                const tollbar_reservation *reservation,
                                uint64_t now_ns,
                                uint64_t *back);

/* --------------------------------------------------------------------------------------------
 * 12. Receipts: an estimate now, the real cost later
 * -------------------------------------------------------------------------------------------- */

/* The cost of a request is often an estimate: the tokens of a model, the bytes of an answer, a second of computing. A program that charges
 * the highest cost wastes most of the limit. A program that charges after the work learns too late
 * that the limit is used up. With a receipt the caller charges an estimate before the work, and
 * corrects the charge after it:
 *
 *     tollbar_receipt receipt;
 *     if (tollbar_table_take(table, TOKENS, user, user_length, 2000, &receipt, NULL) != TOLLBAR_ALLOWED)
 *         return try_later();
 *     tokens = answer(request);
 *     tollbar_table_settle(table, &receipt, tokens, NULL);
 *
 * If the cost is below the estimate, the unused permits go back to the key, without those that the
 * key has regained by refill since the charge. So in any interval t the permits that requests
 * really use are at most burst + rate * t. tollbar_table_settle_in_full also returns the regained
 * permits, and breaks that bound. If the cost is above the estimate, the difference is charged as a
 * debt, which is one burst at most, and later requests of the key wait until it is paid. An
 * interval may then exceed the bound by the sum of these differences over the receipts that were
 * open at one time.
 *
 * Only the first call for a receipt settles it, even if there are copies. A second call returns
 * nothing to the key, and charges a cost above the estimate again. Without such a call the estimate
 * stays charged. The table remembers its last 8,184 receipts. An older receipt counts as settled,
 * and so does one whose policy has changed since the charge.
 *
 * Which policies return permits:
 *
 *     gcra, quota                                       always
 *     fixed-window, curve, calendar,
 *     interval with `anchor first`                      until the window or slice of the charge ends
 *     weighted-window                                   until the next window ends, as far as the permits have not faded
 *     a list                                            only the policy that refills faster
 *     all others; gcra with `borrow` or `ban`;
 *     gcra at a few rates such as 7/s (docs/table.md)   never
 *
 * A key of which a thread has had credit (tollbar_table_options.hot_keys) gets none back either. A
 * receipt of an exempt key charges and returns nothing. If a key is reset or evicted between the
 * charge and the call, the call may lower a debt that the key has made since. So settle before you
 * reset.
 *
 * The calls return TOLLBAR_E_RECEIPT for a damaged receipt and for a receipt of another table. The
 * check has 32 bits. Two tables of one seed (tollbar_table_copy needs that) accept each other's
 * receipts. Such a receipt counts as too old.
 */

/* The proof of a charge. It is plain data: it may be copied, stored, and settled by another
 * process that has the same table. */
typedef struct tollbar_receipt {
    /* The library's own. */
    uint64_t words[4];
} tollbar_receipt;

/* What tollbar_table_settle did with a receipt. */
typedef struct tollbar_settled {
    /* sizeof(tollbar_settled), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* TOLLBAR_YES if this call settled the receipt. TOLLBAR_NO if an earlier call did, or the
     * receipt is too old: then no permits went back. */
    uint32_t first;
    /* The number of whole permits that went back to the key. A part of one more may have gone
     * back, too. */
    uint64_t given_back;
    /* The number of permits above the estimate that could not be charged, because the key's debt
     * is as high as its state can hold. */
    uint64_t rest;
} tollbar_settled;

/* tollbar_table_check of `estimate` permits, with a receipt on TOLLBAR_ALLOWED. With any other
 * result `*receipt` is left alone. TOLLBAR_E_RECEIPT for an estimate of 2^56 or more. */
int32_t tollbar_table_take(const tollbar_table *table,
                           uint32_t policy,
                           const void *key,
                           size_t length,
                           uint64_t estimate,
                           tollbar_receipt *receipt,
                           tollbar_decision *out);

/* tollbar_table_take at the caller's time. */
int32_t tollbar_table_take_at(const tollbar_table *table,
                              uint32_t policy,
                              const void *key,
                              size_t length,
                              uint64_t estimate,
                              uint64_t now_ns,
                              tollbar_receipt *receipt,
                              tollbar_decision *out);

/* Settles a receipt at the real cost: returns the unused permits of the estimate to the key,
 * without those that the key has regained by refill since the charge, or charges the permits above
 * the estimate as a debt (tollbar_table_charge).
 *
 * Returns TOLLBAR_ALLOWED, TOLLBAR_DENIED if a part of the debt could not be charged, or an error.
 * TOLLBAR_E_RECEIPT means that the receipt is not one of this table. `out`, unless NULL, gets the
 * details. */
int32_t tollbar_table_settle(const tollbar_table *table,
                             const tollbar_receipt *receipt,
                             uint64_t cost,
                             tollbar_settled *out);

/* tollbar_table_settle at the caller's time, which must not be earlier than that of any call for
 * this key that has returned. */
int32_t tollbar_table_settle_at(const tollbar_table *table,
                                const tollbar_receipt *receipt,
                                uint64_t cost,
                                uint64_t now_ns,
                                tollbar_settled *out);

/* tollbar_table_settle that returns all unused permits of the estimate, also those that the key
 * has regained by refill. It may break the policy's bound: each receipt that stays open while the
 * limit refills a burst may let one more burst pass. */
int32_t tollbar_table_settle_in_full(const tollbar_table *table,
                                     const tollbar_receipt *receipt,
                                     uint64_t cost,
                                     tollbar_settled *out);

/* Details to be filled in. */
#define TOLLBAR_SETTLED_INIT { (uint32_t)sizeof(tollbar_settled), 0, 0, 0 }

/* --------------------------------------------------------------------------------------------
 * 13. Charges afterwards, and bans
 * -------------------------------------------------------------------------------------------- */

/* A check asks before the work. Some costs are known only after it: the bytes of an answer, the tokens of a model, and whether
 * a login has failed. Such a caller peeks before the work, and charges after it:
 *
 *     if (tollbar_table_peek(table, LOGINS, address, length, 1, NULL) != TOLLBAR_ALLOWED)
 *         return too_many_requests();
 *     if (!password_is_right(request))
 *         tollbar_table_charge(table, LOGINS, address, length, 1, NULL);
 *
 * A charge does not ask: it may leave the key in debt, and later requests are refused until the
 * debt is paid. Several requests may peek before the first of them charges, so only the debt keeps
 * the average within the limit. How much a charge can take:
 *
 *   - Token buckets (gcra, interval) hold a debt of one burst below empty: at most 2 * burst + rate * t is admitted
 *     and charged in any interval t.
 *   - A pacer: one largest cost more than checks could take. Gcra with `borrow`: as much as the word can hold.
 *   - A warm-up: the largest cost in one call, unless the state already owes more than that costs.
 *   - A level-refill: as many permits as its lowest band refills while the bucket fills from empty.
 *   - Fixed windows, weighted windows, calendars, quotas and curves hold no debt: they count up to their limit. A
 *     sliding window and a sliding log give the permits that they have.
 *
 * The call returns the rest and does not charge it. The counts of decisions leave out charges.
 *
 * With `ban` in its policy, as in "5/min ban 1h after 3", a key that has been refused 3 times is
 * banned for an hour: its requests are denied with TOLLBAR_REASON_BANNED. `retry_after` is then the
 * exact end of the ban, for a cost of 1. The bucket is empty at that time and refills.
 *
 *   - A denied check counts as a refusal, and so does a wait that cannot get its permits in time. A peek,
 *     TOLLBAR_NEVER, and a take_up_to or reserve that takes nothing do not count. To count a refused peek, call the
 *     check at the time of that peek: tollbar_table_peek_at and tollbar_table_check_at with one `now_ns` decide
 *     alike. Of several limits in one call the first that refuses counts the refusal.
 *   - A charge that leaves no permit counts as a refusal: with "5/min ban 1h" the fifth failed login of the example
 *     above bans.
 *   - Refusals are forgotten when the bucket is full again, and at the end of a ban. Refusals during a ban do not
 *     prolong it.
 *   - tollbar_table_reset and tollbar_limiter_reset end a ban.
 *   - Bans are part of the key's state: they are in the table's file, and a changed policy with `ban` takes them
 *     over. After such a change a ban may last longer, by at most the refill of the new burst.
 *   - A full table that evicts (TOLLBAR_ON_FULL_EVICT_NEAREST) lets a new key take a banned key's slot. The new key
 *     is admitted and then owes until the ban would have ended, as with any slot that it takes. */

/* Charges `cost` permits of the key under policy number `policy` without asking, now. Returns
 * TOLLBAR_ALLOWED if all of them have been charged, TOLLBAR_DENIED if the key's state has no room
 * for some, or an error. `*rest`, unless `rest` is NULL, gets the number of permits that have not
 * been charged. Of a list of two policies each is charged as far as it has room, and the rest is
 * what one of them could not take.
 *
 * A new key takes a slot as it does with its first admission. In a full table nothing is charged
 * with TOLLBAR_ON_FULL_DENY and TOLLBAR_ON_FULL_ALLOW. An exempt key is charged nothing, with a
 * rest of 0. */
int32_t tollbar_table_charge(const tollbar_table *table,
                             uint32_t policy,
                             const void *key,
                             size_t length,
                             uint64_t cost,
                             uint64_t *rest);

/* tollbar_table_charge at the caller's time. */
int32_t tollbar_table_charge_at(const tollbar_table *table,
                                uint32_t policy,
                                const void *key,
                                size_t length,
                                uint64_t cost,
                                uint64_t now_ns,
                                uint64_t *rest);

/* tollbar_table_charge for a limiter. */
int32_t tollbar_limiter_charge(const tollbar_limiter *limiter, uint64_t cost, uint64_t *rest);

/* tollbar_limiter_charge at the caller's time. */
int32_t tollbar_limiter_charge_at(const tollbar_limiter *limiter,
                                  uint64_t cost,
                                  uint64_t now_ns,
                                  uint64_t *rest);

/* --------------------------------------------------------------------------------------------
 * 14. Classes: requests that leave permits for others
 * -------------------------------------------------------------------------------------------- */

/* Classes of requests can share one limit. A lower class leaves a number of permits, its *reserve*, to the higher classes. The policy names the
 * classes and their reserves, and a request names its class:
 *
 *     tollbar_limiter_from_text("100/s reserve standard 20 urgent 0", &limiter, NULL);
 *     result = tollbar_limiter_check_class(limiter, 1, urgent ? "urgent" : "standard", NULL);
 *
 * The library refuses standard requests when 20 or fewer permits are left. Such a refusal has
 * TOLLBAR_REASON_RESERVE, and its `retry_after_ns` is the time until the cost and the reserve are
 * there. A call that names no class has no reserve. The number of a class can stand for its name:
 * "1" for the policy's first one. If the policy has no such class, the call returns
 * TOLLBAR_E_NO_SUCH_CLASS and charges nothing. A limit of tollbar_take_many has its class in
 * `class_name`, and a request of a batch in `class_number`.
 *
 * The reserve is a part of the burst and not of the rate: while higher classes take every permit
 * that is refilled, lower classes get none. A list leaves the reserve in both of its buckets. A
 * refusal because of the reserve counts toward a ban.
 *
 * A program that computes the reserve itself needs no classes:
 * tollbar_limiter_check_leaving(limiter, 1, 20, NULL).
 *
 * Policies that lend (`borrow`, pacer, warm-up), sliding windows, logs and limiters with credit
 * have no reserve.
 * Credit that threads hold for a hot key counts as taken, so the check of such a key may leave more than the reserve. */
/* tollbar_limiter_check for a request that passes only if at least `reserve` permits are left
 * after it. TOLLBAR_NEVER if the cost and the reserve together are above the burst.
 * TOLLBAR_E_OPTION_MISMATCH for a limiter without reserves (see above). */
int32_t tollbar_limiter_check_leaving(const tollbar_limiter *limiter,
                                      uint64_t cost,
                                      uint64_t reserve,
                                      tollbar_decision *out);

/* tollbar_limiter_check_leaving at the caller's time. */
int32_t tollbar_limiter_check_leaving_at(const tollbar_limiter *limiter,
                                         uint64_t cost,
                                         uint64_t reserve,
                                         uint64_t now_ns,
                                         tollbar_decision *out);

/* tollbar_table_check for a request that passes only if the key has at least `reserve` permits
 * left after it. TOLLBAR_NEVER if the cost and the reserve together are above the burst.
 * TOLLBAR_E_OPTION_MISMATCH under a policy without reserves (see above). */
int32_t tollbar_table_check_leaving(const tollbar_table *table,
                                    uint32_t policy,
                                    const void *key,
                                    size_t length,
                                    uint64_t cost,
                                    uint64_t reserve,
                                    tollbar_decision *out);

/* tollbar_table_check_leaving at the caller's time. */
int32_t tollbar_table_check_leaving_at(const tollbar_table *table,
                                       uint32_t policy,
                                       const void *key,
                                       size_t length,
                                       uint64_t cost,
                                       uint64_t reserve,
                                       uint64_t now_ns,
                                       tollbar_decision *out);

/* tollbar_limiter_check for a request of a class of the policy ("100/s reserve low 20 high 0"): it
 * passes only if the class's reserve is left after it. `class_name` is NUL-terminated: the name,
 * or the number in decimal, which is "1" for the first class. A refusal for the reserve has
 * TOLLBAR_REASON_RESERVE. TOLLBAR_NEVER if the cost and the reserve together are above the burst.
 * TOLLBAR_E_NO_SUCH_CLASS if the policy has no such class. */
int32_t tollbar_limiter_check_class(const tollbar_limiter *limiter,
                                    uint64_t cost,
                                    const char *class_name,
                                    tollbar_decision *out);

/* tollbar_limiter_check_class at the caller's time. */
int32_t tollbar_limiter_check_class_at(const tollbar_limiter *limiter,
                                       uint64_t cost,
                                       const char *class_name,
                                       uint64_t now_ns,
                                       tollbar_decision *out);

/* tollbar_table_check for a request of a class of the policy. `class_name` and the results are
 * those of tollbar_limiter_check_class. For a key with an override the classes are the override's. */
int32_t tollbar_table_check_class(const tollbar_table *table,
                                  uint32_t policy,
                                  const void *key,
                                  size_t length,
                                  uint64_t cost,
                                  const char *class_name,
                                  tollbar_decision *out);

/* tollbar_table_check_class at the caller's time. */
int32_t tollbar_table_check_class_at(const tollbar_table *table,
                                     uint32_t policy,
                                     const void *key,
                                     size_t length,
                                     uint64_t cost,
                                     const char *class_name,
                                     uint64_t now_ns,
                                     tollbar_decision *out);

/* --------------------------------------------------------------------------------------------
 * 15. Hierarchies: guaranteed rates, ceilings, and what is idle
 * -------------------------------------------------------------------------------------------- */

/* A hierarchy divides one rate among classes, for example a service's rate among its tenants, and a tenant's part among its users. Each class has a
 * guaranteed rate and a ceiling, and borrows what others leave idle.
 *
 *     tollbar_policy_spec nodes = TOLLBAR_POLICY_SPEC_INIT;
 *     const tollbar_policy_spec *policies[] = {&nodes};
 *     tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(10000);
 *     tollbar_table *table;
 *     tollbar_hierarchy *shop;
 *     uint32_t acme, byte, users;
 *     options.on_full = TOLLBAR_ON_FULL_DENY;
 *     tollbar_policy_spec_parse(TOLLBAR_HIERARCHY_POLICY, strlen(TOLLBAR_HIERARCHY_POLICY), &nodes, NULL);
 *     tollbar_table_new(policies, 1, &options, &table);
 *     tollbar_hierarchy_new("1000/s", 100000000, 8, 0, &shop);                             // up to 8 classes, 100 ms of burst
 *     tollbar_hierarchy_add(shop, TOLLBAR_HIERARCHY_ROOT, "acme", "400/s", "", 1, &acme);   // guaranteed 400/s, up to 1000/s
 *     tollbar_hierarchy_add(shop, TOLLBAR_HIERARCHY_ROOT, "byte", "100/s", "500/s", 1, &byte);
 *     tollbar_hierarchy_add(shop, acme, "users", "1/s", "50/s", 100, &users);               // up to 100 users with a guarantee
 *     ...
 *     if (tollbar_hierarchy_take(shop, table, users, "ann", 3, 1, NULL) != TOLLBAR_ALLOWED)
 *         return too_many();                                                               // nothing has been charged
 *
 * A node never exceeds its ceiling, nor that of a node above it. It gets its guaranteed rate
 * whatever others ask for: tollbar_hierarchy_add refuses a node if the guarantees of its siblings
 * and its own exceed the parent's. The nearest classes that ask for more get the permits that a
 * class does not use, and all borrowers of a class get the same rate, or what they ask for if that
 * is less. In a simulation 1,000 tenants get such max-min fair shares within 0.5 %.
 * docs/hierarchy.md has the exact guarantees and the limits.
 *
 * A call charges the leaf first and the root last, all or none. If it loses a race for a node, it
 * gives the charges below that node back, without what has refilled since. A process that is killed
 * between two charges leaves those that it has made.
 *
 * Each node is a key of the table, so processes share it: make the same hierarchy in each of them.
 * A hierarchy of
 * other rates whose classes have the same names finds the same nodes, with their debts. */
/* The root of a hierarchy. */
#define TOLLBAR_HIERARCHY_ROOT 0

/* A tree of classes. It is plain data of one process: the states are in a table. */
typedef struct tollbar_hierarchy tollbar_hierarchy;

/* The answer to a request for a class of a hierarchy. */
typedef struct tollbar_share {
    /* sizeof(tollbar_share), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* TOLLBAR_ALLOWED, TOLLBAR_DENIED or TOLLBAR_NEVER: what the call returned. */
    uint32_t verdict;
    /* Permits that the leaf could take at this instant, as long as their interval stays the same. */
    uint64_t remaining;
    /* Nanoseconds until the same request would be admitted if no other request came first. 0 if
     * the request was admitted, TOLLBAR_NO_TIME if no wait would help. */
    uint64_t retry_after_ns;
    /* Nanoseconds until no node from the leaf to the root owes anything if no other request comes
     * first. */
    uint64_t reset_after_ns;
    /* The nanoseconds that a permit costs the leaf at present: its rate is 10^9 / `interval_ns` a
     * second. */
    uint64_t interval_ns;
    /* One of TOLLBAR_REASON_*. */
    uint32_t reason;
    /* The class of the binding node: of a refusal the one with the longest wait, and of an
     * admission the one with the fewest permits left. */
    uint32_t bound;
} tollbar_share;

/* Makes a hierarchy of up to `classes` classes, the root included, 1 to 65536. The root admits
 * `rate`, such as "1000/s", and is class TOLLBAR_HIERARCHY_ROOT. Its nodes are keys under the
 * policy of number `policy`, which is TOLLBAR_HIERARCHY_POLICY. `burst_ns`, 1 ms to 10 s and at
 * least twenty permits of `rate`, is the time for which a leaf may be ahead of its rate. The
 * caller frees `*out` with tollbar_hierarchy_free.
 *
 * TOLLBAR_E_CLASS_RATE, TOLLBAR_E_OUT_OF_RANGE for a burst, TOLLBAR_E_CAPACITY for a number of
 * classes, TOLLBAR_E_NO_MEMORY. */
int32_t tollbar_hierarchy_new(const char *rate,
                              uint64_t burst_ns,
                              uint32_t classes,
                              uint32_t policy,
                              tollbar_hierarchy **out);

/* Frees a hierarchy that no call is using. The table keeps its nodes. With NULL the call does
 * nothing. */
void tollbar_hierarchy_free(tollbar_hierarchy *hierarchy);

/* Adds a child of the class `parent`, and writes its number to `*out`. Processes find the same
 * nodes by `name`, which no other child of `parent` has. `guaranteed` is the rate that the child
 * gets whatever others ask for, or "" for none. `ceiling` is the rate that it never exceeds, or ""
 * for that of its parent. `keys` is 1, or the number of keys that each get such a node: at least
 * as many as ask at one time, because their guarantees count for the parent. No other call may use
 * the hierarchy at the same time.
 *
 * TOLLBAR_E_OUT_OF_RANGE for 0 keys, TOLLBAR_E_GUARANTEE, TOLLBAR_E_CLASS_RATE,
 * TOLLBAR_E_CLASS_TREE, TOLLBAR_E_CLASS_NUMBER if there is no class `parent`, TOLLBAR_E_CAPACITY
 * if the hierarchy has all its classes. After an error nothing has been added. */
int32_t tollbar_hierarchy_add(tollbar_hierarchy *hierarchy,
                              uint32_t parent,
                              const char *name,
                              const char *guaranteed,
                              const char *ceiling,
                              uint32_t keys,
                              uint32_t *out);

/* Takes `cost` permits for the leaf class `leaf`, or for a key of it, from the leaf and all
 * classes above it, or from none. A key of 0 bytes is a node of its own, and `key` may then be
 * NULL. `out`, unless NULL, gets the answer.
 *
 * Returns TOLLBAR_ALLOWED, TOLLBAR_DENIED, TOLLBAR_NEVER, or an error: TOLLBAR_E_CLASS_NUMBER if
 * there is no such class or it has children, TOLLBAR_E_OTHER_POLICIES if the table's policy is not
 * TOLLBAR_HIERARCHY_POLICY, and those of tollbar_table_check. After an error the call has charged
 * nothing. */
int32_t tollbar_hierarchy_take(const tollbar_hierarchy *hierarchy,
                               const tollbar_table *table,
                               uint32_t leaf,
                               const void *key,
                               size_t key_length,
                               uint64_t cost,
                               tollbar_share *out);

/* tollbar_hierarchy_take at the caller's time, on the scale of the table's clock. */
int32_t tollbar_hierarchy_take_at(const tollbar_hierarchy *hierarchy,
                                  const tollbar_table *table,
                                  uint32_t leaf,
                                  const void *key,
                                  size_t key_length,
                                  uint64_t cost,
                                  uint64_t now_ns,
                                  tollbar_share *out);

/* The policy of a table's nodes, in which a permit is a nanosecond. */
#define TOLLBAR_HIERARCHY_POLICY "1000000000/s burst 1099511627776"
/* An answer to be written. */
#define TOLLBAR_SHARE_INIT { (uint32_t)sizeof(tollbar_share), 0, 0, 0, 0, 0, 0, 0 }
/* --------------------------------------------------------------------------------------------
 * 16. Meters: green, yellow and red packets
 * -------------------------------------------------------------------------------------------- */

/* A meter colours packets, and lets the caller decide what to do with each colour: send green ones, mark or delay yellow ones, drop red ones.
 *
 *     static tollbar_meter_state uploads;                          // full buckets
 *     tollbar_meter meter = TOLLBAR_METER_INIT;
 *     meter.committed_bytes = 1000000;                             // a second
 *     meter.committed_burst = 100000;
 *     meter.second_burst = 50000;
 *     switch (tollbar_meter_color(&meter, &uploads, length, TOLLBAR_COLOR_GREEN)) {
 *     case TOLLBAR_COLOR_GREEN:  return send(packet);
 *     case TOLLBAR_COLOR_YELLOW: return send_marked(packet);
 *     default:                   return drop(packet);
 *     }
 *
 * With one rate (RFC 2697, srTCM) tokens go to the committed bucket and, while that is full, to the
 * excess bucket. A packet is green if the committed bucket has its bytes, yellow if the excess
 * bucket has them. With two rates (RFC 2698, trTCM) each bucket has its own rate: a packet is red
 * if the peak bucket lacks its bytes, yellow if only the committed one does. The colours are those
 * of the RFCs' texts, token by token.
 *
 * One meter may serve any number of states. The calls take no lock: a state changes by one 16-byte compare-and-swap. */
/* Within the committed rate and burst. Also the colour of a packet that no meter has coloured. */
#define TOLLBAR_COLOR_GREEN 0

/* Above the committed burst, and within the excess burst or the peak rate. */
#define TOLLBAR_COLOR_YELLOW 1

/* Above both. */
#define TOLLBAR_COLOR_RED 2

/* What a meter measures. Start from TOLLBAR_METER_INIT. With `peak_bytes` 0 it is RFC 2697's: one
 * rate with a committed and an excess burst. Otherwise it is RFC 2698's: a committed and a peak
 * rate. */
typedef struct tollbar_meter {
    /* sizeof(tollbar_meter), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* Must be 0. */
    uint32_t reserved;
    /* The committed rate (CIR): bytes per `period_ns`, below 16 a nanosecond. */
    uint64_t committed_bytes;
    /* The period of the rates in nanoseconds. */
    uint64_t period_ns;
    /* The committed burst (CBS) in bytes, up to 2^62. */
    uint64_t committed_burst;
    /* The peak rate (PIR): bytes per `period_ns`, at least `committed_bytes`. 0: one rate. */
    uint64_t peak_bytes;
    /* The peak burst (PBS) in bytes, or with one rate the excess burst (EBS). */
    uint64_t second_burst;
} tollbar_meter;

/* The buckets of a meter: 24 bytes of the caller's memory. Threads may share it, and processes in
 * shared memory. If all bytes are 0, the buckets are full. The library uses the 16 bytes of it
 * that are aligned to 16, so do not move a state to another address. */
typedef struct tollbar_meter_state {
    /* The library's own. */
    uint64_t words[3];
} tollbar_meter_state;

/* Returns TOLLBAR_ALLOWED if a meter can have these numbers. TOLLBAR_E_PERIOD_ZERO,
 * TOLLBAR_E_BURST_ZERO, TOLLBAR_E_BURST_TOO_LARGE; TOLLBAR_E_RATE_TOO_HIGH also if the peak rate
 * is below the committed one; TOLLBAR_E_UNSUPPORTED if the processor has no 16-byte
 * compare-and-swap. */
int32_t tollbar_meter_validate(const tollbar_meter *meter);

/* Returns the colour of a packet of `bytes`, one of TOLLBAR_COLOR_*, and charges the bytes to the
 * buckets of that colour; a red packet charges nothing. `before` is the colour that an earlier
 * meter gave, or TOLLBAR_COLOR_GREEN; the result is never better. The call reads
 * TOLLBAR_CLOCK_TSC. It returns TOLLBAR_E_OUT_OF_RANGE if `before` is no TOLLBAR_COLOR_ value, and
 * the errors of tollbar_meter_validate. */
int32_t tollbar_meter_color(const tollbar_meter *meter,
                            tollbar_meter_state *state,
                            uint64_t bytes,
                            uint32_t before);

/* tollbar_meter_color at the caller's time, in nanoseconds of one clock. */
int32_t tollbar_meter_color_at(const tollbar_meter *meter,
                               tollbar_meter_state *state,
                               uint64_t bytes,
                               uint32_t before,
                               uint64_t now_ns);

/* A meter to start from: its period is a second. Set `committed_bytes`, `committed_burst` and
 * `second_burst`, and for two rates `peak_bytes`. */
#define TOLLBAR_METER_INIT { (uint32_t)sizeof(tollbar_meter), 0, 0, 1000000000, 0, 0, 0 }
/* --------------------------------------------------------------------------------------------
 * 17. Queues: items that leave at a policy's pace
 * -------------------------------------------------------------------------------------------- */

/* A limiter refuses requests above its rate. A queue keeps them as items, up to a bound, and gives them out later in the order of their offers: for
 * example text messages to a gateway that takes ten a second.
 *
 *     tollbar_queue *outbox;
 *     if (tollbar_queue_from_text("10/s algo pacer", 1000, &outbox, NULL) != 0)        // up to 1,000 messages wait
 *         return 1;
 *     ...
 *     tollbar_queue_run(outbox, send_message, gateway);          // in a thread of the caller's: calls send_message(gateway, message) for each
 *     ...
 *     if (tollbar_queue_offer(outbox, message, NULL) != TOLLBAR_ALLOWED)
 *         return try_later();
 *
 * A loop of the caller's can take the items instead. tollbar_queue_take never sleeps,
 * tollbar_queue_next_departure says when it will next return an item, and tollbar_queue_take_within
 * sleeps.
 *
 * The policy charges an item when it leaves, not when it is offered. So a worker that was late gets
 * no burst to catch up, unless the policy has one: `slack` of a pacer, `burst` of a token bucket.
 * Two offers that overlap in time may enter in either order.
 *
 * No call takes a lock. Only _new and _from_text allocate, and _free frees. Only _run,
 * _offer_within and _take_within sleep. An offer, a take, a cancellation, a close or a stop makes a
 * system call only to wake such a sleeper.
 *
 * A queue may have a spare (tollbar_queue_options), which holds up to `spare` items that overflow
 * the capacity. When an item leaves the first queue, the oldest item of the spare moves up into it.
 * Items leave in the order in which they were offered. `spare` of a ticket is above 0 if the item
 * went into the spare. A producer that sees this can slow down before the queue refuses an offer.
 * The spare has no rate of its own: its items leave at the rate of the first queue.
 */

/* A queue. Threads of one process share it. */
typedef struct tollbar_queue tollbar_queue;

/* How a queue is made. All zero but `struct_size` is the default. */
typedef struct tollbar_queue_options {
    /* sizeof(tollbar_queue_options), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* A TOLLBAR_CLOCK_ number, for the calls without `_at`. */
    uint32_t clock;
    /* Callers that may sleep in tollbar_queue_offer_within at one time; 0: 1024. More are refused
     * at once. */
    uint32_t waiters;
    /* Items that wait in the spare; 0: there is none. See the introduction. */
    uint32_t spare;
} tollbar_queue_options;

/* An item's place in a queue. It is plain data, and needs no end. */
typedef struct tollbar_queue_ticket {
    /* The number of the item: the first item of a queue has number 0. */
    uint64_t number;
    /* The number of items before this one when it was offered. A cancelled item counts as long as
     * an older item is in the queue. */
    uint64_t ahead;
    /* The item's place in the spare when it was offered: 1 is the next to go into the first queue.
     * 0: the item was put into the first queue. */
    uint64_t spare;
} tollbar_queue_ticket;

/* The function that tollbar_queue_run calls with its context and an item. */
typedef void (*tollbar_queue_work)(void *context, void *item);

/* Makes a queue in which up to `capacity` items wait. Items that may leave at once do not wait, so
 * more items can be in the queue: a burst for a token bucket (with `borrow` one more), and the
 * slack and one more for a pacer. `options` may be NULL. The caller frees `*out` with
 * tollbar_queue_free.
 *
 * The policy must have a state of one word: sliding-window and sliding-log return
 * TOLLBAR_E_NOT_ONE_WORD. It must not count refusals: `ban` and `count rejected` return
 * TOLLBAR_E_OPTION_MISMATCH, because the policy refuses each caller that takes an item too early.
 * The queue takes 16 bytes for each item that can be in it, rounded up to a power of two, and
 * allocates nothing later. TOLLBAR_E_CAPACITY: `capacity` is 0, or `capacity`, the spare, the
 * larger of burst and slack, and 1 add up to more than 2^28. */
int32_t tollbar_queue_new(const tollbar_policy_spec *spec,
                          uint64_t capacity,
                          const tollbar_queue_options *options,
                          tollbar_queue **out);

/* Makes a queue of a NUL-terminated text such as "10/s algo pacer", with default options. `error`
 * may be NULL. */
int32_t tollbar_queue_from_text(const char *text,
                                uint64_t capacity,
                                tollbar_queue **out,
                                tollbar_policy_error *error);

/* Frees a queue that no call is using. It does not free the items that are still in the queue. The
 * caller can take them with tollbar_queue_drain before. With NULL the call does nothing. */
void tollbar_queue_free(tollbar_queue *queue);

/* Puts an item behind all others. `ticket`, unless NULL, gets its place. Any pointer is an item,
 * NULL too.
 *
 * Returns TOLLBAR_DENIED if the queue is full, and TOLLBAR_E_CLOSED after tollbar_queue_close.
 * Then the item stays the caller's. */
int32_t tollbar_queue_offer(const tollbar_queue *queue,
                            void *item,
                            tollbar_queue_ticket *ticket);

/* tollbar_queue_offer at the caller's time. */
int32_t tollbar_queue_offer_at(const tollbar_queue *queue,
                               void *item,
                               uint64_t now_ns,
                               tollbar_queue_ticket *ticket);

/* tollbar_queue_offer that sleeps up to `max_wait_ns` for room. It returns TOLLBAR_DENIED at once
 * if `waiters` callers sleep already (tollbar_queue_options). */
int32_t tollbar_queue_offer_within(const tollbar_queue *queue,
                                   void *item,
                                   uint64_t max_wait_ns,
                                   tollbar_queue_ticket *ticket);

/* Takes the oldest item if the policy lets it leave now, and writes it to `*item`.
 *
 * Returns TOLLBAR_DENIED if no item may leave now, and TOLLBAR_E_CLOSED if the queue is empty and
 * closed, so that none ever will. */
int32_t tollbar_queue_take(const tollbar_queue *queue, void **item);

/* tollbar_queue_take at the caller's time. */
int32_t tollbar_queue_take_at(const tollbar_queue *queue, uint64_t now_ns, void **item);

/* tollbar_queue_take that sleeps up to `max_wait_ns` until an item may leave. */
int32_t tollbar_queue_take_within(const tollbar_queue *queue,
                                  uint64_t max_wait_ns,
                                  void **item);

/* Whether the queue has an item. If so, `*at_ns` gets the time at which tollbar_queue_take will
 * next return one: the present or later, or TOLLBAR_NO_TIME if the policy's limit is 0. */
int32_t tollbar_queue_next_departure(const tollbar_queue *queue, uint64_t *at_ns);

/* tollbar_queue_next_departure at the caller's time. */
int32_t tollbar_queue_next_departure_at(const tollbar_queue *queue,
                                        uint64_t now_ns,
                                        uint64_t *at_ns);

/* Takes an item out of the queue before it leaves. TOLLBAR_YES: `*item` has it, and it will not
 * leave. TOLLBAR_NO: it has left, or was cancelled before. The items behind it move up. */
int32_t tollbar_queue_cancel(const tollbar_queue *queue,
                             const tollbar_queue_ticket *ticket,
                             void **item);

/* Takes the oldest item at once, without the policy. A program that ends can empty a queue with
 * it. TOLLBAR_YES: `*item` has the item. TOLLBAR_NO: the queue is empty. */
int32_t tollbar_queue_drain(const tollbar_queue *queue, void **item);

/* Refuses all offers from now on, and wakes all callers that sleep. Items in the queue stay, and
 * callers can take them. An offer of another thread that overlaps this call may still succeed. So
 * a program that relies on TOLLBAR_E_CLOSED must end its producers first. */
int32_t tollbar_queue_close(const tollbar_queue *queue);

/* The number of items in the queue. A cancelled item counts as long as an older item is in the
 * queue. */
int32_t tollbar_queue_length(const tollbar_queue *queue, uint64_t *items);

/* The time that the calls without `_at` read (tollbar_limiter_now). */
int32_t tollbar_queue_now(const tollbar_queue *queue, uint64_t *now_ns);

/* Takes the items at the policy's pace and calls `work(context, item)` for each, until the queue
 * is closed and empty or tollbar_queue_stop is called. It blocks, so a program calls it in a
 * thread of its own, or in several, each of which then has one item at a time. */
int32_t tollbar_queue_run(const tollbar_queue *queue,
                          tollbar_queue_work work,
                          void *context);

/* Makes all calls of tollbar_queue_run return after the call of `work` that they are in. Later
 * calls of tollbar_queue_run return at once. Items in the queue stay there. Any thread may call
 * it, also from `work`. The call does not wait. */
int32_t tollbar_queue_stop(const tollbar_queue *queue);

/* The default options. */
#define TOLLBAR_QUEUE_OPTIONS_INIT { (uint32_t)sizeof(tollbar_queue_options), 0, 0, 0 }

/* --------------------------------------------------------------------------------------------
 * 18. Schedules: another policy by time of day and day of the week
 * -------------------------------------------------------------------------------------------- */

/* A schedule says which policy is in force at which time of the week:
 *
 *     POLICY { ", " [ DAYS ] [ HH:MM-HH:MM ] POLICY } [ ", zone" ZONE ]
 *
 *     1000/min, mon-fri 09:00-18:00 100/min, zone Europe/Berlin
 *     100/s, 22:00-06:00 500/s, sat sun 06:00-22:00 200/s
 *
 * The first policy is in force whenever no entry is. There are up to 16 entries.
 *
 *   - An entry is in force while local clocks show one of its days and a time from its begin to just before its end.
 *     Without days it holds every day, without a time the whole day.
 *   - An entry whose end is before its begin goes on over midnight, and belongs to the day on which it begins.
 *   - Two entries that overlap are an error, and so is an entry that ends at its begin.
 *   - If local clocks jump over the begin of an entry, it begins at the jump. If they show an hour twice, each entry
 *     of that hour is in force twice.
 *   - The zone is that of a calendar (section 1), UTC if not given. It is the zone of the days and times: a policy
 *     that is a calendar names its own.
 *
 * A limiter or a table follows a schedule if one thread of each process sets the policy in force
 * once a second:
 *
 *     tollbar_policy_spec policy = TOLLBAR_POLICY_SPEC_INIT;
 *     uint64_t now = 0;
 *     if (tollbar_clock_now(TOLLBAR_CLOCK_WALL, &now) == 0
 *         && tollbar_schedule_at(text, strlen(text), now, &policy, NULL, NULL) == 0)
 *         tollbar_table_set_policy(table, 0, &policy, TOLLBAR_KEEP_COUNT);
 *
 * tollbar_table_set_policy changes nothing if the policy is in force already, so all processes of a
 * table may do this. They agree, because the policy depends on the text and the instant alone. If a
 * process sets the policy of a moment ago too late, or the system's clock was set, the next call of
 * any process corrects it within a second.
 *
 * At a switch the permits left stay left, up to the new burst, and a full bucket stays full. In any
 * interval a key is admitted at most the sum of the bounds of the policies that were in force in
 * it, each as often as it came into force.
 *
 * Policies that count in windows of one length, such as 1000/month and 10/month, or 500/forever and
 * 10/forever, keep the permits used instead. A count above the smaller limit becomes that limit. So
 * with "1000/month, sun 10/month" a key may take 990 permits after each Sunday. If a limit must
 * hold over the switches, make it a policy of its own, and charge both with tollbar_take_many.
 *
 * Each call reads the text, and a zone's name in it from the system's zone data.
 * tollbar_schedule_print replaces the
 * name by its rule. */
/* A buffer of this size takes any schedule's text. */
#define TOLLBAR_SCHEDULE_TEXT_MAX 19296

/* Writes to `*policy` the policy that a schedule's text has in force at `unix_ns`, and to
 * `*until_ns`, unless NULL, the time at which the next one comes into force, or TOLLBAR_NO_TIME.
 * Both times are nanoseconds since 1970 (TOLLBAR_CLOCK_WALL).
 *
 * `text` has `len` bytes and needs no NUL. Returns 0, or an error of tollbar_policy_spec_parse, of
 * which `error`, unless NULL, gets the column. */
int32_t tollbar_schedule_at(const char *text,
                            size_t len,
                            uint64_t unix_ns,
                            tollbar_policy_spec *policy,
                            uint64_t *until_ns,
                            tollbar_policy_error *error);

/* Writes the canonical text of a schedule, with a NUL, into `buffer` of `capacity` bytes: a zone's
 * name has become its rule, so the text means the same on machines with other zone data.
 *
 * `length`, unless NULL, gets the text's length without the NUL. TOLLBAR_SCHEDULE_TEXT_MAX bytes
 * are always enough. If the buffer is too small, the call writes `length` and returns
 * TOLLBAR_E_BUFFER_TOO_SMALL. Errors of the text are those of tollbar_schedule_at. */
int32_t tollbar_schedule_print(const char *text,
                               size_t len,
                               char *buffer,
                               size_t capacity,
                               size_t *length,
                               tollbar_policy_error *error);

/* --------------------------------------------------------------------------------------------
 * 19. Experimental: limits in flight that follow the latency
 * -------------------------------------------------------------------------------------------- */

#ifdef TOLLBAR_EXPERIMENTAL

/* How many requests should a server have at one time? With too few it is idle, with too many they wait in its queue, and the best number changes
 * when the server's capacity does. An adaptive limit learns this number from the latencies of the
 * requests:
 *
 *     tollbar_adaptive_options options = TOLLBAR_ADAPTIVE_OPTIONS_INIT;
 *     static tollbar_adaptive server;
 *     options.initial = 20;
 *     options.least = 5;
 *     options.most = 1000;
 *     tollbar_adaptive_init(&server, &options);
 *     ...
 *     tollbar_ticket ticket;
 *     if (tollbar_adaptive_acquire(&server, &ticket) != TOLLBAR_ALLOWED)
 *         return overloaded();
 *     begin = now();
 *     answer = ask(server_address);
 *     tollbar_adaptive_release(&server, ticket, answer ? TOLLBAR_OUTCOME_ANSWERED : TOLLBAR_OUTCOME_DROPPED, now() - begin);
 *
 * TOLLBAR_ADAPTIVE_OPTIONS_INIT has windows of 100 ms. All releases of a window are one sample.
 * Gradient2's long-term latency is a mean over about 600 samples. So if each release is a sample
 * (`window_ns` 0) and there are thousands a second, this mean follows an overload within a second,
 * and Gradient2 raises the limit instead of lowering it. With windows an overload of any length stays one: the mean does
 * not learn from a window in which more permits than before were in flight and the server did hardly more work.
 *
 * The calls take no lock and never wait. The limit stays between `least` and `most`. The library
 * never lowers it only to measure the latency of an idle server.
 *
 * A rate, what is open and a limit that follows the latency are one decision of tollbar_take_many. The call takes from
 * the rate and opens a request at the server, or does neither:
 *
 *     const tollbar_limit limits[] = {
 *         TOLLBAR_LIMIT_OF_KEY(table, PER_SECOND, user, user_length, 1),
 *         TOLLBAR_LIMIT_OF_ADAPTIVE(&server, open, "server", 6, &ticket),
 *     };
 *     if (tollbar_take_many(limits, 2, NULL, NULL) != TOLLBAR_ALLOWED)
 *         return try_later();
 *     answer = ask(server_address);
 *     tollbar_adaptive_release_key(&server, open, "server", 6, ticket, TOLLBAR_OUTCOME_ANSWERED, now() - begin);
 *
 * tollbar_adaptive_acquire counts permits in the limit's own 128 bytes, so the permits of a killed
 * process stay in flight there. If processes share a limit, put it into shared memory and let an
 * in-flight table count: tollbar_adaptive_acquire_key and tollbar_adaptive_release_key.
 */

/* Netflix's Gradient2. A sample raises the limit by 0.8. If its latency is above 1.5 times the
 * long-term latency, it also lowers the limit, in proportion to the excess and by up to a tenth. A
 * sample with less than half of the limit in flight changes nothing, so the limit grows to at most
 * twice what was in flight. */
#define TOLLBAR_ADAPTIVE_GRADIENT2 0u

/* Additive increase, multiplicative decrease. A dropped request or a latency above `timeout_ns`
 * lowers the limit by a tenth. Any other sample raises it by 1, if at least half of the limit is
 * in flight. */
#define TOLLBAR_ADAPTIVE_AIMD 1u

/* The request was answered. Its latency counts. */
#define TOLLBAR_OUTCOME_ANSWERED 0u

/* The server refused the request, or the request timed out. AIMD lowers the limit. Gradient2 uses
 * latencies only, so it takes no sample. */
#define TOLLBAR_OUTCOME_DROPPED 1u

/* The request says nothing about the server, for example because the client gave it up. The limit
 * takes no sample. */
#define TOLLBAR_OUTCOME_IGNORED 2u

/* A limit and the count of its permits in flight: 128 bytes of the caller's memory. Threads may
 * share it, and processes in shared memory. If all bytes are 0, the limit is 0. */
typedef struct tollbar_adaptive {
    /* The library's own. */
    uint64_t words[16];
} tollbar_adaptive;

/* How a limit learns. Start from TOLLBAR_ADAPTIVE_OPTIONS_INIT. */
typedef struct tollbar_adaptive_options {
    /* sizeof(tollbar_adaptive_options), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* One of TOLLBAR_ADAPTIVE_*. */
    uint32_t algorithm;
    /* The limit before the first sample. */
    uint32_t initial;
    /* The floor, at least 1. */
    uint32_t least;
    /* The ceiling. */
    uint32_t most;
    /* Must be 0. */
    uint32_t reserved;
    /* With TOLLBAR_ADAPTIVE_AIMD: a latency above this counts as a dropped request. With
     * TOLLBAR_ADAPTIVE_GRADIENT2 it must be 0. */
    uint64_t timeout_ns;
    /* The length of a window in nanoseconds. All releases of a window are one sample: their mean
     * latency, and the most permits that were in flight at any of them. A window with fewer than
     * ten releases goes on. 0: each release is a sample. */
    uint64_t window_ns;
} tollbar_adaptive_options;

/* The state of a limit at one instant. */
typedef struct tollbar_adaptive_state {
    /* sizeof(tollbar_adaptive_state), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* The limit. */
    uint32_t limit;
    /* The permits of tollbar_adaptive_acquire in flight. */
    uint64_t in_flight;
    /* Gradient2's long-term latency in nanoseconds. 0 before the first sample, and with AIMD. */
    uint64_t latency_ns;
} tollbar_adaptive_state;

/* Makes a limit in the caller's memory, with nothing in flight. TOLLBAR_E_OUT_OF_RANGE: an
 * algorithm that does not exist, bounds that are not 1 <= least <= initial <= most, or AIMD
 * without `timeout_ns`. */
int32_t tollbar_adaptive_init(tollbar_adaptive *limit,
                              const tollbar_adaptive_options *options);

/* Takes one permit of the limit for a request. Returns TOLLBAR_ALLOWED and writes `*ticket`; when
 * the request ends, the caller passes the ticket to tollbar_adaptive_release of the same limit,
 * once. Returns TOLLBAR_DENIED if all permits of the limit are in flight. */
int32_t tollbar_adaptive_acquire(tollbar_adaptive *limit, tollbar_ticket *ticket);

/* Releases a permit. The limit learns from the request's `outcome` (TOLLBAR_OUTCOME_*) and from
 * `latency_ns`, which the caller measures always from the same point, such as the acquisition.
 *
 * Release each ticket once. TOLLBAR_E_TICKET if `ticket` is 0 or no permit is in flight,
 * TOLLBAR_E_OUT_OF_RANGE if there is no such outcome: nothing has changed. */
int32_t tollbar_adaptive_release(tollbar_adaptive *limit,
                                 tollbar_ticket ticket,
                                 uint32_t outcome,
                                 uint64_t latency_ns);

/* tollbar_adaptive_release at the caller's time. A window ends by this time (`window_ns`). */
int32_t tollbar_adaptive_release_at(tollbar_adaptive *limit,
                                    tollbar_ticket ticket,
                                    uint32_t outcome,
                                    uint64_t latency_ns,
                                    uint64_t now_ns);

/* tollbar_in_flight_acquire of a key with the present value of `*limit`. The table counts the
 * permits of all processes. `*limit` counts none of them. */
int32_t tollbar_adaptive_acquire_key(tollbar_adaptive *limit,
                                     const tollbar_in_flight *table,
                                     const void *key,
                                     size_t length,
                                     tollbar_ticket *ticket);

/* tollbar_in_flight_release of a ticket of tollbar_adaptive_acquire_key. The limit learns from the
 * outcome and the latency, as in tollbar_adaptive_release. */
int32_t tollbar_adaptive_release_key(tollbar_adaptive *limit,
                                     const tollbar_in_flight *table,
                                     const void *key,
                                     size_t length,
                                     tollbar_ticket ticket,
                                     uint32_t outcome,
                                     uint64_t latency_ns);

/* The present limit, for TOLLBAR_LIMIT_OF_ADAPTIVE. 0, which admits nothing, if `limit` is NULL. */
uint32_t tollbar_adaptive_limit(const tollbar_adaptive *limit);

/* Writes the state of a limit to `*out`. */
int32_t tollbar_adaptive_read(const tollbar_adaptive *limit,
                              tollbar_adaptive_state *out);

/* Gradient2 with windows of 100 ms. The limit begins at 20, and stays between 1 and 1000. */
#define TOLLBAR_ADAPTIVE_OPTIONS_INIT                                                                \
    { (uint32_t)sizeof(tollbar_adaptive_options), TOLLBAR_ADAPTIVE_GRADIENT2, 20, 1, 1000, 0, 0, 100000000 }

/* A state to be filled in. */
#define TOLLBAR_ADAPTIVE_STATE_INIT { (uint32_t)sizeof(tollbar_adaptive_state), 0, 0, 0 }

#endif /* TOLLBAR_EXPERIMENTAL */

/* --------------------------------------------------------------------------------------------
 * 20. Experimental: pacing of a client's requests to servers
 * -------------------------------------------------------------------------------------------- */

#ifdef TOLLBAR_EXPERIMENTAL

/* A client that calls limited servers keeps one pace for each host:
 *
 *     tollbar_pacing_options options = TOLLBAR_PACING_OPTIONS_INIT;
 *     tollbar_pacing *pace;
 *     tollbar_pacing_new(&options, 256, &pace);
 *     ...
 *     tollbar_pacing_ticket ticket;
 *     uint64_t now, wait;
 *     tollbar_clock_now(TOLLBAR_CLOCK_MONOTONIC, &now);
 *     tollbar_pacing_acquire_at(pace, host, strlen(host), now, &ticket);
 *     while (tollbar_pacing_wait_at(pace, &ticket, now, &wait) == TOLLBAR_DENIED) {
 *         sleep_ns(wait);
 *         tollbar_clock_now(TOLLBAR_CLOCK_MONOTONIC, &now);
 *     }
 *     answer = request(host);
 *     tollbar_clock_now(TOLLBAR_CLOCK_MONOTONIC, &now);
 *     tollbar_pacing_respond_at(pace, &ticket, answer.status, answer.header, answer.header_length, unix_ns, now);
 *
 * 429, 503 with Retry-After, and 403 with no permit left count as throttled: the rate falls. Other
 * answers raise it. After Retry-After, or an answer that says that no permit is left, no caller
 * sends to the host until that time, or for `pause_most_ns` if that is less. The library delays
 * requests. It repeats none.
 *
 * A host's rate begins at the ceiling. It stays between `least` and `most`, whatever the host says.
 * Rates are in millionths of a request per second.
 *
 * Threads: one call at a time. Callers in several threads hold a mutex of their own around each
 * call, and release it before they sleep. Processes cannot share a pace. Only tollbar_pacing_new
 * allocates.
 */

/* The rate is cut to 0.7, rises to its former value, stays near it, and then rises faster and
 * faster, as in the AWS SDKs' adaptive retry mode. A host that sends only Retry-After has another
 * curve: once a rate was kept for two pauses, it is cut to 0.97, and is back after fifty pauses. */
#define TOLLBAR_PACING_CUBIC 0u

/* The rate is cut to 0.9, and rises by `increase` in each second. */
#define TOLLBAR_PACING_AIMD 1u

/* The rates of a client's hosts. */
typedef struct tollbar_pacing tollbar_pacing;

/* How rates are learned. Start from TOLLBAR_PACING_OPTIONS_INIT. */
typedef struct tollbar_pacing_options {
    /* sizeof(tollbar_pacing_options), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* TOLLBAR_PACING_CUBIC or TOLLBAR_PACING_AIMD. */
    uint32_t algorithm;
    /* The floor of a host's rate in millionths of a request per second, at least 1. */
    uint64_t least;
    /* The ceiling in millionths of a request per second, up to 10^15. */
    uint64_t most;
    /* With TOLLBAR_PACING_AIMD: the rise in a second, in millionths of a request per second. With
     * TOLLBAR_PACING_CUBIC it must be 0. */
    uint64_t increase;
    /* The longest pause in nanoseconds that an answer can cause. */
    uint64_t pause_most_ns;
    /* How many requests may be sent at once after an idle time, at least 1. */
    uint32_t burst;
    /* Must be 0. */
    uint32_t reserved;
} tollbar_pacing_options;

/* A turn to send one request to a host. Callers may copy it. */
typedef struct tollbar_pacing_ticket {
    /* The library's own. */
    uint64_t host;
    /* The library's own. */
    uint64_t turn;
} tollbar_pacing_ticket;

/* A host at one instant. */
typedef struct tollbar_pacing_state {
    /* sizeof(tollbar_pacing_state), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* Must be 0. */
    uint32_t reserved;
    /* The rate in millionths of a request per second. */
    uint64_t rate;
    /* The smoothed rate of answers in millionths of a request per second. 0 in the first half
     * second. */
    uint64_t measured;
    /* How many callers wait. */
    uint64_t waiting;
    /* Nanoseconds until the pause ends. 0: none. */
    uint64_t paused_ns;
} tollbar_pacing_state;

/* Makes room for the rates of 1 to 4096 hosts (TOLLBAR_E_CAPACITY). If a new host finds no room,
 * the host that has been idle for the longest time is forgotten. A host that has been idle for ten
 * minutes counts as new. `options` may be NULL. The caller frees `*out` with tollbar_pacing_free.
 *
 * TOLLBAR_E_OUT_OF_RANGE: an algorithm that does not exist, bounds that are not 1 <= least <= most
 * <= 10^15, a burst of 0, or `increase` with TOLLBAR_PACING_CUBIC. */
int32_t tollbar_pacing_new(const tollbar_pacing_options *options,
                           size_t hosts,
                           tollbar_pacing **out);

/* Frees the rates. NULL is ignored. */
void tollbar_pacing_free(tollbar_pacing *pacing);

/* Takes the next turn of a host, whose name is any `length` bytes that name what has one limit,
 * such as `https://api.example.com`. `now_ns` is the time of any clock that does not go back.
 *
 * Pass the ticket to tollbar_pacing_wait_at until that returns TOLLBAR_ALLOWED, send the request,
 * and pass the ticket to tollbar_pacing_respond_at once. A request that was sent and got no answer
 * needs no further call. */
int32_t tollbar_pacing_acquire_at(tollbar_pacing *pacing,
                                  const char *host,
                                  size_t length,
                                  uint64_t now_ns,
                                  tollbar_pacing_ticket *ticket);

/* Returns TOLLBAR_ALLOWED and writes 0 if the ticket's request may be sent now; it counts as sent
 * then. Otherwise it returns TOLLBAR_DENIED and writes the nanoseconds to sleep before the caller
 * asks again: at least the rest of a pause, and after that at most a second, because the rate may
 * rise meanwhile. */
int32_t tollbar_pacing_wait_at(tollbar_pacing *pacing,
                               const tollbar_pacing_ticket *ticket,
                               uint64_t now_ns,
                               uint64_t *wait_ns);

/* The host has answered a ticket's request with an HTTP status up to 65535
 * (TOLLBAR_E_OUT_OF_RANGE). `header` is the answer's header as for tollbar_http_read; fields that
 * say nothing about limits may be left out. `utc_ns` is the time of the answer in nanoseconds
 * since 1970. */
int32_t tollbar_pacing_respond_at(tollbar_pacing *pacing,
                                  const tollbar_pacing_ticket *ticket,
                                  uint32_t status,
                                  const char *header,
                                  size_t length,
                                  uint64_t utc_ns,
                                  uint64_t now_ns);

/* Gives a turn back before its request was sent. The callers behind it move up. Give each ticket
 * back at most once. */
int32_t tollbar_pacing_leave_at(tollbar_pacing *pacing,
                                const tollbar_pacing_ticket *ticket,
                                uint64_t now_ns);

/* Writes the state of a host. Returns TOLLBAR_YES, or TOLLBAR_NO without writing if the host is
 * unknown or forgotten. */
int32_t tollbar_pacing_read_at(tollbar_pacing *pacing,
                               const char *host,
                               size_t length,
                               uint64_t now_ns,
                               tollbar_pacing_state *out);

/* Cubic, from 0.5/s up to 10^6/s, bursts of 1, pauses of at most 5 minutes. */
#define TOLLBAR_PACING_OPTIONS_INIT                                                                                    \
    { (uint32_t)sizeof(tollbar_pacing_options), TOLLBAR_PACING_CUBIC, 500000, 1000000000000, 0, 300000000000, 1, 0 }

/* A state to be filled in. */
#define TOLLBAR_PACING_STATE_INIT { (uint32_t)sizeof(tollbar_pacing_state), 0, 0, 0, 0, 0 }

#endif /* TOLLBAR_EXPERIMENTAL */

/* --------------------------------------------------------------------------------------------
 * 21. Overrides: keys with a policy of their own
 * -------------------------------------------------------------------------------------------- */

/* Most keys of a table are under its policies. A few have a contract of their own, such as a large customer:
 *
 *     tollbar_policy_spec contract = TOLLBAR_POLICY_SPEC_INIT;
 *     tollbar_policy_spec_parse("1000/s burst 50", 15, &contract, NULL);
 *     tollbar_table_set_override(table, CALLS, "acme", 4, &contract, TOLLBAR_KEEP_COUNT);
 *
 *     tollbar_table_clear_override(table, CALLS, "acme", 4);       // the contract has ended
 *
 * Requests for "acme" still name the policy CALLS, and count under it. The override decides them:
 * checks, peeks, batches, several limits, reservations, receipts, charges and hot keys. Overrides
 * are part of the table: all processes that share it have them, its file and tollbar_table_copy
 * keep them, and tollbar_table_set_policy leaves them alone.
 *
 *   - Up to `overrides` keys of a table may have one (tollbar_table_options; 32 bytes each). Equal overrides share
 *     one of the table's 255 versions of policies. So many keys may have one of a few contracts, and some 250
 *     contracts may differ.
 *   - In any interval a key gets at most the sum of the bounds of all policies that it was under in that interval.
 *   - A receipt (tollbar_table_take) gives permits back only while its key is under the policy of the charge. So a
 *     receipt from before an override gives nothing back under it, and does so again when the override has been
 *     cleared. Credit of hot keys is void after any change.
 *   - While a table has no override, overrides cost nothing. While it has some, every request looks its key up in
 *     them. */

/* A key with a policy of its own. */
typedef struct tollbar_table_override {
    /* sizeof(tollbar_table_override), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* The policy's number that calls name. */
    uint32_t policy;
    /* The key's hash under that policy (tollbar_table_hash). The table stores nothing else of the
     * key. */
    uint64_t hash;
    /* The `from` of the next call. */
    uint64_t next;
} tollbar_table_override;

/* Gives a key a policy of its own in place of number `policy`, or another one if it has one.
 * `keep`, a TOLLBAR_KEEP_ number, says what the key keeps of its debt when the override begins,
 * and when it ends. The key comes under it at its next request, in every process.
 *
 * Returns TOLLBAR_E_OVERRIDES_FULL if as many keys have overrides as the table's options allow,
 * TOLLBAR_E_POLICY_VERSIONS if too many different policies are in use, and
 * TOLLBAR_E_MIXED_POLICIES if this policy or that of the table is a sliding window or log and the
 * table has no room (tollbar_table_options.room), or TOLLBAR_E_SLOT_ROOM if it has too little. An
 * error changes nothing. */
int32_t tollbar_table_set_override(const tollbar_table *table,
                                   uint32_t policy,
                                   const void *key,
                                   size_t length,
                                   const tollbar_policy_spec *spec,
                                   uint32_t keep);

/* Puts a key back under policy number `policy`. Returns TOLLBAR_YES, or TOLLBAR_NO if it had no
 * override. */
int32_t tollbar_table_clear_override(const tollbar_table *table,
                                     uint32_t policy,
                                     const void *key,
                                     size_t length);

/* Writes to `out` the policy that a key has of its own in place of number `policy`. Returns
 * TOLLBAR_YES, or TOLLBAR_NO if it has none. */
int32_t tollbar_table_get_override(const tollbar_table *table,
                                   uint32_t policy,
                                   const void *key,
                                   size_t length,
                                   tollbar_policy_spec *out);

/* Finds the first override from place `from` on, and writes its key to `out` and its policy to
 * `spec`, which may be NULL. Begin with `from` 0 and continue with `next`. Returns TOLLBAR_YES, or
 * TOLLBAR_NO if none is left. An override that is set or cleared between the calls may appear or
 * not. */
int32_t tollbar_table_next_override(const tollbar_table *table,
                                    uint64_t from,
                                    tollbar_table_override *out,
                                    tollbar_policy_spec *spec);

/* An override to be filled in. */
#define TOLLBAR_TABLE_OVERRIDE_INIT { (uint32_t)sizeof(tollbar_table_override), 0, 0, 0 }

/* --------------------------------------------------------------------------------------------
 * 22. Keys made of network addresses
 * -------------------------------------------------------------------------------------------- */

/* A host can use another IPv6 address for every request, so a limit for each IPv6 address limits nothing. Limit the /64:
 *
 *     tollbar_prefix client;
 *     if (tollbar_prefix_parse(text, strlen(text), 32, 64, &client) == 0)
 *         tollbar_table_check(table, 0, client.bytes, client.length, 1, NULL);
 */

/* A network prefix as a key: the first `length` bytes of `bytes`. */
typedef struct tollbar_prefix {
    /* The number of bytes in the key. */
    uint32_t length;
    /* The family (4 or 6), the number of bits in the prefix, and the bytes of the address that
     * hold these bits. All other bits are 0. */
    uint8_t bytes[20];
} tollbar_prefix;

/* Makes the key of an address in network byte order. With `length` 4 it is an IPv4 address, and
 * the key has its first `ipv4_bits` bits. With `length` 16 it is an IPv6 address, and the key has
 * its first `ipv6_bits` bits. IPv6 addresses that stand for an IPv4 address are treated as IPv4:
 * ::ffff:a.b.c.d, and 64:ff9b::a.b.c.d, which a translator (NAT64) makes. Returns 0,
 * TOLLBAR_E_ADDRESS for another length, or TOLLBAR_E_OUT_OF_RANGE for more than 32 or 128 bits,
 * whichever family the address has. */
int32_t tollbar_prefix_from_address(const void *address,
                                    size_t length,
                                    uint32_t ipv4_bits,
                                    uint32_t ipv6_bits,
                                    tollbar_prefix *out);

/* tollbar_prefix_from_address for an address as text of `length` bytes: "192.0.2.1",
 * "2001:db8::1". A port ("192.0.2.1:80"; an IPv6 address with a port is in brackets), brackets, a
 * zone ("%eth0") and blanks around the address do not count. */
int32_t tollbar_prefix_parse(const char *text,
                             size_t length,
                             uint32_t ipv4_bits,
                             uint32_t ipv6_bits,
                             tollbar_prefix *out);

/* Reads a network of trusted proxies for tollbar_prefix_of_client: "10.0.0.0/8", "2001:db8::/32",
 * one address, or "unix:" for connections by a Unix socket. Returns 0, or TOLLBAR_E_ADDRESS for
 * another text and for a network with bits beyond its prefix. */
int32_t tollbar_network_parse(const char *text, size_t length, tollbar_prefix *out);

/* Makes the key of a client behind proxies. `peer` is the address of the connection as text, as
 * tollbar_prefix_parse reads it; an empty text, "unix:..." or "@..." is a Unix socket. `forwarded`
 * is the value of X-Forwarded-For, and of several such fields their values joined by commas.
 * `proxies` are `count` networks whose proxies are trusted.
 *
 * The client is the peer or, if the peer is a trusted proxy, the right-most address in `forwarded`
 * that no trusted proxy has. What a client writes into the header itself stands to the left of it.
 * A text that is no address ends the walk: then the last trusted proxy is the client.
 *
 * Returns 0, TOLLBAR_E_ADDRESS if the client has no address (a text that is none, a Unix socket)
 * or if a network was not made by tollbar_network_parse, or TOLLBAR_E_OUT_OF_RANGE for more than
 * 32 or 128 bits. */
int32_t tollbar_prefix_of_client(const char *peer,
                                 size_t peer_length,
                                 const char *forwarded,
                                 size_t forwarded_length,
                                 const tollbar_prefix *proxies,
                                 size_t count,
                                 uint32_t ipv4_bits,
                                 uint32_t ipv6_bits,
                                 tollbar_prefix *out);

/* A prefix to be filled in. */
#define TOLLBAR_PREFIX_INIT { 0, { 0 } }

/* --------------------------------------------------------------------------------------------
 * 23. Routes: which of several nodes a key belongs to
 * -------------------------------------------------------------------------------------------- */

/* Where each node of a cluster limits on its own, the requests of a key must reach one node. Every caller that knows the same nodes chooses
 * the same node for a key, without asking anybody. If a node leaves, only its own keys move, and
 * they spread over the others by their weights.
 *
 *     static const tollbar_node nodes[] = {{"10.0.0.1", 8, 1, 0}, {"10.0.0.2", 8, 2, 0}};       // the second gets two thirds of the keys
 *     size_t node = 0;
 *     if (tollbar_route(nodes, 2, user, strlen(user), seed, &node) == TOLLBAR_YES)
 *         send_to(nodes[node].name, request);
 *
 * The method is weighted rendezvous hashing with SipHash-2-4. It takes 100 to 200 ns for each node.
 */

/* The most nodes of tollbar_route. */
#define TOLLBAR_NODES_MOST 1024

/* A node. */
typedef struct tollbar_node {
    /* The bytes that identify the node: a name or an address. Its keys stay if its place in the
     * list changes. */
    const void *name;
    /* The bytes of the name. */
    size_t length;
    /* Its share of the keys is its weight by the sum of all weights. 0: it gets none. */
    uint32_t weight;
    /* Must be 0. */
    uint32_t reserved;
} tollbar_node;

/* Writes to `*node` the index of the node that a key belongs to: 1 to TOLLBAR_NODES_MOST nodes
 * (TOLLBAR_E_OUT_OF_RANGE), of which one has a weight above 0 (TOLLBAR_NO, and `*node` is left
 * alone; otherwise TOLLBAR_YES).
 *
 * `seed` is the same for all callers. With a secret seed nobody outside can invent keys that all
 * belong to one node. The routes of a seed, nodes and weights never change between versions and
 * machines. */
int32_t tollbar_route(const tollbar_node *nodes,
                      size_t count,
                      const void *key,
                      size_t length,
                      uint64_t seed,
                      size_t *node);

/* --------------------------------------------------------------------------------------------
 * 24. HTTP: header fields for clients, and what a client reads of them
 * -------------------------------------------------------------------------------------------- */

/* A server that refuses a request should tell the client when to try again. tollbar_http_fields writes the header fields that say so, from the
 * decisions about the request:
 *
 *     uint64_t more = TOLLBAR_NO_TIME;
 *     tollbar_table_more_after(table, PER_MINUTE, user, user_length, 1, &decision, &more);
 *     const tollbar_http_limit limit = {"per-minute", 10, &policy, &decision, more, NULL, 0};
 *     char lines[512];
 *     if (tollbar_http_fields(&limit, 1, TOLLBAR_HTTP_RETRY_AFTER | TOLLBAR_HTTP_DRAFT_11, 0, lines, sizeof lines, NULL) == 0)
 *         write_header(response, lines);
 *
 * For a request that "100/min burst 20" admits, this writes
 *
 *     RateLimit-Policy: "per-minute";q=100;w=60       100 permits in 60 seconds
 *     RateLimit: "per-minute";r=19;t=1                19 permits are left now, and more in a second
 *
 * Times are whole seconds, rounded up, so a client that waits so long does not come too early. `t`
 * is at most Retry-After. A period that is not a whole number of seconds is rounded up to one, and
 * the permits are scaled to the same rate, rounded down. Drafts 00 to 07 and the X-RateLimit-
 * fields have room for one limit, the one that binds: if limits refuse, the one of them with the
 * longest wait, and otherwise the one with the fewest permits left.
 */

/* Retry-After, of a refused request: seconds, rounded up. */
#define TOLLBAR_HTTP_RETRY_AFTER 1

/* X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset in seconds from now. */
#define TOLLBAR_HTTP_LEGACY 2

/* The same, with the reset in seconds since 1970. */
#define TOLLBAR_HTTP_LEGACY_EPOCH 4

/* RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, RateLimit-Policy:
 * draft-ietf-httpapi-ratelimit-headers 00 to 06. */
#define TOLLBAR_HTTP_DRAFT_06 8

/* RateLimit and RateLimit-Policy of draft 07. They do not name limits. */
#define TOLLBAR_HTTP_DRAFT_07 16

/* RateLimit and RateLimit-Policy of drafts 08 to 11. */
#define TOLLBAR_HTTP_DRAFT_11 32

/* The most limits of tollbar_http_fields and tollbar_http_problem. */
#define TOLLBAR_HTTP_LIMITS_MOST 64

/* A limit of a request and its decision, for the fields that tell a client about it. */
typedef struct tollbar_http_limit {
    /* The name that clients see. Bytes other than printable ASCII are written as `?`. */
    const char *name;
    /* The bytes of the name. */
    size_t name_length;
    /* The limit's policy. If it is a list of two rates, the fields describe the rate that bound
     * the decision. */
    const tollbar_policy_spec *policy;
    /* The limit's decision about the request. */
    const tollbar_decision *decision;
    /* Nanoseconds until more permits are left than the decision's `remaining`
     * (tollbar_table_more_after). TOLLBAR_NO_TIME: unknown, or no permit is missing. */
    uint64_t more_after_ns;
    /* The partition key (`pk` of drafts 08 to 11), which clients see. NULL: none. */
    const void *partition;
    /* The bytes of the partition key. */
    size_t partition_length;
} tollbar_http_limit;

/* The limits that a server's header fields describe. A field of this struct is UINT64_MAX if no
 * header field gives it. */
typedef struct tollbar_http_seen {
    /* sizeof(tollbar_http_seen), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* Must be 0. */
    uint32_t reserved;
    /* Permits per window. */
    uint64_t limit;
    /* The window in nanoseconds. */
    uint64_t window_ns;
    /* The permits left. */
    uint64_t remaining;
    /* Nanoseconds until more permits than `remaining` are left. */
    uint64_t more_after_ns;
    /* Nanoseconds to wait before the next request (Retry-After). */
    uint64_t retry_after_ns;
} tollbar_http_seen;

/* Writes the header fields of 1 to TOLLBAR_HTTP_LIMITS_MOST limits (TOLLBAR_E_LIMITS) into
 * `buffer`. A field is a line: its name, a colon, a space, the value, CR and LF. A NUL follows the
 * last line.
 *
 * `fields` is a sum of TOLLBAR_HTTP_ numbers, with at most one of the two LEGACY numbers and at
 * most one of the three DRAFT numbers (TOLLBAR_E_OUT_OF_RANGE). `utc_ns` is the time in
 * nanoseconds since 1970; only TOLLBAR_HTTP_LEGACY_EPOCH uses it. The call writes the text's
 * length without the NUL to `*length`, unless `length` is NULL. If the buffer is too small, the
 * call still writes `*length`, and returns TOLLBAR_E_BUFFER_TOO_SMALL. A buffer is large enough if
 * it has 300 bytes, and for each limit 100 bytes, 4 for each byte of its name and 3 for each byte
 * of its partition key. */
int32_t tollbar_http_fields(const tollbar_http_limit *limits,
                            size_t count,
                            uint32_t fields,
                            uint64_t utc_ns,
                            char *buffer,
                            size_t capacity,
                            size_t *length);

/* Writes the body of a refusal's answer into `buffer`: a problem in JSON (RFC 9457, media type
 * application/problem+json) with the names of the limits that refuse. `status` is the answer's
 * HTTP status, such as
 * 429. For the other arguments see tollbar_http_fields. */
int32_t tollbar_http_problem(const tollbar_http_limit *limits,
                             size_t count,
                             uint32_t status,
                             char *buffer,
                             size_t capacity,
                             size_t *length);

/* Reads a server's limits from `length` bytes of its answer's header. Each line is a name, a colon
 * and a value, and ends with LF or CR LF. The call skips other fields and ignores malformed ones.
 *
 * Returns TOLLBAR_YES if a field describes a limit or a wait, and otherwise TOLLBAR_NO. `utc_ns`
 * is the time of the answer in nanoseconds since 1970; dates and epochs are counted from it. The
 * call reads every dialect that tollbar_http_fields writes. If an answer has several dialects, the
 * newest counts. If a field describes several limits, on one line or on several, the one with the
 * fewest permits left counts, and of RateLimit-Policy only the policy of that name.
 *
 * Of several values of Retry-After the longest wait counts: seconds, with or without a fraction,
 * or a date in one of the three forms of RFC 9110. Servers write the reset of each dialect in
 * several ways: a number from 10^12 on is read as milliseconds since 1970, one from 10^9 on as
 * seconds since 1970, and a smaller one as seconds from now. A time that is past is 0, and one
 * beyond 64 bits of nanoseconds is the largest of these. */
int32_t tollbar_http_read(const char *text,
                          size_t length,
                          uint64_t utc_ns,
                          tollbar_http_seen *out);

/* Writes to `*more_ns` how many nanoseconds after `decision` the key will have more permits than
 * `decision->remaining`. If the decision is a refusal, that is at most its `retry_after_ns`.
 * TOLLBAR_NO_TIME: no permit is missing, none will come back, or the policy lends (`borrow`,
 * pacer, warm-up) and has permits left.
 *
 * `cost` is the cost of the request that was decided, with its reserve after
 * tollbar_table_check_leaving. Returns 0 or an error. The call peeks at the key at most once, and
 * charges nothing. */
int32_t tollbar_table_more_after(const tollbar_table *table,
                                 uint32_t policy,
                                 const void *key,
                                 size_t length,
                                 uint64_t cost,
                                 const tollbar_decision *decision,
                                 uint64_t *more_ns);

/* tollbar_table_more_after at the caller's time. Give the time of the decision. */
int32_t tollbar_table_more_after_at(const tollbar_table *table,
                                    uint32_t policy,
                                    const void *key,
                                    size_t length,
                                    uint64_t cost,
                                    uint64_t now_ns,
                                    const tollbar_decision *decision,
                                    uint64_t *more_ns);

/* tollbar_table_more_after for a limiter. */
int32_t tollbar_limiter_more_after(const tollbar_limiter *limiter,
                                   uint64_t cost,
                                   const tollbar_decision *decision,
                                   uint64_t *more_ns);

/* tollbar_limiter_more_after at the caller's time. Give the time of the decision. */
int32_t tollbar_limiter_more_after_at(const tollbar_limiter *limiter,
                                      uint64_t cost,
                                      uint64_t now_ns,
                                      const tollbar_decision *decision,
                                      uint64_t *more_ns);

/* An answer's limits to be filled in. */
#define TOLLBAR_HTTP_SEEN_INIT { (uint32_t)sizeof(tollbar_http_seen), 0, 0, 0, 0, 0, 0 }

/* --------------------------------------------------------------------------------------------
 * 25. Metrics: counts and sizes for Prometheus
 * -------------------------------------------------------------------------------------------- */

/* One call writes the counters of a process's limiters and tables for Prometheus:
 *
 *     const tollbar_metrics_source sources[] = {{"api", 3, limiter, NULL, 0}, {"logins", 6, NULL, logins, 0}};
 *     char text[16384];
 *     size_t length;
 *     if (tollbar_metrics(sources, 2, TOLLBAR_METRICS_PROMETHEUS, text, sizeof text, &length) == 0)
 *         answer("text/plain; version=0.0.4", text, length);
 *
 * These are the metrics. The label `limit` of each is the source's name:
 *
 *     tollbar_decisions_total{policy,verdict}         decisions by the policy's number, verdict allowed, denied or never
 *     tollbar_reasons_total{reason}                   decisions for the reason banned, reserve or queue_full; in a table
 *                                                     also for missing_key or exempt
 *     tollbar_policy_info{policy,text}                1; the policy's text
 *     tollbar_clock_backward_total                    requests whose time is earlier than a previous request's
 *     tollbar_waiting                                 callers that sleep (limiters)
 *     tollbar_table_slots, tollbar_table_used_slots   slots, and those that hold a key
 *     tollbar_table_size_bytes, tollbar_table_overrides
 *     tollbar_table_inserts_total, _evictions_total, _refused_keys_total, _inherited_keys_total, _untracked_keys_total, _resets_total,
 *     _retries_total
 *
 * No key is ever a label. The call takes no permits. It reads counters that each decision writes
 * with or without metrics, so metrics add nothing to the cost of a decision. examples/metrics has
 * alerts and a dashboard.
 *
 * A program that wants to know how long its decisions take puts them between two calls:
 *
 *     static tollbar_times times;                                 // empty
 *     uint64_t begin = TOLLBAR_TIMES_BEGIN(&times);
 *     int32_t verdict = tollbar_table_check(logins, 0, key, length, 1, NULL);
 *     TOLLBAR_TIMES_END(&times, begin);
 *
 * One of TOLLBAR_TIMES_EVERY calls is measured, and tollbar_times_metrics writes the histogram
 * tollbar_decision_nanoseconds{le}. Decisions without these calls cost what they did.
 */

/* Prometheus' text format 0.0.4, of the media type `text/plain; version=0.0.4`. */
#define TOLLBAR_METRICS_PROMETHEUS 0

/* OpenMetrics 1.0, of the media type `application/openmetrics-text; version=1.0.0; charset=utf-8`.
 * The text ends with the line `# EOF`, after which the format allows no further metrics. */
#define TOLLBAR_METRICS_OPENMETRICS 1

/* The most sources of tollbar_metrics and of tollbar_times_metrics. */
#define TOLLBAR_METRICS_MOST 1024

/* For tollbar_metrics_source.flags: the texts of policies leave out the burst. For a table whose
 * policies have a greater burst than any limit, because its callers leave the difference
 * untouched. */
#define TOLLBAR_METRICS_RATES_ONLY 1

/* For tollbar_metrics_source.flags: the table's first policy has no series, because no request
 * asks for it. */
#define TOLLBAR_METRICS_WITHOUT_FIRST 2

/* The number of calls between tollbar_times_begin and tollbar_times_end of which one is measured,
 * the first among them. */
#define TOLLBAR_TIMES_EVERY 1024

/* A limiter or a table, and the name of its series. */
typedef struct tollbar_metrics_source {
    /* The value of the label `limit` of its series, in UTF-8. The sources of a call must have
     * different names. */
    const char *name;
    /* The bytes of the name. */
    size_t name_length;
    /* The limiter. NULL if the source is a table. */
    const tollbar_limiter *limiter;
    /* The table, whose counters count the decisions of all processes that share it. NULL if the
     * source is a limiter. */
    const tollbar_table *table;
    /* TOLLBAR_METRICS_RATES_ONLY and TOLLBAR_METRICS_WITHOUT_FIRST, or 0. Other bits are ignored. */
    uint64_t flags;
} tollbar_metrics_source;

/* A histogram of the time that calls take. A struct of zeroes is an empty histogram, so `= {0}`, a
 * static variable and calloc make one. Threads may share a histogram; they then share its cache
 * lines, and if two threads count at the same instant, one count may be lost. While threads use a
 * histogram, only tollbar_times_begin, _end and _metrics may access it. */
typedef struct tollbar_times {
    /* The calls that have begun. */
    uint64_t calls;
    /* Nanoseconds of all measured calls. */
    uint64_t sum_ns;
    /* The number of measured calls by their length. The first field counts calls of at most 256
     * ns, each next one calls of at most twice as long, up to 2^24 ns (17 ms). The last field
     * counts all longer calls. */
    uint64_t counts[18];
} tollbar_times;

/* Times, and the name of their series. */
typedef struct tollbar_times_source {
    /* The value of the label `limit` of their series, in UTF-8. The sources of a call must have
     * different names. */
    const char *name;
    /* The bytes of the name. */
    size_t name_length;
    /* The times. */
    const tollbar_times *times;
} tollbar_times_source;

/* Writes the metrics of `count` sources into `buffer`, and a NUL: decisions by policy and verdict,
 * sizes, evictions, clock steps.
 *
 * `format` is TOLLBAR_METRICS_PROMETHEUS or TOLLBAR_METRICS_OPENMETRICS. There are at most
 * TOLLBAR_METRICS_MOST sources (TOLLBAR_E_OUT_OF_RANGE). TOLLBAR_E_LIMITS: a source has neither a
 * limiter nor a table, or both. TOLLBAR_E_OUT_OF_RANGE: a name is not UTF-8. The call writes the
 * text's length without the NUL to `*length`, unless `length` is NULL. If the buffer is too small,
 * the call still writes `*length`, and returns TOLLBAR_E_BUFFER_TOO_SMALL. Counters may gain
 * digits until the next call, so make the next buffer a little larger. */
int32_t tollbar_metrics(const tollbar_metrics_source *sources,
                        size_t count,
                        uint32_t format,
                        char *buffer,
                        size_t capacity,
                        size_t *length);

/* Begins a call, such as a decision. Returns the time in nanoseconds for tollbar_times_end if the
 * call is measured, otherwise 0. With NULL it returns 0. TOLLBAR_TIMES_BEGIN does the same, and
 * calls this function only for a call that is measured. */
uint64_t tollbar_times_begin(tollbar_times *times);

/* Ends a call. `begin_ns` is the result of tollbar_times_begin; with 0 this call does nothing, and
 * TOLLBAR_TIMES_END does not make it. */
void tollbar_times_end(tollbar_times *times, uint64_t begin_ns);

/* Writes the histograms of `count` sources into `buffer`, and a NUL: tollbar_decision_nanoseconds
 * in Prometheus' text format. The text goes before that of tollbar_metrics, which may end with
 * `# EOF`.
 *
 * There are at most TOLLBAR_METRICS_MOST sources (TOLLBAR_E_OUT_OF_RANGE). TOLLBAR_E_NULL: a
 * source has no times. TOLLBAR_E_OUT_OF_RANGE: a name is not UTF-8. `length` and a small buffer
 * are as for tollbar_metrics. Calls that are measured meanwhile may be in a part of the lines. */
int32_t tollbar_times_metrics(const tollbar_times_source *sources,
                              size_t count,
                              char *buffer,
                              size_t capacity,
                              size_t *length);

/* tollbar_times_begin and tollbar_times_end in the caller's code: a call that is not measured adds
 * 1 to the counter and calls nothing. `times` is not NULL, and both macros evaluate it several
 * times. TOLLBAR_TIMES_END evaluates `begin_ns` twice. */
#if defined(__GNUC__) && UINTPTR_MAX == UINT64_MAX
#define TOLLBAR_TIMES_BEGIN(times)                                                                   \
    ((__atomic_load_n(&(times)->calls, __ATOMIC_RELAXED) & (TOLLBAR_TIMES_EVERY - 1u)) != 0          \
         ? (__atomic_store_n(&(times)->calls,                                                        \
                __atomic_load_n(&(times)->calls, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED),           \
            UINT64_C(0))                                                                             \
         : tollbar_times_begin(times))
#else
#define TOLLBAR_TIMES_BEGIN(times) tollbar_times_begin(times)
#endif
#define TOLLBAR_TIMES_END(times, begin_ns)                                                           \
    ((begin_ns) != 0 ? tollbar_times_end((times), (begin_ns)) : (void)0)

/* --------------------------------------------------------------------------------------------
 * 26. Refusals: the keys that a table refuses most
 * -------------------------------------------------------------------------------------------- */

/* Who is refused most? A table can record the keys that it refuses, in a sketch of 14 KiB in its memory:
 *
 *     tollbar_table_record_refusals(logins, 1);
 *     ...
 *     tollbar_table_refused top[20] = {TOLLBAR_TABLE_REFUSED_INIT};
 *     uint64_t now = 0;
 *     size_t count = 0;
 *     if (tollbar_table_now(logins, &now) == 0 && tollbar_table_top_refused(logins, now, top, 20, &count) == 0)
 *         for (size_t n = 0; n < count; n++)
 *             printf("%8llu %.*s\n", (unsigned long long)top[n].count, (int)top[n].length, (const char *)top[n].key);
 *
 * The bytes of a key are the client's. Escape them before they go to a terminal, a page or a log.
 * `tollbar top FILE` shows them, redrawn each second, for a table in a file.
 */

/* The bytes of a refused key that a table keeps. */
#define TOLLBAR_REFUSED_KEY 48

/* The most refused keys of a table. */
#define TOLLBAR_REFUSED_MOST 224

/* A key that a table has refused. */
typedef struct tollbar_table_refused {
    /* sizeof(tollbar_table_refused), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* The number of the policy under which the table refused the key. */
    uint32_t policy;
    /* About the number of refusals in the last two minutes. */
    uint64_t count;
    /* The number of bytes in `key`. */
    uint32_t length;
    /* TOLLBAR_YES if the key is longer, otherwise TOLLBAR_NO. */
    uint32_t is_cut;
    /* The key's first bytes. No NUL follows them. */
    uint8_t key[TOLLBAR_REFUSED_KEY];
} tollbar_table_refused;

/* Sets whether requests record the keys that they refuse, in all processes of the table: any other
 * number than 0 begins it, 0 ends it. No table records them at first. While it does, the first 48
 * bytes of refused keys are in the table's memory, which otherwise holds hashes alone; a check
 * costs as much as in a table with exempt keys; a refusal also hashes the key again and searches a
 * cache line; and threads take no credit of hot keys. */
int32_t tollbar_table_record_refusals(const tollbar_table *table, uint32_t on);

/* Returns TOLLBAR_YES if requests record the keys that they refuse, otherwise TOLLBAR_NO. */
int32_t tollbar_table_records_refusals(const tollbar_table *table);

/* Writes the keys that requests were refused most, by `now`, to `refused`, the most refused first,
 * and their number to `count`. `refused` points to `most` structs of the first one's
 * `struct_size`. The counts are of the last minute or two: each is halved every 68.7 s. They are
 * not exact, and a key with few refusals may be missing. The call reads 14 KiB of the table, and
 * allocates up to 14 KiB for as long as it runs. */
int32_t tollbar_table_top_refused(const tollbar_table *table,
                                  uint64_t now,
                                  tollbar_table_refused *refused,
                                  size_t most,
                                  size_t *count);

/* A refused key to be filled in. Of an array the first is initialised so. */
#define TOLLBAR_TABLE_REFUSED_INIT { (uint32_t)sizeof(tollbar_table_refused), 0, 0, 0, 0, { 0 } }

/* --------------------------------------------------------------------------------------------
 * 27. Advanced: cells, a state word in each of your structs
 * -------------------------------------------------------------------------------------------- */

/* A cell takes 8 bytes and needs no set-up. Put it into your own struct.
 *
 *     struct user { ...; tollbar_cell logins; };            // calloc'd: fresh
 *
 *     tollbar_policy *per_user;                             // once, for all users
 *     tollbar_policy_from_text("5/min burst 3", &per_user, NULL);
 *
 *     if (tollbar_cell_check(&user->logins, per_user, 1, NULL) != TOLLBAR_ALLOWED)
 *         return TRY_LATER;
 */

/* A state word. All-zero is fresh: `= {0}`, .bss, calloc and a fresh mapping make fresh cells. A
 * cell must be aligned to 8 bytes and may lie anywhere, also in memory that processes share. While
 * threads use it, only these calls may access it. Cells do not count decisions, because a word has
 * no room for counts. docs/internals/state-word.md says what the word means. */
typedef struct tollbar_cell {
    /* The state. */
    uint64_t word;
} tollbar_cell;

/* Takes `cost` permits now, or takes none. It reads TOLLBAR_CLOCK_TSC. A cost of 0 asks without
 * charging.
 *
 * Returns TOLLBAR_ALLOWED if the cell had the permits and has been charged, TOLLBAR_DENIED if it
 * does not have them now, TOLLBAR_NEVER if `cost` is more than it can ever have at once, or an
 * error. The call writes the full decision to `out`. With NULL for `out` it is cheaper. Any number
 * of threads and processes may call at once. */
int32_t tollbar_cell_check(tollbar_cell *cell,
                           const tollbar_policy *policy,
                           uint64_t cost,
                           tollbar_decision *out);

/* tollbar_cell_check at the caller's time, in nanoseconds of any one clock. */
int32_t tollbar_cell_check_at(tollbar_cell *cell,
                              const tollbar_policy *policy,
                              uint64_t cost,
                              uint64_t now_ns,
                              tollbar_decision *out);

/* Returns what tollbar_cell_check_at would return, and changes nothing. */
int32_t tollbar_cell_peek_at(const tollbar_cell *cell,
                             const tollbar_policy *policy,
                             uint64_t cost,
                             uint64_t now_ns,
                             tollbar_decision *out);

/* Takes all permits that are left at `now_ns`, `most` at the most, and writes their number to
 * `*taken`. Returns TOLLBAR_ALLOWED if it took any, otherwise TOLLBAR_DENIED. */
int32_t tollbar_cell_take_up_to_at(tollbar_cell *cell,
                                   const tollbar_policy *policy,
                                   uint64_t most,
                                   uint64_t now_ns,
                                   uint64_t *taken);

/* Makes the call tollbar_cell_check_at for each of `count` cells of one policy, with the same
 * cost, and writes its result to `results[i]`. Each cell is decided by itself. Returns 0, or an
 * error of the whole batch. Then no cell has been charged. */
int32_t tollbar_cell_check_many_at(tollbar_cell *cells,
                                   size_t count,
                                   const tollbar_policy *policy,
                                   uint64_t cost,
                                   uint64_t now_ns,
                                   int32_t *results);

/* Makes the cell fresh. Other calls may run at the same time, and admissions in the same instant
 * may survive the reset. */
int32_t tollbar_cell_reset(tollbar_cell *cell);

/* A fresh cell. */
#define TOLLBAR_CELL_INIT { 0 }

/* --------------------------------------------------------------------------------------------
 * 28. Advanced: counts of decisions
 * -------------------------------------------------------------------------------------------- */

/* Each deciding call adds one to the count of the verdict that it returns, whatever its cost. So does each request of a batch. A
 * _take_up_to call counts as allowed if it took any permits, otherwise as denied. A table counts
 * under the policy that the caller named. A table also counts these decisions:
 *
 * - a request without a key: under the returned verdict, unless the table reports it as an error
 *   (TOLLBAR_MISSING_REPORT);
 * - a request of an exempt key: allowed;
 * - a new key that a full table refuses: denied. The statistics' `refused` counts it as well.
 *
 * Peeks and errors do not count. A caller that refuses a request because of a peek reports it by
 * tollbar_table_count_refusal. Limiters (tollbar_limiter_state) count by the same rules. A cell is
 * one word and has no room for counts.
 *
 * Each thread counts on cache lines that no other thread writes, so a count costs one plain
 * instruction. The sum over all lines is exact whenever no call is in progress. A table has 512
 * lines, one for each pair of a thread and a policy, and reuses the lines of dead processes. A
 * thread that finds no line counts by a locked addition. A thread looks for a line in its first
 * decision under a policy, and again after a fork. It then asks the system which
 * processes live. */

/* Decisions by verdict. */
typedef struct tollbar_counts {
    /* sizeof(tollbar_counts), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* The library writes 0. */
    uint32_t reserved;
    /* Decisions that were TOLLBAR_ALLOWED. */
    uint64_t allowed;
    /* Decisions that were TOLLBAR_DENIED. */
    uint64_t denied;
    /* Decisions that were TOLLBAR_NEVER. */
    uint64_t never;
} tollbar_counts;

/* Writes to `out` the counts of decisions under policy number `policy`, of all threads and
 * processes since the table was made. A changed policy keeps its counts. A killed process loses at
 * most the counts of the call that it was in. */
int32_t tollbar_table_get_counts(const tollbar_table *table,
                                 uint32_t policy,
                                 tollbar_counts *out);

/* Counts a decision that the caller made itself under policy number `policy`, and charges nothing.
 * A caller needs it if it peeks at several limits and refuses a request because of one of them.
 * `verdict` is TOLLBAR_ALLOWED, TOLLBAR_DENIED or TOLLBAR_NEVER; for another number the call
 * returns TOLLBAR_E_OUT_OF_RANGE. `reason` is the TOLLBAR_REASON_ number that the peek returned.
 * If tollbar_reasons_total of the metrics has this reason, the call counts it there, too. All
 * other numbers are ignored. */
int32_t tollbar_table_count_verdict(const tollbar_table *table,
                                    uint32_t policy,
                                    int32_t verdict,
                                    uint32_t reason);

/* tollbar_table_count_verdict for a request of a key that the caller refused itself. If the table
 * records refusals (tollbar_table_record_refusals), the call records this one, too. `verdict` is
 * TOLLBAR_DENIED or TOLLBAR_NEVER; for another number the call returns TOLLBAR_E_OUT_OF_RANGE. */
int32_t tollbar_table_count_refusal(const tollbar_table *table,
                                    uint32_t policy,
                                    const void *key,
                                    size_t length,
                                    int32_t verdict,
                                    uint32_t reason);

/* Counts to be filled in. */
#define TOLLBAR_COUNTS_INIT { (uint32_t)sizeof(tollbar_counts), 0, 0, 0, 0 }

/* --------------------------------------------------------------------------------------------
 * 29. Advanced: entries, policies, counters and health of tables
 * -------------------------------------------------------------------------------------------- */

/* One key of a table. */
typedef struct tollbar_table_entry {
    /* sizeof(tollbar_table_entry), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* The number of the key's policy. */
    uint32_t policy;
    /* The key's hash. The table stores nothing else of the key (tollbar_table_hash). */
    uint64_t hash;
    /* The state word. */
    uint64_t state;
    /* Permits that the key has left. */
    uint64_t remaining;
    /* Nanoseconds until the state is as good as fresh. 0: it has expired. */
    uint64_t reset_after_ns;
    /* The `from` of the next call. */
    uint64_t next;
} tollbar_table_entry;

/* The result of a sweep. */
typedef struct tollbar_table_sweep_result {
    /* sizeof(tollbar_table_sweep_result), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* 1 if the sweep has reached the end of the table, otherwise 0. */
    uint32_t done;
    /* The `from` of the next call. 0 at the end of the table. */
    uint64_t next;
    /* Keys that have a debt. */
    uint64_t live;
    /* Slots that the sweep made vacant. */
    uint64_t vacated;
} tollbar_table_sweep_result;

/* Counters and sizes of a table. The counters count since the table was made, for all processes.
 * If a process is killed, its last count may be missing. */
typedef struct tollbar_table_stats {
    /* sizeof(tollbar_table_stats), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* The number of policies. */
    uint32_t policies;
    /* The capacity that the table was made with. */
    uint64_t capacity;
    /* The number of slots. */
    uint64_t slots;
    /* The table's size in bytes. */
    uint64_t bytes;
    /* Slots that hold a key, expired or not. A slot that a reset has emptied does not count. No
     * key may take such a slot until the former key's debt would have been paid.
     * tollbar_table_validate counts such slots. */
    uint64_t keys;
    /* Keys inserted into an empty or vacant slot. */
    uint64_t inserted;
    /* Keys inserted into the slot of an expired key. */
    uint64_t reclaimed;
    /* Slots that a sweep or a reset made vacant. */
    uint64_t vacated;
    /* Resets of keys. */
    uint64_t resets;
    /* New keys refused because no slot was free, or because of the debt that they would have
     * inherited. */
    uint64_t refused;
    /* New keys that inherited a slot with its debt. */
    uint64_t inherited;
    /* New keys admitted and not stored. */
    uint64_t untracked;
    /* Keys with a debt whose slot a new key took. */
    uint64_t evicted;
    /* Swaps that failed and were tried again, because another thread had changed the slot. */
    uint64_t retries;
    /* Requests whose time was a microsecond or more older than that of an earlier request. */
    uint64_t backward_steps;
    /* TOLLBAR_ALLOWED decisions under all policies (tollbar_table_get_counts). */
    uint64_t allowed;
    /* TOLLBAR_DENIED decisions under all policies. */
    uint64_t denied;
    /* TOLLBAR_NEVER decisions under all policies. */
    uint64_t never;
    /* Keys with a policy of their own. A process that was killed in a change may leave it one too
     * high, until tollbar_table_repair. */
    uint64_t overrides;
    /* The most segments of a window, or permits of a log, for which each slot has room, as the
     * table was made (tollbar_table_options.room). */
    uint64_t room;
} tollbar_table_stats;

/* The content of a table's slots. The 64-bit numbers add up to the number of slots while no other
 * thread or process uses the table. */
typedef struct tollbar_table_health {
    /* sizeof(tollbar_table_health), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* Policy records that a killed process left unfinished. */
    uint32_t claimed;
    /* Slots that hold no key and may be taken. */
    uint64_t vacant;
    /* Slots that hold no key and may not be taken yet. */
    uint64_t waiting;
    /* Keys that have expired. */
    uint64_t expired;
    /* Keys with a debt. */
    uint64_t live;
    /* Slots that name a version of a policy that the table does not have. No key can take such a
     * slot. */
    uint64_t unknown;
    /* Slots whose key is also in another slot. */
    uint64_t duplicate;
} tollbar_table_health;

/* Finds the first slot from number `from` on that holds a key, and writes that key's state at
 * `now_ns` to `out`. Begin with `from` 0 and continue with the entry's `next`. Returns
 * TOLLBAR_YES, or TOLLBAR_NO if no such slot is left. Each entry is what its slot held at one
 * instant. A key that is inserted, moved or removed between the calls may appear once, twice or
 * not at all. */
int32_t tollbar_table_next(const tollbar_table *table,
                           uint64_t from,
                           uint64_t now_ns,
                           tollbar_table_entry *out);

/* Examines `most` slots from number `from` on, and makes vacant the slots whose keys have expired
 * by `now_ns`. No table needs sweeps. They serve to count the keys with a debt. */
int32_t tollbar_table_sweep(const tollbar_table *table,
                            uint64_t from,
                            uint64_t most,
                            uint64_t now_ns,
                            tollbar_table_sweep_result *out);

/* Adds a policy, for all processes, while the table is in use. Requests name the policy by
 * `*number`. */
int32_t tollbar_table_add_policy(const tollbar_table *table,
                                 const tollbar_policy_spec *spec,
                                 uint32_t *number);

/* Finds the first policy that equals `spec` in every field, or adds `spec` if there is none, and
 * writes its number to `*number`. If several callers ask for one policy at once, all get the same
 * number. */
int32_t tollbar_table_find_or_add_policy(const tollbar_table *table,
                                         const tollbar_policy_spec *spec,
                                         uint32_t *number);

/* Changes a policy, for all processes at once, while the table is in use. A key comes under the
 * new policy at its next request, and `keep`, a TOLLBAR_KEEP_ number, says what it keeps of its
 * state. Between windows of one length, quotas, and intervals of one limit and period, it keeps
 * its usage, up to the new limit.
 *
 * In any interval a key is admitted at most the sum of the bounds of all policies that were in
 * force in that interval, each as often as it came into force. With TOLLBAR_KEEP_COUNT a key of a
 * full table keeps, by the former and the new algorithm:
 *
 * any but a quota -> gcra; any -> quota                   its permits
 * another rate or burst of a list, interval, curve,       its permits or its usage
 * level-dependent refill, windows of one length
 * any -> 7/s, 14/min, ... of gcra, whose words are full   its permits, if another slot is free; otherwise the time of its debt
 * another rate or burst with ban or borrow, or of a       the same
 * pacer; any -> another algorithm; quota -> any
 * any -> sliding window, sliding log                      its permits; the used ones may come back later
 *
 * From and to sliding windows and sliding logs the table needs room (tollbar_table_options.room).
 * Without room the call returns TOLLBAR_E_MIXED_POLICIES, and with too little TOLLBAR_E_SLOT_ROOM.
 * Then the policy stays as it was. With TOLLBAR_KEEP_COUNT a key keeps the permits that it has
 * left, and all others count as used at its first request after the change. With TOLLBAR_KEEP_TIME
 * a window or log that a key comes to has none for it until its debt would have been paid; a
 * window counts by segments, and a log by up to a sixteenth of its period.
 *
 * A limit of 0 keeps what keys had before it. With TOLLBAR_KEEP_RESET all keys without an override
 * begin anew, also if the policy is the current one. Such a call examines every slot, and so does
 * about one of a hundred other calls, because a table has room for some 250 versions of its
 * policies: it converts the keys that made no request since a former change, one after the other,
 * while requests go on. */
int32_t tollbar_table_set_policy(const tollbar_table *table,
                                 uint32_t number,
                                 const tollbar_policy_spec *spec,
                                 uint32_t keep);

/* Writes the current policy of that number to `out`. */
int32_t tollbar_table_get_policy(const tollbar_table *table,
                                 uint32_t number,
                                 tollbar_policy_spec *out);

/* Writes the table's counters and sizes to `out`. */
int32_t tollbar_table_get_stats(const tollbar_table *table, tollbar_table_stats *out);

/* Writes the table of a file to the disk, with the current time. After the machine's next start
 * the table goes on from that time. Call it at the end of a program, or regularly. As long as the
 * machine runs, nothing is lost without it. */
int32_t tollbar_table_sync(const tollbar_table *table);

/* Examines every slot at `now_ns` (tollbar_table_now). Returns TOLLBAR_ALLOWED, or
 * TOLLBAR_E_SLOTS_INVALID if it finds an `unknown` or `duplicate` slot. The call writes `out` in
 * both cases. */
int32_t tollbar_table_validate(const tollbar_table *table,
                               uint64_t now_ns,
                               tollbar_table_health *out);

/* Empties each slot that names an unknown version of a policy. If two slots hold one key, it keeps
 * the slot that expires last and empties the other. It also frees policy records that a killed
 * process left unfinished. Call it only while no other thread or process uses the table, because
 * an emptied slot may have held a debt. Returns as tollbar_table_validate would have returned
 * before the repair. */
int32_t tollbar_table_repair(const tollbar_table *table,
                             uint64_t now_ns,
                             tollbar_table_health *out);

/* An entry to be filled in. */
#define TOLLBAR_TABLE_ENTRY_INIT { (uint32_t)sizeof(tollbar_table_entry), 0, 0, 0, 0, 0, 0 }

/* A sweep's result to be filled in. */
#define TOLLBAR_TABLE_SWEEP_RESULT_INIT                                                              \
    { (uint32_t)sizeof(tollbar_table_sweep_result), 0, 0, 0, 0 }

/* Health to be filled in. */
#define TOLLBAR_TABLE_HEALTH_INIT                                                                    \
    { (uint32_t)sizeof(tollbar_table_health), 0, 0, 0, 0, 0, 0, 0 }

/* Statistics to be filled in. */
#define TOLLBAR_TABLE_STATS_INIT                                                                     \
    { (uint32_t)sizeof(tollbar_table_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* --------------------------------------------------------------------------------------------
 * 30. Advanced: copies of tables
 * -------------------------------------------------------------------------------------------- */

/* The result of tollbar_table_copy. */
typedef struct tollbar_table_copy_result {
    /* sizeof(tollbar_table_copy_result), as the caller's compiler sees it. */
    uint32_t struct_size;
    /* The library writes 0. */
    uint32_t reserved;
    /* Keys with a debt that were copied. */
    uint64_t copied;
    /* Keys with a debt that were not copied, because no slot was free for them or their version of
     * a policy is unknown. */
    uint64_t lost;
} tollbar_table_copy_result;

/* Copies the debts of the keys of `from` at `now_ns` (tollbar_table_now) and the exempt keys into
 * `table`, for example to go on in a table of another size.
 *
 * The call copies nothing and returns TOLLBAR_E_OTHER_OPTIONS if the tables have different seeds
 * (TOLLBAR_TABLE_HAS_SEED) or clocks, TOLLBAR_E_OTHER_POLICIES if `table` lacks the number of a
 * policy of `from`, and TOLLBAR_E_MIXED_POLICIES for a table of a sliding window or log without
 * room (tollbar_table_options.room).
 *
 * If the policies of a number differ, a key lacks as many whole permits of the burst as before.
 * Partly repaid permits count as unpaid. (tollbar_table_set_policy keeps the number of permits
 * that a key has left instead.)
 *
 * Both tables may be in use during the copy. Later charges in `from` reach `table` only by another
 * copy. If both tables have a key, the state that owes longer stays. A copied key never evicts
 * another, whatever `on_full` says. `out`, which may be NULL, counts keys without a slot as lost. */
int32_t tollbar_table_copy(const tollbar_table *table,
                           const tollbar_table *from,
                           uint64_t now_ns,
                           tollbar_table_copy_result *out);

/* A copy's result to be filled in. */
#define TOLLBAR_TABLE_COPY_RESULT_INIT { (uint32_t)sizeof(tollbar_table_copy_result), 0, 0, 0 }

/* --------------------------------------------------------------------------------------------
 * 31. Version
 * -------------------------------------------------------------------------------------------- */

/* The ABI that this header describes. A library of another ABI does not have this symbol, so a
 * program that refers to it does not link, or does not start, with the wrong one. Always 1. */
extern const uint32_t tollbar_abi_1;

/* The version of the linked library, `major << 16 | minor << 8 | patch`: compare with
 * TOLLBAR_VERSION. */
uint32_t tollbar_version(void);

/* The version of the linked library as text, such as "0.1.0". Static. */
const char *tollbar_version_string(void);

/* --------------------------------------------------------------------------------------------
 * 32. Results and errors
 * -------------------------------------------------------------------------------------------- */

/* Of a decision: the request may pass, and its cost has been charged. Of another call: it has
 * succeeded. */
#define TOLLBAR_ALLOWED 0

/* Of a decision: the request is refused now and may pass later. Nothing has been charged. */
#define TOLLBAR_DENIED 1

/* Of a decision: the request can never pass, because its cost is more than the policy can have at
 * once. Nothing has been charged. */
#define TOLLBAR_NEVER 2

/* The answer "no" of a call that answers a question. */
#define TOLLBAR_NO 0

/* The answer "yes" of a call that answers a question. */
#define TOLLBAR_YES 1

/* A pointer is NULL that must not be. */
#define TOLLBAR_E_NULL (-1)

/* A pointer is not aligned for what it should point to. */
#define TOLLBAR_E_MISALIGNED (-2)

/* `struct_size` is smaller than any version of the struct, or absurdly large. */
#define TOLLBAR_E_STRUCT_SIZE (-3)

/* A field or flag that this version does not know is not zero. */
#define TOLLBAR_E_RESERVED (-4)

/* A number that stands for a choice (algorithm, clock, mode, anchor, unit) is out of range. */
#define TOLLBAR_E_OUT_OF_RANGE (-5)

/* A call has no limits or too many, or a limit that does not name exactly one limiter or one
 * table. */
#define TOLLBAR_E_LIMITS (-6)

/* The queue was closed. A call that takes returns it once the queue is empty, too. */
#define TOLLBAR_E_CLOSED (-7)

/* The policy's text does not follow the grammar. */
#define TOLLBAR_E_SYNTAX (-10)

/* A number in the policy's text does not fit 64 bits. */
#define TOLLBAR_E_NUMBER_TOO_LARGE (-11)

/* There is no algorithm of that name. */
#define TOLLBAR_E_ALGORITHM (-12)

/* An option is given twice. */
#define TOLLBAR_E_DUPLICATE_OPTION (-13)

/* The period is 0. */
#define TOLLBAR_E_PERIOD_ZERO (-20)

/* The burst is 0. (To deny every request, set the limit to 0.) */
#define TOLLBAR_E_BURST_ZERO (-21)

/* The rate is higher than the algorithm can count exactly. */
#define TOLLBAR_E_RATE_TOO_HIGH (-22)

/* The burst takes longer to refill than a state word can hold. */
#define TOLLBAR_E_BURST_TOO_LARGE (-23)

/* `init` is above the burst. */
#define TOLLBAR_E_INIT_ABOVE_BURST (-24)

/* The algorithm does not have this option. */
#define TOLLBAR_E_OPTION_MISMATCH (-25)

/* The number of segments is not from 1 to 1024, or a segment would not be a whole number of
 * nanoseconds. */
#define TOLLBAR_E_SEGMENTS (-26)

/* A warm-up has no time, or a cold factor that is not 1 to 1000. */
#define TOLLBAR_E_WARM_UP (-27)

/* A sliding log has more than 2^24 entries, or in a table more than its key's word can count in
 * the period. */
#define TOLLBAR_E_LOG_TOO_LARGE (-28)

/* The algorithm needs more than one state word: use a limiter, not a cell. */
#define TOLLBAR_E_NOT_ONE_WORD (-29)

/* A ban has no time, or a time that a state word cannot hold; or `after` is above 1000, or given
 * without `ban`. */
#define TOLLBAR_E_BAN (-30)

/* The policies of a list do not fit one state word together. Two of gcra without init, borrow and
 * ban do, unless one is much faster than the other. */
#define TOLLBAR_E_LIST (-31)

/* A quota has another period than TOLLBAR_FOREVER, or the text gives `forever` to another
 * algorithm. */
#define TOLLBAR_E_QUOTA (-32)

/* A policy has more than four classes, two of one name, a name that is not a letter followed by
 * letters, digits, `-` and `_`, or a reserve that is not below the burst. Or the policy lends, or
 * threads of the limiter would have credit. */
#define TOLLBAR_E_CLASSES (-33)

/* The policy has no class of that name or number. */
#define TOLLBAR_E_NO_SUCH_CLASS (-34)

/* Knots of a curve that fall, or do not rise to 100 % of the limit; or bands of a level-refill
 * that are more than 4, whose levels do not rise from 0, or whose rates are not 1 % to 100 %. */
#define TOLLBAR_E_KNOTS (-35)

/* A calendar's period is not TOLLBAR_DAY, _WEEK, _MONTH or _YEAR, its first day is not one of that
 * period, its zone is none; or the text gives `month` or `year` to another algorithm. */
#define TOLLBAR_E_CALENDAR (-36)

/* A calendar with a clock other than TOLLBAR_CLOCK_WALL. */
#define TOLLBAR_E_WALL_CLOCK (-37)

/* Out of memory. */
#define TOLLBAR_E_NO_MEMORY (-40)

/* The buffer is too small. */
#define TOLLBAR_E_BUFFER_TOO_SMALL (-41)

/* The limiter has been changed to 4,096 different policies, as many as it keeps. Change it to one
 * of those, or make another limiter. */
#define TOLLBAR_E_POLICY_CHANGES (-42)

/* The hierarchy has no class of that number, or the class has children and takes no requests. */
#define TOLLBAR_E_CLASS_NUMBER (-44)

/* A rate is not LIMIT/PERIOD, from 1 in 9 minutes to 1,000,000 a second. */
#define TOLLBAR_E_CLASS_RATE (-45)

/* The guaranteed rate is above the ceiling, or the guaranteed rates of a class's children are
 * together above its own. */
#define TOLLBAR_E_GUARANTEE (-46)

/* The class would be below seven others or below a class with keys, or its name is empty or that
 * of another child of its parent. */
#define TOLLBAR_E_CLASS_TREE (-47)

/* The capacity is 0, or more keys than a table can hold. */
#define TOLLBAR_E_CAPACITY (-50)

/* The number of policies is not 1 to 128. */
#define TOLLBAR_E_POLICY_COUNT (-51)

/* The table has no policy of that number. */
#define TOLLBAR_E_NO_SUCH_POLICY (-52)

/* In a table without room (tollbar_table_options.room) a sliding window or a sliding log must be
 * the only policy. */
#define TOLLBAR_E_MIXED_POLICIES (-53)

/* All 255 versions of the table's policies are in use: each policy has one, and so has each
 * override that differs from the others. Give several keys the same override, end some, or let
 * tollbar_table_repair free those that killed processes left unfinished. */
#define TOLLBAR_E_POLICY_VERSIONS (-54)

/* The set of exempt keys is full. */
#define TOLLBAR_E_EXEMPTIONS_FULL (-55)

/* The request has no key, and the table reports such requests. */
#define TOLLBAR_E_MISSING_KEY (-56)

/* The processor has no 16-byte compare-and-swap. */
#define TOLLBAR_E_UNSUPPORTED (-57)

/* The argument is not a network address. */
#define TOLLBAR_E_ADDRESS (-58)

/* The receipt is not one of this table, or the estimate is more than a receipt can hold. */
#define TOLLBAR_E_RECEIPT (-59)

/* The file or memory is not a table. */
#define TOLLBAR_E_NOT_A_TABLE (-60)

/* Another version of this library made the table. */
#define TOLLBAR_E_TABLE_VERSION (-61)

/* The file or memory is shorter or longer than its table. */
#define TOLLBAR_E_TRUNCATED (-62)

/* The table's header is damaged. */
#define TOLLBAR_E_CORRUPT (-63)

/* The file has a table of another capacity. */
#define TOLLBAR_E_OTHER_CAPACITY (-64)

/* The file has a table with other policies. */
#define TOLLBAR_E_OTHER_POLICIES (-65)

/* The file has a table with other options. */
#define TOLLBAR_E_OTHER_OPTIONS (-66)

/* Nothing that this process can read tells whether the file's content is of this boot of the
 * machine: /proc/sys/kernel/random/boot_id cannot be read, and the file is not in tmpfs (/dev/shm,
 * /run). */
#define TOLLBAR_E_BOOT_ID (-67)

/* Slots of the table name an unknown version of a policy, or two slots hold one key. */
#define TOLLBAR_E_SLOTS_INVALID (-68)

/* As many keys have a policy of their own as the table's options allow, or the options ask for
 * more than 524,288. */
#define TOLLBAR_E_OVERRIDES_FULL (-69)

/* The file belongs to another user than the caller and root, or other users may write or replace
 * it (TOLLBAR_TABLE_TRUST_ANYONE takes it). */
#define TOLLBAR_E_OWNER (-78)

/* The memory behind the descriptor is not sealed against shrinking. */
#define TOLLBAR_E_UNSEALED (-79)

/* The file cannot be opened. After this error and those down to TOLLBAR_E_SYNC, errno has the
 * system's reason. */
#define TOLLBAR_E_OPEN (-70)

/* The file cannot be read. */
#define TOLLBAR_E_READ (-71)

/* There is no room for the file. */
#define TOLLBAR_E_NO_SPACE (-72)

/* The memory cannot be mapped. */
#define TOLLBAR_E_MAP (-73)

/* The new file cannot be given its name. */
#define TOLLBAR_E_LINK (-74)

/* The file cannot be locked. */
#define TOLLBAR_E_LOCK (-75)

/* The system gives no random numbers. */
#define TOLLBAR_E_RANDOM (-76)

/* The file cannot be written to the disk. */
#define TOLLBAR_E_SYNC (-77)

/* Only a single gcra can be leased, without `borrow`, `ban`, `init` and `reserve`. */
#define TOLLBAR_E_LEASE_ALGORITHM (-80)

/* The number of machines is not 1 to 65,535. */
#define TOLLBAR_E_LEASE_NODES (-81)

/* The life of a lease is not 1 ms to 10 min. */
#define TOLLBAR_E_LEASE_LIFE (-82)

/* The overdrafts of all machines leave nothing of the burst. */
#define TOLLBAR_E_LEASE_BURST (-83)

/* Burst and period are too large for the store to count exactly. */
#define TOLLBAR_E_LEASE_TOO_LARGE (-84)

/* The name is not 1 to 64 visible ASCII characters without braces. */
#define TOLLBAR_E_LEASE_NAME (-85)

/* The memory holds no node of this version. */
#define TOLLBAR_E_NOT_A_LEASE (-86)

/* The store's URL does not follow the grammar, or asks for a feature that the client lacks (TLS,
 * Sentinel, Cluster). */
#define TOLLBAR_E_URL (-87)

/* A thread drives this client. */
#define TOLLBAR_E_RUNNING (-88)

/* The client ended before it had reported all admissions to the store. */
#define TOLLBAR_E_UNREPORTED (-89)

/* The client has 128 leases, or one of this limit, or not this lease. */
#define TOLLBAR_E_CLIENT_LEASES (-91)

/* The scripts of a store have gcra, interval, fixed-window, weighted-window, sliding-window and
 * sliding-log, without `borrow`, `ban`, `init`, `reserve` and a second rate. Their windows of
 * segments do not begin with a key's first request. */
#define TOLLBAR_E_STORE_ALGORITHM (-92)

/* The policy's numbers exceed 2^53, or its period is no whole number of microseconds: the store
 * could not count exactly. */
#define TOLLBAR_E_STORE_NUMBERS (-93)

/* The key in the store has a value that the limit's script did not write: another algorithm's
 * under the same name, or another program's. */
#define TOLLBAR_E_STORE_VALUE (-94)

/* The reply of the store is not one of the script's. */
#define TOLLBAR_E_STORE_REPLY (-95)

/* A key in a store has 1 to 512 bytes. */
#define TOLLBAR_E_STORE_KEY (-96)

/* Not a ticket that this view of the table can release. */
#define TOLLBAR_E_TICKET (-100)

/* No slot of the in-flight table is free for the key: its capacity is too small. */
#define TOLLBAR_E_IN_FLIGHT_FULL (-101)

/* The in-flight table has 1,024 owners. */
#define TOLLBAR_E_OWNERS_FULL (-102)

/* Processes of another PID namespace use the in-flight table, or the system does not say in which
 * one this process is. */
#define TOLLBAR_E_PID_NAMESPACE (-103)

/* The system does not say in which time namespace this process is, or the process that made the
 * table was. */
#define TOLLBAR_E_TIME_NAMESPACE (-104)

/* The in-flight table's file is in use by processes whose system gives another boot id: in a
 * container that has one of its own, or on another machine. */
#define TOLLBAR_E_OTHER_BOOT (-105)

/* The window has more segments, or the log more permits, than the table's slots have room for
 * (tollbar_table_options.room). */
#define TOLLBAR_E_SLOT_ROOM (-106)

/* The library itself has a fault. It was stopped before it reached the caller. */
#define TOLLBAR_E_INTERNAL (-90)

/* A time that never comes. */
#define TOLLBAR_NO_TIME UINT64_MAX

/* Returns one line in English for a result. The string is static and never NULL. Unknown numbers
 * give "unknown result". */
const char *tollbar_strerror(int32_t code);

/* Returns the name of a result's macro, such as "TOLLBAR_E_NULL". The string is static and never
 * NULL. Unknown numbers give "TOLLBAR_E_UNKNOWN". */
const char *tollbar_errname(int32_t code);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TOLLBAR_H */
