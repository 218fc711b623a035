/* Policies of a table: exemptions, changes, how many there may be, and the answers of a full
 * table. */
#define _POSIX_C_SOURCE 200809L
#include "table.h"

static void exempt_keys_are_never_charged(void **state) {
    tollbar_table *table = table_of(1000, "1/min", "1/min");
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    tollbar_request request = {"monitor", 7, 50, 0, 0};
    uint64_t taken = 0;
    int32_t result = 77;
    (void)state;
    assert_int_equal(tollbar_table_exempt(table, 0, "monitor", 7), 0);
    assert_int_equal(tollbar_table_exempt(table, 0, "monitor", 7), 0);
    assert_int_equal(tollbar_table_check_at(table, 0, "monitor", 7, UINT64_MAX, SEC, &got), TOLLBAR_ALLOWED);
    assert_decision(got, TOLLBAR_ALLOWED, UINT64_MAX, 0, 0);
    assert_int_equal(tollbar_table_check_at(table, 0, "monitor", 7, 2, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_peek_at(table, 0, "monitor", 7, 2, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_take_up_to_at(table, 0, "monitor", 7, 99, SEC, &taken), TOLLBAR_ALLOWED);
    assert_int_equal(taken, 99);
    assert_int_equal(tollbar_table_check_many_at(table, &request, 1, SEC, &result), 0);
    assert_int_equal(result, TOLLBAR_ALLOWED);
    assert_int_equal(stats_of(table).keys, 0);
    /* Under the other policy the key is not exempt. */
    assert_int_equal(tollbar_table_check_at(table, 1, "monitor", 7, 1, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(table, 1, "monitor", 7, 1, SEC, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_unexempt(table, 1, "monitor", 7), TOLLBAR_NO);
    assert_int_equal(tollbar_table_unexempt(table, 0, "monitor", 7), TOLLBAR_YES);
    assert_int_equal(tollbar_table_unexempt(table, 0, "monitor", 7), TOLLBAR_NO);
    assert_int_equal(tollbar_table_check_at(table, 0, "monitor", 7, 1, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(table, 0, "monitor", 7, 1, SEC, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_exempt(table, 2, "monitor", 7), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_unexempt(table, 2, "monitor", 7), TOLLBAR_E_NO_SUCH_POLICY);
    tollbar_table_close(table);
}

static void policies_change_while_keys_keep_their_debt(void **state) {
    tollbar_table *table = table_of(1000, "10/min", "5/min");
    tollbar_policy_spec twenty = spec_of("20/min"), hourly = spec_of("1/h"), got = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    uint32_t number = 77;
    int i;
    (void)state;
    assert_int_equal(take(table, 0, 1, SEC, 10), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_set_policy(table, 0, &twenty, TOLLBAR_KEEP_COUNT), 0);
    assert_int_equal(tollbar_table_get_policy(table, 0, &got), 0);
    assert_memory_equal(&got, &twenty, sizeof got);
    assert_int_equal(tollbar_table_get_policy(table, 1, &got), 0);
    assert_int_equal(got.limit, 5);
    /* The key had no permits left and keeps that number: it has none now, and half of the new burst
     * after half a minute. */
    assert_int_equal(take(table, 0, 1, SEC, 1), TOLLBAR_DENIED);
    {
        uint64_t key = 1;
        assert_int_equal(tollbar_table_peek_at(table, 0, &key, sizeof key, 1, 31 * SEC + 16, &decision), TOLLBAR_ALLOWED);
        assert_int_equal(decision.remaining, 10);
    }
    /* A new key has the whole new burst. */
    assert_int_equal(take(table, 0, 2, SEC, 20), TOLLBAR_ALLOWED);
    /* A policy can change any number of times. */
    for (i = 0; i < 600; i++) {
        twenty.limit = twenty.burst = 20 + (uint64_t)(i % 7);
        assert_int_equal(tollbar_table_set_policy(table, 0, &twenty, TOLLBAR_KEEP_COUNT), 0);
    }
    assert_int_equal(take(table, 0, 1, SEC, 1), TOLLBAR_DENIED);

    assert_int_equal(tollbar_table_add_policy(table, &hourly, &number), 0);
    assert_int_equal(number, 2);
    assert_int_equal(stats_of(table).policies, 3);
    assert_int_equal(take(table, 2, 1, SEC, 1), TOLLBAR_ALLOWED);
    assert_int_equal(take(table, 2, 1, SEC, 1), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_find_or_add_policy(table, &hourly, &number), 0);
    assert_int_equal(number, 2);
    hourly.burst++;
    for (i = 0; i < 2; i++) {
        assert_int_equal(tollbar_table_find_or_add_policy(table, &hourly, &number), 0);
        assert_int_equal(number, 3);
    }
    assert_int_equal(stats_of(table).policies, 4);
    assert_int_equal(tollbar_table_set_policy(table, 4, &hourly, TOLLBAR_KEEP_COUNT), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_set_policy(table, 0, &hourly, 3), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_table_set_policy(table, 4, &hourly, TOLLBAR_KEEP_TIME), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_set_policy(table, UINT32_MAX, &hourly, TOLLBAR_KEEP_COUNT), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_get_policy(table, 4, &got), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(got.limit, 5);
    tollbar_table_close(table);
}

/* A key keeps the number of permits that it has left, or the time of its debt. */
static void a_changed_policy_keeps_what_is_asked_for(void **state) {
    uint32_t keep;
    (void)state;
    for (keep = TOLLBAR_KEEP_COUNT; keep <= TOLLBAR_KEEP_TIME; keep++) {
        tollbar_table *table = table_of(1000, "3/min", NULL);
        tollbar_policy_spec raised = spec_of("1000/s burst 1000");
        tollbar_decision decision = TOLLBAR_DECISION_INIT;
        const uint64_t key = 1;
        assert_int_equal(take(table, 0, key, HOUR, 3), TOLLBAR_ALLOWED);
        assert_int_equal(tollbar_table_set_policy(table, 0, &raised, keep), 0);
        assert_int_equal(tollbar_table_check_at(table, 0, &key, sizeof key, 1, HOUR, &decision), TOLLBAR_DENIED);
        if (keep == TOLLBAR_KEEP_COUNT)
            assert_int_equal(decision.retry_after_ns, MS);
        else
            assert_in_range(decision.retry_after_ns, 59 * SEC - 2 * MS, 59 * SEC + 2 * MS);
        tollbar_table_close(table);
    }
}

static void a_table_has_128_policies_at_most(void **state) {
    struct asked asked;
    const tollbar_policy_spec *policies[128];
    tollbar_table *table = NULL;
    uint32_t number = 77, i;
    (void)state;
    ask(&asked, 1000, "1/min", NULL);
    for (i = 0; i < COUNT(policies); i++)
        policies[i] = asked.policies[0];
    assert_int_equal(tollbar_table_new(policies, COUNT(policies), &asked.options, &table), 0);
    assert_int_equal(stats_of(table).policies, 128);
    for (i = 0; i < COUNT(policies); i++) {
        assert_int_equal(take(table, i, 1, SEC, 1), TOLLBAR_ALLOWED);
        assert_int_equal(take(table, i, 1, SEC, 1), TOLLBAR_DENIED);
    }
    assert_int_equal(take(table, 128, 1, SEC, 1), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_add_policy(table, &asked.specs[0], &number), TOLLBAR_E_POLICY_COUNT);
    assert_int_equal(number, 77);
    tollbar_table_close(table);

    table = table_asked(&asked);
    for (i = 1; i < COUNT(policies); i++) {
        assert_int_equal(tollbar_table_add_policy(table, &asked.specs[0], &number), 0);
        assert_int_equal(number, i);
    }
    assert_int_equal(tollbar_table_add_policy(table, &asked.specs[0], &number), TOLLBAR_E_POLICY_COUNT);
    assert_int_equal(tollbar_table_find_or_add_policy(table, &asked.specs[0], &number), 0);
    assert_int_equal(number, 0);
    asked.specs[0].burst++;
    assert_int_equal(tollbar_table_find_or_add_policy(table, &asked.specs[0], &number), TOLLBAR_E_POLICY_COUNT);
    tollbar_table_close(table);
}

/* A new key that finds no free slot is answered as `on_full` says, and the statistics count it. */
static void full_tables(void **state) {
    enum { KEYS = 12000 };
    uint32_t on_full;
    (void)state;
    for (on_full = TOLLBAR_ON_FULL_EVICT_NEAREST; on_full <= TOLLBAR_ON_FULL_DENY; on_full++) {
        static const uint32_t reasons[] = {TOLLBAR_REASON_ADMITTED, TOLLBAR_REASON_INHERITED_DEBT, TOLLBAR_REASON_TABLE_FULL,
                                           TOLLBAR_REASON_TABLE_FULL};
        struct asked asked;
        tollbar_table *table;
        tollbar_table_stats stats;
        uint64_t key, others = 0;
        ask(&asked, 1, "10/min burst 3", NULL);
        asked.options.on_full = on_full;
        table = table_asked(&asked);
        for (key = 0; key < KEYS; key++) {
            tollbar_decision got = TOLLBAR_DECISION_INIT;
            const int32_t verdict = tollbar_table_check_at(table, 0, &key, sizeof key, 2, SEC, &got);
            others += got.reason != TOLLBAR_REASON_ADMITTED;
            assert_true(got.reason == TOLLBAR_REASON_ADMITTED || got.reason == reasons[on_full]);
            assert_int_equal(verdict == TOLLBAR_ALLOWED,
                             got.reason == TOLLBAR_REASON_ADMITTED || on_full == TOLLBAR_ON_FULL_ALLOW);
        }
        stats = stats_of(table);
        assert_true(stats.slots == LEAST && stats.inserted > LEAST - LEAST / 10 && stats.inserted <= LEAST);
        assert_int_equal(others, on_full == TOLLBAR_ON_FULL_EVICT_NEAREST ? 0 : KEYS - stats.inserted);
        assert_int_equal(stats.evicted, on_full == TOLLBAR_ON_FULL_EVICT_NEAREST ? KEYS - stats.inserted : 0);
        assert_int_equal(stats.untracked, on_full == TOLLBAR_ON_FULL_ALLOW ? KEYS - stats.inserted : 0);
        assert_int_equal(stats.refused, on_full == TOLLBAR_ON_FULL_DENY || on_full == TOLLBAR_ON_FULL_INHERIT ? KEYS - stats.inserted : 0);
        tollbar_table_close(table);
    }
}

/* A hundred times the capacity in new keys, with the default options. No key pays before it asks, and
 * a limited key is decided as by a limiter of its own: while the clock goes on, and while it stands
 * still and the new keys take places from each other. */
static void s30_m3_a_flood_takes_no_place_of_a_limited_key(void **state) {
    enum { KEYS = 100000 };
    struct asked asked;
    tollbar_table *table;
    tollbar_limiter *alone = limiter_of("20/h burst 50");
    uint64_t key, now = 24 * HOUR, bytes, after, taken = 0;
    (void)state;
    ask(&asked, KEYS / 100, "20/h burst 50", "1/s burst 1");
    table = table_asked(&asked);
    bytes = stats_of(table).bytes;
    for (key = 0; key < 2 * KEYS; key++) {
        assert_int_equal(tollbar_table_check_at(table, 1, &key, sizeof key, 1, now, NULL), TOLLBAR_ALLOWED);
        now += key < KEYS ? 5 * MS : 0;
        if (key % 100 == 0) {
            const int32_t verdict = tollbar_table_check_at(table, 0, "limited", 7, 1, now, NULL);
            assert_int_equal(verdict, tollbar_limiter_check_at(alone, 1, now, NULL));
            taken += verdict == TOLLBAR_ALLOWED;
        }
    }
    after = stats_of(table).bytes;
    assert_int_equal(after, bytes);
    /* 50 at once and one each 180 s, of 2,000 asked for. */
    assert_int_equal(taken, 50 + KEYS * 5 / 1000 / 180);
    assert_true(stats_of(table).evicted > KEYS / 2);
    tollbar_table_close(table);
    tollbar_limiter_free(alone);
}

/* Windows and logs have a table for themselves. */
static void policies_of_other_lengths_are_refused(void **state) {
    struct asked asked;
    tollbar_table *table = NULL;
    tollbar_policy_spec spec = spec_of("3/s algo sliding-log");
    uint64_t bytes = 0;
    uint32_t number = 77;
    (void)state;
    ask(&asked, 1000, "1/s", "3/s algo sliding-window segments 10");
    assert_int_equal(tollbar_table_new(asked.policies, 2, &asked.options, &table), TOLLBAR_E_MIXED_POLICIES);
    assert_int_equal(tollbar_table_bytes(asked.policies, 2, &asked.options, &bytes), TOLLBAR_E_MIXED_POLICIES);
    assert_null(table);
    table = table_of(1000, "1/s", NULL);
    assert_int_equal(tollbar_table_add_policy(table, &spec, &number), TOLLBAR_E_MIXED_POLICIES);
    assert_int_equal(tollbar_table_set_policy(table, 0, &spec, TOLLBAR_KEEP_COUNT), TOLLBAR_E_MIXED_POLICIES);
    assert_int_equal(number, 77);
    tollbar_table_close(table);
}

/* With room any algorithm becomes any other, and a key keeps the permits that it has left. */
static void any_algorithm_becomes_any_other(void **state) {
    static const char *const texts[] = {
        "20/s burst 20", "30/s algo sliding-window segments 10", "25/s algo sliding-log", "40/s algo fixed-window",
    };
    enum { TEXTS = sizeof texts / sizeof *texts };
    struct asked asked;
    tollbar_table *table = NULL;
    tollbar_policy_spec spec, large = spec_of("31/s algo sliding-log");
    uint64_t taken = 0;
    uint32_t number = 77;
    int pair;
    (void)state;
    ask(&asked, 1000, "31/s algo sliding-log", NULL);
    asked.options.room = 30;
    assert_int_equal(tollbar_table_new(asked.policies, 1, &asked.options, &table), TOLLBAR_E_SLOT_ROOM);
    for (pair = 0; pair < TEXTS * TEXTS; pair++) {
        const char *from = texts[pair / TEXTS], *to = texts[pair % TEXTS];
        if (from == to)
            continue;
        ask(&asked, 1000, from, "1/min");
        asked.options.room = 30;
        table = table_asked(&asked);
        assert_int_equal(stats_of(table).room, 30);
        spec = spec_of(from);
        assert_int_equal(tollbar_table_take_up_to_at(table, 0, "k", 1, spec.limit - 6, SEC, &taken), TOLLBAR_ALLOWED);
        assert_int_equal(taken, spec.limit - 6);
        spec = spec_of(to);
        assert_int_equal(tollbar_table_set_policy(table, 0, &spec, TOLLBAR_KEEP_COUNT), 0);
        assert_int_equal(tollbar_table_take_up_to_at(table, 0, "k", 1, 100, SEC, &taken), TOLLBAR_ALLOWED);
        assert_int_equal(taken, 6);
        assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, SEC, NULL), TOLLBAR_DENIED);
        assert_int_equal(tollbar_table_set_policy(table, 0, &large, TOLLBAR_KEEP_COUNT), TOLLBAR_E_SLOT_ROOM);
        assert_int_equal(tollbar_table_add_policy(table, &large, &number), TOLLBAR_E_SLOT_ROOM);
        tollbar_table_close(table);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exempt_keys_are_never_charged),
        cmocka_unit_test(policies_change_while_keys_keep_their_debt),
        cmocka_unit_test(a_changed_policy_keeps_what_is_asked_for),
        cmocka_unit_test(a_table_has_128_policies_at_most),
        cmocka_unit_test(any_algorithm_becomes_any_other),
        cmocka_unit_test(full_tables),
        cmocka_unit_test(policies_of_other_lengths_are_refused),
        cmocka_unit_test(s30_m3_a_flood_takes_no_place_of_a_limited_key),
    };
    return cmocka_run_group_tests_name("policies of tables", tests, NULL, NULL);
}
