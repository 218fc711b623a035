/* Keys of tables through each of their calls, at the caller's time: what a C program relies on. */
#define _POSIX_C_SOURCE 200809L
#include "table.h"

/* Pseudo-random numbers, the same in every run. */
static uint64_t next_random(uint64_t *seed) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

static void keys_are_bytes_of_any_length(void **state) {
    enum { LONGEST = 300 };
    tollbar_table *table = table_of(1000, "1/min", NULL);
    static unsigned char zeros[LONGEST + 1];
    char odd[12] = "xkey";
    size_t length;
    (void)state;
    /* These keys differ only in their number of zero bytes. */
    for (length = 1; length <= LONGEST; length++)
        assert_int_equal(tollbar_table_check_at(table, 0, zeros, length, 1, SEC, NULL), TOLLBAR_ALLOWED);
    /* Bytes behind the length do not matter, nor does the key's address. */
    for (length = 1; length < LONGEST; length++) {
        assert_int_equal(tollbar_table_check_at(table, 0, zeros + 1, length, 1, SEC, NULL), TOLLBAR_DENIED);
        zeros[length] = 7;
        assert_int_equal(tollbar_table_check_at(table, 0, zeros, length, 1, SEC, NULL), TOLLBAR_DENIED);
        zeros[length] = 0;
    }
    /* Another first or last byte makes another key. */
    for (length = 1; length <= LONGEST; length++) {
        zeros[0] = 1;
        assert_int_equal(tollbar_table_check_at(table, 0, zeros, length, 1, SEC, NULL), TOLLBAR_ALLOWED);
        zeros[0] = 0;
        zeros[length - 1] = 2;
        assert_int_equal(tollbar_table_check_at(table, 0, zeros, length, 1, SEC, NULL), TOLLBAR_ALLOWED);
        zeros[length - 1] = 0;
    }
    assert_int_equal(tollbar_table_check_at(table, 0, odd + 1, 3, 1, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(table, 0, "key", 3, 1, SEC, NULL), TOLLBAR_DENIED);
    tollbar_table_close(table);
}

static void peek_says_what_check_would_and_remembers_nobody(void **state) {
    tollbar_table *table = table_of(1000, "5/s", NULL);
    uint64_t cost;
    (void)state;
    for (cost = 0; cost <= 6; cost++) {
        tollbar_decision got = TOLLBAR_DECISION_INIT;
        int32_t want = cost == 6 ? TOLLBAR_NEVER : TOLLBAR_ALLOWED;
        assert_int_equal(tollbar_table_peek_at(table, 0, "k", 1, cost, SEC, NULL), want);
        assert_int_equal(tollbar_table_peek_at(table, 0, "k", 1, cost, SEC, &got), want);
        assert_decision(got, want, 5, cost == 6 ? TOLLBAR_NO_TIME : 0, 0);
    }
    assert_int_equal(stats_of(table).inserted, 0);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 4, SEC, NULL), TOLLBAR_ALLOWED);
    for (cost = 0; cost <= 6; cost++) {
        tollbar_decision got = TOLLBAR_DECISION_INIT, again = TOLLBAR_DECISION_INIT;
        int32_t want = cost == 6 ? TOLLBAR_NEVER : cost > 1 ? TOLLBAR_DENIED : TOLLBAR_ALLOWED;
        assert_int_equal(tollbar_table_peek_at(table, 0, "k", 1, cost, SEC, &got), want);
        assert_int_equal(got.remaining, 1);
        /* A refusal charges nothing, so the same call must give the same decision again. */
        if (want != TOLLBAR_ALLOWED) {
            assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, cost, SEC, &again), want);
            assert_memory_equal(&got, &again, sizeof got);
        }
    }
    tollbar_table_close(table);
}

static void take_up_to_takes_what_there_is(void **state) {
    tollbar_table *table = table_of(1000, "10/s", NULL);
    uint64_t taken = 77;
    (void)state;
    assert_int_equal(tollbar_table_take_up_to_at(table, 0, "k", 1, 0, SEC, &taken), TOLLBAR_DENIED);
    assert_int_equal(taken, 0);
    assert_int_equal(tollbar_table_take_up_to_at(table, 0, "k", 1, 4, SEC, &taken), TOLLBAR_ALLOWED);
    assert_int_equal(taken, 4);
    assert_int_equal(tollbar_table_take_up_to_at(table, 0, "k", 1, UINT64_MAX, SEC, &taken), TOLLBAR_ALLOWED);
    assert_int_equal(taken, 6);
    assert_int_equal(tollbar_table_take_up_to_at(table, 0, "k", 1, 1, SEC, &taken), TOLLBAR_DENIED);
    assert_int_equal(taken, 0);
    assert_int_equal(tollbar_table_take_up_to_at(table, 0, "k", 1, 9, SEC + SEC / 5, &taken), TOLLBAR_ALLOWED);
    assert_int_equal(taken, 2);
    tollbar_table_close(table);
}

