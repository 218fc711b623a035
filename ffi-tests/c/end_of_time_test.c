/* [C3] Every policy has a last time, and no call admits after it: of a limiter (with and without credit), a cell, and a table (with
 * room and full). */
#include "test.h"

static const char *const texts[] = {
    "100/s burst 20",
    "7/s burst 3",
    "5/min burst 5 init 3",
    "100/s burst 20 borrow",
    "1000000/s burst 100000",
    "15000000000/s burst 1000",
    "5/min algo interval",
    "3/min burst 3 algo interval anchor first",
    "31000000000/s burst 5 algo interval",
    "5/min algo fixed-window",
    "5/min algo fixed-window anchor first",
    "6/s algo fixed-window anchor first",
    "7/s algo fixed-window anchor first",
    "5/min algo weighted-window",
    "5/min algo sliding-window segments 6",
    "5/min algo sliding-window segments 6 mode interpolated anchor first",
    "5/min algo sliding-log",
    "5/min algo pacer slack 2",
    "5/min algo warm-up warm 10s cold 3",
};

#define TIMES 200

static uint64_t last_time(const char *text) {
    tollbar_policy_spec spec = spec_of(text);
    uint64_t last = 0;
    assert_int_equal(tollbar_policy_spec_last_time(&spec, &last), 0);
    assert_in_range(last, UINT64_C(1) << 58, (UINT64_C(1) << 61) - 2);
    return last;
}

/* Powers of two, their neighbours, and times around `last`. `after` selects those after `last`, otherwise the others. */
static size_t times(uint64_t last, int after, uint64_t *out) {
    const uint64_t ends[] = { last - 1, last, last + 1, UINT64_MAX - 1, UINT64_MAX };
    size_t n = 0;
    unsigned bit, i;
    for (bit = 0; bit < 64; bit++)
        for (i = 0; i < 3; i++) {
            const uint64_t time = (UINT64_C(1) << bit) - 1 + i;
            if ((time > last) == after)
                out[n++] = time;
        }
    for (i = 0; i < COUNT(ends); i++)
        if ((ends[i] > last) == after)
            out[n++] = ends[i];
    assert_in_range(n, 1, TIMES);
    return n;
}

static void c3_the_last_time_is_told(void **state) {
    tollbar_policy_spec spec = spec_of("5/min");
    uint64_t last = 0;
    (void)state;
    assert_int_equal(tollbar_policy_spec_last_time(&spec, &last), 0);
    assert_int_equal(last, (UINT64_C(1) << 61) - 2);
    assert_true(last_time("15000000000/s burst 1000") < last);
    spec.period_ns = 0;
    assert_int_equal(tollbar_policy_spec_last_time(&spec, &last), TOLLBAR_E_PERIOD_ZERO);
    assert_int_equal(last, (UINT64_C(1) << 61) - 2);
}

static void c3_a_limiter_ends_at_the_last_time(void **state) {
    tollbar_reservation booked;
    uint64_t time[TIMES], taken;
    size_t t, n;
    (void)state;
    for (t = 0; t < COUNT(texts); t++) {
        const uint64_t last = last_time(texts[t]);
        size_t count = times(last, 0, time);
        for (n = 0; n < count; n++) {
            tollbar_limiter *limiter = limiter_of(texts[t]);
            if (tollbar_limiter_check_at(limiter, 1, time[n], NULL) != TOLLBAR_ALLOWED)
                fail_msg("%s is refused at %lu, and its last time is %lu", texts[t], (unsigned long)time[n], (unsigned long)last);
            tollbar_limiter_free(limiter);
        }
        count = times(last, 1, time);
        for (n = 0; n < count; n++) {
            tollbar_limiter *limiter = limiter_of(texts[t]);
            tollbar_decision decision = TOLLBAR_DECISION_INIT;
            int before;
            for (before = 0; before < 2; before++) {
                if (tollbar_limiter_check_at(limiter, 1, time[n], NULL) != TOLLBAR_DENIED ||
                    tollbar_limiter_check_at(limiter, 2, time[n], &decision) != TOLLBAR_DENIED || decision.remaining != 0 ||
                    decision.retry_after_ns != TOLLBAR_NO_TIME ||
                    tollbar_limiter_peek_at(limiter, 1, time[n], NULL) != TOLLBAR_DENIED)
                    fail_msg("%s is not refused at %lu", texts[t], (unsigned long)time[n]);
                assert_int_equal(tollbar_limiter_take_up_to_at(limiter, 3, time[n], &taken), TOLLBAR_DENIED);
                assert_int_equal(taken, 0);
                assert_int_not_equal(tollbar_limiter_reserve_at(limiter, 1, TOLLBAR_NO_TIME, time[n], &booked), TOLLBAR_ALLOWED);
                tollbar_limiter_check_at(limiter, 1, last, NULL);
            }
            tollbar_limiter_free(limiter);
        }
    }
}

