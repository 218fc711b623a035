/* The golden traces, replayed through the C face at the caller's time. */
#include "test.h"

/* A trace: counts[i] requests evenly in the i-th `length`. */
struct trace {
    uint64_t length;
    size_t steps;
    uint64_t counts[4];
    /* When the first step begins. */
    uint64_t from;
};

static const struct trace t1 = {30 * SEC, 4, {20, 100, 100, 20}, 0};
static const struct trace t1b = {20 * SEC, 4, {2, 2, 116, 116}, 0};
static const struct trace t2 = {30 * SEC, 2, {10, 10, 0, 0}, 30 * SEC};

static uint64_t admitted[256];

/* Replays a trace on a fresh limiter; the times admitted are left in `admitted`. */
static size_t replay(const char *text, const struct trace *trace) {
    tollbar_limiter *limiter = limiter_of(text);
    size_t step, all = 0;
    for (step = 0; step < trace->steps; step++) {
        uint64_t i, n = trace->counts[step];
        for (i = 0; i < n; i++) {
            uint64_t now = trace->from + step * trace->length + i * trace->length / n;
            if (tollbar_limiter_check_at(limiter, now, 1, NULL) == TOLLBAR_ALLOWED)
                admitted[all++] = now;
        }
    }
    tollbar_limiter_free(limiter);
    return all;
}

/* Of the last replay, those in [from, to). */
static size_t within(size_t all, uint64_t from, uint64_t to) {
    size_t i, n = 0;
    for (i = 0; i < all; i++)
        n += admitted[i] >= from && admitted[i] < to;
    return n;
}

static size_t most_in_a_minute(size_t all) {
    size_t i, first = 0, most = 0;
    for (i = 0; i < all; i++) {
        while (admitted[first] + MIN <= admitted[i])
            first++;
        most = i + 1 - first > most ? i + 1 - first : most;
    }
    return most;
}

static void s01_fixed_window(void **state) {
    size_t all = replay("120/min algo fixed-window", &t1);
    (void)state;
    assert_int_equal(all, 240);
    assert_int_equal(within(all, 30 * SEC, 90 * SEC), 200);
    all = replay("120/min algo fixed-window", &t1b);
    assert_int_equal(all, 236);
    assert_int_equal(most_in_a_minute(all), 234);
    assert_int_equal(replay("10/min algo fixed-window", &t2), 20);
    assert_int_equal(replay("10/min algo fixed-window anchor first", &t2), 10);
}

static void s01_fixed_window_around_an_edge(void **state) {
    static const struct trace edge = {MS, 2, {110, 110, 0, 0}, SEC - MS};
    size_t all = replay("100/s algo fixed-window", &edge);
    (void)state;
    assert_int_equal(all, 200);
    assert_int_equal(within(all, SEC - MS, SEC), 100);
}

static void s01_rejected_requests_count_if_told_to(void **state) {
    static const char *const texts[] = {"10/s algo fixed-window", "10/s algo fixed-window count rejected"};
    static const uint64_t left[] = {2, 0};
    size_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        tollbar_limiter *limiter = limiter_of(texts[i]);
        tollbar_decision got = TOLLBAR_DECISION_INIT;
        assert_int_equal(tollbar_limiter_check_at(limiter, 0, 8, NULL), TOLLBAR_ALLOWED);
        assert_int_equal(tollbar_limiter_check_at(limiter, 1, 3, NULL), TOLLBAR_DENIED);
        tollbar_limiter_peek_at(limiter, 2, 1, &got);
        assert_int_equal(got.remaining, left[i]);
        assert_int_equal(tollbar_limiter_check_at(limiter, SEC, 10, NULL), TOLLBAR_ALLOWED);
        tollbar_limiter_free(limiter);
    }
}