/* check_many_at gives the same results as single calls. */
static void assert_as_singles(const tollbar_table *many, const tollbar_table *one, uint64_t now,
                              const tollbar_request *requests, size_t count) {
    int32_t results[101];
    size_t i;
    for (i = 0; i < COUNT(results); i++)
        results[i] = 77;
    assert_int_equal(tollbar_table_check_many_at(many, requests, count, now, results), 0);
    for (i = 0; i < count; i++)
        assert_int_equal(results[i], tollbar_table_check_at(one, requests[i].policy, requests[i].key, requests[i].length,
                                                            requests[i].cost, now, NULL));
    for (; i < COUNT(results); i++)
        assert_int_equal(results[i], 77);
}

static void check_many_is_check_for_each(void **state) {
    static const size_t counts[] = {0, 1, 2, 31, 32, 33, 63, 64, 65, 96, 100};
    static const char *const policies[][2] = {{"3/s", "2/min"}, {"5/s algo sliding-log", NULL}, {"4/s algo fixed-window", "9/h"}};
    size_t p, n, i;
    (void)state;
    for (p = 0; p < COUNT(policies); p++) {
        tollbar_table *many = table_of(100, policies[p][0], policies[p][1]);
        tollbar_table *one = table_of(100, policies[p][0], policies[p][1]);
        uint64_t keys[100], seed = p, now = SEC;
        for (n = 0; n < COUNT(counts); n++) {
            tollbar_request requests[100];
            for (i = 0; i < counts[n]; i++) {
                const tollbar_request fresh = TOLLBAR_REQUEST_INIT;
                requests[i] = fresh;
                keys[i] = next_random(&seed) % 40;
                requests[i].key = &keys[i];
                /* Keys of several lengths. An empty key is refused. */
                requests[i].length = next_random(&seed) % 9;
                requests[i].policy = policies[p][1] ? (uint32_t)next_random(&seed) % 2 : 0;
                /* Costs from 0, which charges nothing, to one above the burst. */
                requests[i].cost = next_random(&seed) % 12 / 2;
            }
            /* Numbers of missing policies, in the middle of the batch and at its end. */
            for (i = 7; i < counts[n]; i += 24)
                requests[i].policy = i == 7 ? 2 : UINT32_MAX;
            assert_as_singles(many, one, now, requests, counts[n]);
            /* Again, now that the keys are known. */
            assert_as_singles(many, one, now + SEC / 10, requests, counts[n]);
            now += SEC / 3;
        }
        assert_same_content(many, one, now);
        assert_true(stats_of(many).keys > 30);
        tollbar_table_close(one);
        tollbar_table_close(many);
    }
}

/* One batch with different costs, an error of one entry, and several entries for one key. */
static void check_many_gives_each_its_own_answer(void **state) {
    static const struct {
        uint32_t policy;
        uint64_t cost;
        int32_t want;
    } rows[] = {
        {0, 2, TOLLBAR_ALLOWED}, {0, 2, TOLLBAR_DENIED},           {0, 4, TOLLBAR_NEVER},
        {2, 1, TOLLBAR_E_NO_SUCH_POLICY},                          {1, 1, TOLLBAR_ALLOWED},
        {0, 1, TOLLBAR_ALLOWED}, {UINT32_MAX, 0, TOLLBAR_E_NO_SUCH_POLICY}, {0, 1, TOLLBAR_DENIED},
        {0, 0, TOLLBAR_ALLOWED}, {1, 1, TOLLBAR_DENIED},
    };
    tollbar_table *table = table_of(100, "3/min", "1/min");
    tollbar_request requests[COUNT(rows)];
    int32_t results[COUNT(rows)];
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(rows); i++) {
        const tollbar_request fresh = TOLLBAR_REQUEST_INIT;
        requests[i] = fresh;
        requests[i].key = "key";
        requests[i].length = 3;
        requests[i].policy = rows[i].policy;
        requests[i].cost = rows[i].cost;
    }
    assert_int_equal(tollbar_table_check_many_at(table, requests, COUNT(rows), SEC, results), 0);
    for (i = 0; i < COUNT(rows); i++)
        assert_int_equal(results[i], rows[i].want);
    tollbar_table_close(table);
}