static void c3_a_cell_ends_at_the_last_time(void **state) {
    uint64_t time[TIMES], taken;
    size_t t, n;
    (void)state;
    for (t = 0; t < COUNT(texts); t++) {
        const uint64_t last = last_time(texts[t]);
        const size_t count = times(last, 1, time);
        tollbar_policy_spec spec = spec_of(texts[t]);
        tollbar_policy *policy = NULL;
        if (tollbar_policy_new(&spec, &policy) == TOLLBAR_E_NOT_ONE_WORD)
            continue;
        for (n = 0; n < count; n++) {
            tollbar_cell cell = TOLLBAR_CELL_INIT;
            int32_t result = 7;
            if (tollbar_cell_check_at(&cell, policy, 1, time[n], NULL) != TOLLBAR_DENIED ||
                tollbar_cell_peek_at(&cell, policy, 1, time[n], NULL) != TOLLBAR_DENIED ||
                tollbar_cell_take_up_to_at(&cell, policy, 3, time[n], &taken) != TOLLBAR_DENIED || taken != 0)
                fail_msg("%s is not refused at %lu", texts[t], (unsigned long)time[n]);
            assert_int_equal(tollbar_cell_check_many_at(&cell, 1, policy, 1, time[n], &result), 0);
            assert_int_equal(result, TOLLBAR_DENIED);
            assert_int_equal(cell.word, 0);
        }
        tollbar_policy_free(policy);
    }
}

static void c3_a_limiter_with_credit_ends_at_the_last_time(void **state) {
    uint64_t time[TIMES];
    const uint64_t last = last_time("1000000/s burst 100000");
    const size_t count = times(last, 1, time);
    tollbar_limiter *limiter = limiter_with_credit("1000000/s burst 100000");
    size_t n;
    (void)state;
    /* These requests give the thread credit. */
    for (n = 0; n < 3; n++)
        assert_int_equal(tollbar_limiter_check_at(limiter, 1, last, NULL), TOLLBAR_ALLOWED);
    for (n = 0; n < count; n++)
        if (tollbar_limiter_check_at(limiter, 1, time[n], NULL) != TOLLBAR_DENIED)
            fail_msg("not refused at %lu", (unsigned long)time[n]);
    assert_int_equal(tollbar_limiter_check_at(limiter, 1, last, NULL), TOLLBAR_ALLOWED);
    tollbar_limiter_free(limiter);
}

/* Known and new keys, in a table with room and in a full one, under every TOLLBAR_ON_FULL_ number. */
static void c3_a_table_ends_at_the_last_time(void **state) {
    uint64_t time[TIMES], taken;
    size_t t, n;
    uint32_t full, key;
    (void)state;
    for (t = 0; t < COUNT(texts); t++)
        for (full = 0; full < 4; full++) {
            const uint64_t last = last_time(texts[t]);
            const size_t count = times(last, 1, time);
            struct asked asked;
            tollbar_table *table = NULL;
            ask(&asked, 1000, texts[t], NULL);
            asked.options.on_full = full;
            if (tollbar_table_new(asked.policies, asked.count, &asked.options, &table) != 0) {
                assert_non_null(strstr(texts[t], "anchor first"));
                continue;
            }
            for (key = 0; key < 9000; key += 3000) {
                for (n = 0; n < count; n++) {
                    const char *const keys[] = { "known", "a newcomer" };
                    const char *const k = keys[n % 2];
                    if (tollbar_table_check_at(table, 0, k, strlen(k), 1, time[n], NULL) != TOLLBAR_DENIED ||
                        tollbar_table_peek_at(table, 0, k, strlen(k), 1, time[n], NULL) != TOLLBAR_DENIED ||
                        tollbar_table_take_up_to_at(table, 0, k, strlen(k), 3, time[n], &taken) != TOLLBAR_DENIED)
                        fail_msg("%s is not refused at %lu", texts[t], (unsigned long)time[n]);
                }
                assert_int_not_equal(tollbar_table_check_at(table, 0, "known", 5, 1, last, NULL), TOLLBAR_NEVER);
                for (n = key; n < key + 3000; n++)
                    tollbar_table_check_at(table, 0, &n, sizeof n, 1, last, NULL);
            }
            tollbar_table_close(table);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c3_the_last_time_is_told),
        cmocka_unit_test(c3_a_limiter_ends_at_the_last_time),
        cmocka_unit_test(c3_a_cell_ends_at_the_last_time),
        cmocka_unit_test(c3_a_limiter_with_credit_ends_at_the_last_time),
        cmocka_unit_test(c3_a_table_ends_at_the_last_time),
    };
    return cmocka_run_group_tests_name("end of time", tests, NULL, NULL);
}