static void s02_sliding_log(void **state) {
    static const uint64_t times[] = {HOUR + SEC, HOUR + 30 * SEC, HOUR + 50 * SEC, HOUR + 100 * SEC,
                                     HOUR + 105 * SEC};
    static const uint64_t edge[] = {5 * US, 5 * US, 5 * US, SEC + 5 * US - 1, SEC + 5 * US, SEC + 5 * US,
                                    SEC + 5 * US};
    size_t all;
    (void)state;
    assert_answers("2/min algo sliding-log", times, 5, "TTFTT");
    assert_answers("2/min algo sliding-log count rejected", times, 5, "TTFTF");
    /* Two in one microsecond are two, and the window is (t - W, t]. */
    assert_answers("2/s algo sliding-log", edge, 7, "TTFFTTF");
    all = replay("120/min algo sliding-log", &t1);
    assert_int_equal(all, 160);
    assert_int_equal(within(all, 0, 30 * SEC), 20);
    assert_int_equal(within(all, 30 * SEC, 60 * SEC), 100);
    assert_int_equal(within(all, 60 * SEC, 90 * SEC), 20);
    assert_int_equal(within(all, 90 * SEC, 120 * SEC), 20);
    assert_int_equal(replay("120/min algo sliding-log count rejected", &t1), 121);
}

static void s03_sliding_window(void **state) {
    static const struct {
        const struct trace *trace;
        const char *text;
        size_t want;
    } rows[] = {
        {&t1, "120/min algo sliding-window segments 3 mode n", 187},
        {&t1, "120/min algo sliding-window segments 3 mode strict", 147},
        {&t1, "120/min algo sliding-window segments 3 mode interpolated", 173},
        {&t1, "120/min algo sliding-window segments 6 mode n", 160},
        {&t1, "120/min algo sliding-window segments 6 mode strict", 153},
        {&t1, "120/min algo sliding-window segments 6 mode interpolated", 159},
        {&t1, "120/min algo sliding-window segments 60 mode n", 160},
        {&t1, "120/min algo sliding-window segments 60 mode strict", 159},
        {&t1, "120/min algo sliding-window segments 60 mode interpolated", 159},
        {&t1b, "120/min algo sliding-window segments 3 mode n", 122},
        {&t1b, "120/min algo sliding-window segments 3 mode strict", 120},
        {&t1b, "120/min algo sliding-window segments 3 mode interpolated", 121},
    };
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(rows); i++) {
        size_t got = replay(rows[i].text, rows[i].trace);
        if (got != rows[i].want)
            fail_msg("\"%s\": %u, not %u", rows[i].text, (unsigned)got, (unsigned)rows[i].want);
        if (strstr(rows[i].text, "strict") != NULL)
            assert_true(most_in_a_minute(got) <= 120);
    }
}

static void s03_sliding_window_lets_go_after_a_window(void **state) {
    uint64_t times[12];
    size_t i;
    (void)state;
    for (i = 0; i < 11; i++)
        times[i] = 5 * SEC + i * SEC / 11;
    times[11] = 65 * SEC;
    assert_answers("10/min algo sliding-window segments 60", times, 12, "TTTTTTTTTTFT");
}

static void s04_weighted_window(void **state) {
    (void)state;
    assert_int_equal(replay("120/min algo weighted-window", &t1), 199);
    assert_int_equal(replay("120/min algo weighted-window", &t1b), 159);
}

static void s06_leaky_bucket_as_a_meter(void **state) {
    static const uint64_t times[] = {0, 0, 0, 0, 0, 0, 0, SEC, SEC, SEC, SEC};
    static const unsigned want[] = {100, 106, 112, 118};
    tollbar_limiter *limiter = limiter_of("100/s algo leaky-bucket");
    uint64_t now = 0;
    unsigned call, refused = 0;
    (void)state;
    assert_answers("2/s burst 5 algo leaky-bucket", times, 11, "TTTTTFFTTFF");
    for (call = 0; call < 120; call++)
        if (tollbar_limiter_check_at(limiter, now, 1, NULL) != TOLLBAR_ALLOWED) {
            assert_in_range(refused, 0, 3);
            assert_int_equal(call, want[refused++]);
            now += 50 * MS;
        }
    assert_int_equal(refused, 4);
    tollbar_limiter_free(limiter);
}