static void by_the_tables_clock(void **state) {
    uint32_t clock;
    (void)state;
    for (clock = TOLLBAR_CLOCK_TSC; clock <= TOLLBAR_CLOCK_COARSE; clock++) {
        struct asked asked;
        tollbar_table *table;
        tollbar_limiter *limiter;
        tollbar_decision got = TOLLBAR_DECISION_INIT;
        tollbar_request requests[2] = {{"k", 1, 1, 0, 0}, {"k", 1, 4, 0, 0}};
        int32_t results[3] = {77, 77, 77};
        uint64_t before = 0, now = 0, after = 0, taken = 0;
        ask(&asked, 1000, "4/h", NULL);
        asked.options.clock = clock;
        table = table_asked(&asked);
        limiter = limiter_with("4/h", clock, 0);
        assert_int_equal(tollbar_limiter_now(limiter, &before), 0);
        assert_int_equal(tollbar_table_now(table, &now), 0);
        assert_int_equal(tollbar_limiter_now(limiter, &after), 0);
        assert_in_range(now, before, after);
        tollbar_limiter_free(limiter);

        assert_int_equal(tollbar_table_peek(table, 0, "k", 1, 4, &got), TOLLBAR_ALLOWED);
        assert_int_equal(got.remaining, 4);
        assert_int_equal(tollbar_table_check(table, 0, "k", 1, 1, NULL), TOLLBAR_ALLOWED);
        assert_int_equal(tollbar_table_check(table, 0, "k", 1, 1, &got), TOLLBAR_ALLOWED);
        assert_int_equal(got.remaining, 2);
        assert_int_equal(tollbar_table_check_many(table, requests, 2, results), 0);
        assert_int_equal(results[0], TOLLBAR_ALLOWED);
        assert_int_equal(results[1], TOLLBAR_DENIED);
        assert_int_equal(results[2], 77);
        assert_int_equal(tollbar_table_take_up_to(table, 0, "k", 1, 9, &taken), TOLLBAR_ALLOWED);
        assert_int_equal(taken, 1);
        assert_int_equal(tollbar_table_check(table, 0, "k", 1, 1, &got), TOLLBAR_DENIED);
        assert_in_range(got.retry_after_ns, HOUR / 4 - 10 * SEC, HOUR / 4);
        /* Calls with `_at` and without it use the same scale of time. */
        assert_int_equal(tollbar_table_now(table, &now), 0);
        assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, now + HOUR / 4, NULL), TOLLBAR_ALLOWED);
        assert_int_equal(tollbar_table_reset(table, 0, "k", 1), TOLLBAR_YES);
        assert_int_equal(tollbar_table_peek(table, 0, "k", 1, 4, NULL), TOLLBAR_ALLOWED);
        /* The sync of a table without a file does nothing. */
        assert_int_equal(tollbar_table_sync(table), 0);
        tollbar_table_close(table);
    }
}

static void a_request_without_a_key(void **state) {
    static const int32_t want[] = {TOLLBAR_DENIED, TOLLBAR_ALLOWED, TOLLBAR_E_MISSING_KEY};
    uint32_t mode;
    (void)state;
    for (mode = TOLLBAR_MISSING_DENY; mode <= TOLLBAR_MISSING_REPORT; mode++) {
        const void *const keys[] = {NULL, "not looked at"};
        struct asked asked;
        tollbar_table *table;
        size_t i;
        ask(&asked, 1000, "1/min", NULL);
        asked.options.missing_key = mode;
        table = table_asked(&asked);
        for (i = 0; i < COUNT(keys); i++) {
            tollbar_decision got = TOLLBAR_DECISION_INIT;
            tollbar_request requests[2] = {{NULL, 0, 1, 0, 0}, {"a", 1, 1, 0, 0}};
            uint64_t taken = 77;
            int32_t results[2] = {77, 77};
            requests[0].key = keys[i];
            assert_int_equal(tollbar_table_check_at(table, 0, keys[i], 0, 1, SEC, NULL), want[mode]);
            assert_int_equal(tollbar_table_check_at(table, 0, keys[i], 0, 1, SEC, &got), want[mode]);
            if (mode == TOLLBAR_MISSING_DENY)
                assert_decision(got, TOLLBAR_DENIED, 0, TOLLBAR_NO_TIME, TOLLBAR_NO_TIME);
            else
                assert_decision(got, TOLLBAR_ALLOWED, mode == TOLLBAR_MISSING_ALLOW ? UINT64_MAX : 0, 0, 0);
            if (mode != TOLLBAR_MISSING_REPORT)
                assert_int_equal(got.reason, TOLLBAR_REASON_MISSING_KEY);
            assert_int_equal(tollbar_table_peek_at(table, 0, keys[i], 0, 1, SEC, &got), want[mode]);
            assert_int_equal(tollbar_table_take_up_to_at(table, 0, keys[i], 0, 9, SEC, &taken), want[mode]);
            assert_int_equal(taken, mode == TOLLBAR_MISSING_DENY ? 0 : mode == TOLLBAR_MISSING_ALLOW ? 9 : 77);
            /* In a batch only that entry gets the answer. */
            assert_int_equal(tollbar_table_check_many_at(table, requests, 2, SEC, results), 0);
            assert_int_equal(results[0], want[mode]);
            assert_int_equal(results[1], i == 0 ? TOLLBAR_ALLOWED : TOLLBAR_DENIED);
        }
        assert_int_equal(stats_of(table).keys, 1);
        tollbar_table_close(table);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_bytes_of_any_length),
        cmocka_unit_test(peek_says_what_check_would_and_remembers_nobody),
        cmocka_unit_test(take_up_to_takes_what_there_is),
        cmocka_unit_test(check_many_is_check_for_each),
        cmocka_unit_test(check_many_gives_each_its_own_answer),
        cmocka_unit_test(by_the_tables_clock),
        cmocka_unit_test(a_request_without_a_key),
    };
    return cmocka_run_group_tests_name("tables", tests, NULL, NULL);
}