static void s09_token_bucket(void **state) {
    static const uint64_t at_once[4] = {0, 0, 0, 0};
    tollbar_limiter *limiter = limiter_of("1/100ms burst 10 init 0");
    unsigned caller;
    (void)state;
    assert_answers("3/s", at_once, 4, "TTTF");
    /* 15 callers at one instant, each with a second of patience; the bucket starts empty. */
    for (caller = 0; caller < 15; caller++) {
        uint64_t wait = 77;
        int32_t verdict = tollbar_limiter_reserve_at(limiter, 0, 1, SEC, &wait);
        assert_int_equal(verdict, caller < 10 ? TOLLBAR_ALLOWED : TOLLBAR_DENIED);
        assert_int_equal(wait, caller < 10 ? (caller + 1) * 100 * MS : 77);
    }
    tollbar_limiter_free(limiter);
}

static void s10_interval_refill(void **state) {
    static const uint64_t times[] = {0, 10 * SEC, 30 * SEC, 55 * SEC, 60 * SEC};
    static const uint64_t odd = UINT64_C(12345678901);
    uint64_t later[5];
    size_t i;
    (void)state;
    for (i = 0; i < 5; i++)
        later[i] = times[i] + odd;
    assert_answers("3/min algo interval anchor first", times, 5, "TTTFT");
    assert_answers("3/min algo interval anchor first", later, 5, "TTTFT");
    assert_answers("3/min", times, 5, "TTTTT");
}

static void s13_borrow(void **state) {
    tollbar_limiter *lender = limiter_of("1/s borrow");
    uint64_t wait = 77;
    (void)state;
    assert_int_equal(tollbar_limiter_reserve_at(lender, 0, 1000, UINT64_MAX, &wait), TOLLBAR_ALLOWED);
    assert_int_equal(wait, 0);
    assert_int_equal(tollbar_limiter_reserve_at(lender, 0, 1, UINT64_MAX, &wait), TOLLBAR_ALLOWED);
    assert_int_equal(wait, 1000 * SEC);
    tollbar_limiter_free(lender);
}

static void s08_s14_departures(void **state) {
    tollbar_limiter *pacer = limiter_of("100/s algo pacer"), *warm = limiter_of("100/s algo warm-up warm 2s");
    uint64_t i, wait = 77, last = 0;
    (void)state;
    for (i = 0; i < 20; i++) {
        assert_int_equal(tollbar_limiter_reserve_at(pacer, 0, 1, UINT64_MAX, &wait), TOLLBAR_ALLOWED);
        assert_int_equal(wait, i * 10 * MS);
    }
    /* Gaps of 29.9, 29.7 ... 10.1 ms, then 10: 100 permits by 2 s, 200 by 3, 300 by 4. */
    for (i = 0; i <= 300; i++) {
        assert_int_equal(tollbar_limiter_reserve_at(warm, 0, 1, UINT64_MAX, &wait), TOLLBAR_ALLOWED);
        if (i != 0)
            assert_int_equal(wait - last, i <= 100 ? (301 - 2 * i) * 100 * US : 10 * MS);
        last = wait;
        if (i == 100 || i == 200 || i == 300)
            assert_int_equal(wait, (1 + i / 100) * SEC);
    }
    tollbar_limiter_free(pacer);
    tollbar_limiter_free(warm);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s01_fixed_window),
        cmocka_unit_test(s01_fixed_window_around_an_edge),
        cmocka_unit_test(s01_rejected_requests_count_if_told_to),
        cmocka_unit_test(s02_sliding_log),
        cmocka_unit_test(s03_sliding_window),
        cmocka_unit_test(s03_sliding_window_lets_go_after_a_window),
        cmocka_unit_test(s04_weighted_window),
        cmocka_unit_test(s06_leaky_bucket_as_a_meter),
        cmocka_unit_test(s08_s14_departures),
        cmocka_unit_test(s09_token_bucket),
        cmocka_unit_test(s10_interval_refill),
        cmocka_unit_test(s13_borrow),
    };
    return cmocka_run_group_tests_name("golden traces", tests, NULL, NULL);
}
