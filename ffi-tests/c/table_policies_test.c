/* Policies of a table: exemptions, changes, windows and logs, and the answers of a full table. */
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

static void so_many_keys_may_be_exempt(void **state) {
    enum { MOST = 1536, MORE = 3000 };
    tollbar_table *table = table_of(1000, "0/min", NULL);
    uint64_t key, refused = 0;
    (void)state;
    for (key = 0; key < MORE; key++) {
        int32_t code = tollbar_table_exempt(table, 0, &key, sizeof key);
        assert_true(code == 0 || (code == TOLLBAR_E_EXEMPTIONS_FULL && key >= MOST));
        refused += code != 0;
        /* The policy denies all, so only exempt keys pass. */
        assert_int_equal(take(table, 0, key, SEC, 1), code == 0 ? TOLLBAR_ALLOWED : TOLLBAR_DENIED);
    }
    assert_true(refused > 0);
    for (key = 0; key < MOST; key++)
        assert_int_equal(tollbar_table_unexempt(table, 0, &key, sizeof key), TOLLBAR_YES);
    for (key = 0; key < MOST; key++)
        assert_int_equal(take(table, 0, key, SEC, 1), TOLLBAR_DENIED);
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
    /* The key had no permits left and keeps that number: it has none now, and half of the new burst after half a minute. */
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

/* The answers to new keys that find no free slot. A peek gives the same answer before. */
static void full_tables(void **state) {
    enum { KEYS = 12000 };
    /* In the order of the TOLLBAR_ON_FULL_ numbers. */
    static const uint32_t of_full[] = {TOLLBAR_REASON_ADMITTED, TOLLBAR_REASON_INHERITED_DEBT, TOLLBAR_REASON_TABLE_FULL,
                                       TOLLBAR_REASON_TABLE_FULL};
    uint32_t on_full;
    (void)state;
    for (on_full = TOLLBAR_ON_FULL_EVICT_NEAREST; on_full <= TOLLBAR_ON_FULL_DENY; on_full++) {
        struct asked asked;
        tollbar_table *table;
        tollbar_table_stats stats;
        uint64_t key, allowed = 0, reasons[TOLLBAR_REASON_BANNED + 1] = {0};
        ask(&asked, 1, "10/min burst 3", NULL);
        asked.options.on_full = on_full;
        table = table_asked(&asked);
        for (key = 0; key < KEYS; key++) {
            tollbar_decision got = TOLLBAR_DECISION_INIT, told = TOLLBAR_DECISION_INIT;
            uint64_t refused = stats_of(table).refused;
            int32_t verdict = tollbar_table_peek_at(table, 0, &key, sizeof key, 2, SEC, &told);
            assert_int_equal(tollbar_table_check_at(table, 0, &key, sizeof key, 2, SEC, &got), verdict);
            assert_int_equal(got.retry_after_ns, told.retry_after_ns);
            assert_int_equal(got.reason, told.reason);
            reasons[got.reason]++;
            allowed += verdict == TOLLBAR_ALLOWED;
            if (stats_of(table).refused != refused) {
                /* A slot is free exactly at `retry_after_ns`. */
                assert_int_equal(verdict, TOLLBAR_DENIED);
                assert_in_range(got.retry_after_ns, 1, 12 * SEC + 8);
                assert_int_equal(tollbar_table_peek_at(table, 0, &key, sizeof key, 2, SEC + got.retry_after_ns - 1, NULL),
                                 TOLLBAR_DENIED);
                assert_int_equal(tollbar_table_peek_at(table, 0, &key, sizeof key, 2, SEC + got.retry_after_ns, NULL),
                                 TOLLBAR_ALLOWED);
            }
        }
        stats = stats_of(table);
        assert_int_equal(stats.slots, LEAST);
        assert_int_equal(reasons[TOLLBAR_REASON_ADMITTED] + (on_full == TOLLBAR_ON_FULL_EVICT_NEAREST ? 0 : reasons[of_full[on_full]]), KEYS);
        assert_int_equal(reasons[TOLLBAR_REASON_ADMITTED], on_full == TOLLBAR_ON_FULL_EVICT_NEAREST ? KEYS : stats.inserted);
        assert_true(stats.inserted > LEAST - LEAST / 10 && stats.inserted <= LEAST);
        assert_int_equal(stats.keys, stats.inserted);
        switch (on_full) {
        case TOLLBAR_ON_FULL_DENY:
            assert_int_equal(allowed, stats.inserted);
            assert_int_equal(stats.refused, KEYS - allowed);
            /* The table has forgotten no key. */
            for (key = 0; key < KEYS; key++)
                assert_int_equal(take(table, 0, key, SEC, 2), TOLLBAR_DENIED);
            break;
        case TOLLBAR_ON_FULL_INHERIT:
            /* Each slot has one of three permits left, so no new key gets two. */
            assert_int_equal(allowed, stats.inserted);
            assert_int_equal(stats.inherited, 0);
            for (key = KEYS; key < 2 * KEYS; key++)
                allowed += take(table, 0, key, SEC, 1) == TOLLBAR_ALLOWED;
            stats = stats_of(table);
            assert_int_equal(allowed, stats.inserted + stats.inherited);
            assert_true(stats.inherited > LEAST / 2 && stats.inherited <= LEAST);
            break;
        case TOLLBAR_ON_FULL_ALLOW:
            assert_int_equal(allowed, KEYS);
            assert_int_equal(stats.untracked, KEYS - stats.inserted);
            break;
        default:
            assert_int_equal(allowed, KEYS);
            assert_int_equal(stats.evicted, KEYS - stats.inserted);
            /* The table has stored the last key, with its debt. */
            key = KEYS - 1;
            assert_int_equal(take(table, 0, key, SEC, 2), TOLLBAR_DENIED);
        }
        /* All keys have expired, so every new key gets a slot. */
        for (key = 0; key < 1000; key++)
            assert_int_equal(take(table, 0, key, 100 * SEC, 3), TOLLBAR_ALLOWED);
        tollbar_table_close(table);
    }
}

static void windows_and_logs_have_a_table_for_themselves(void **state) {
    static const char *const wide[] = {"3/s algo sliding-window segments 10 mode strict", "3/s algo sliding-log"};
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(wide); i++) {
        struct asked asked;
        tollbar_table *table;
        tollbar_policy_spec one = spec_of("1/s"), spec = spec_of(wide[i]), got = TOLLBAR_POLICY_SPEC_INIT;
        uint64_t key, bytes = 0, plain = 0, now;
        uint32_t number = 77;
        ask(&asked, 1000, wide[i], "1/s");
        table = (tollbar_table *)&asked;
        assert_int_equal(tollbar_table_new(asked.policies, 2, &asked.options, &table), TOLLBAR_E_MIXED_POLICIES);
        assert_ptr_equal(table, &asked);
        assert_int_equal(tollbar_table_bytes(asked.policies, 2, &asked.options, &bytes), TOLLBAR_E_MIXED_POLICIES);
        assert_int_equal(tollbar_table_bytes(asked.policies, 1, &asked.options, &bytes), 0);
        assert_int_equal(tollbar_table_bytes(asked.policies + 1, 1, &asked.options, &plain), 0);
        /* The table has memory for three side words a slot. */
        assert_true(bytes >= plain + LEAST * 3 * 8);

        table = table_asked((asked.count = 1, &asked));
        assert_int_equal(tollbar_table_add_policy(table, &one, &number), TOLLBAR_E_MIXED_POLICIES);
        assert_int_equal(tollbar_table_set_policy(table, 0, &one, TOLLBAR_KEEP_COUNT), TOLLBAR_E_MIXED_POLICIES);
        assert_int_equal(number, 77);
        assert_int_equal(tollbar_table_get_policy(table, 0, &got), 0);
        assert_memory_equal(&got, &spec, sizeof got);
        for (now = SEC; now < 10 * SEC; now += 4 * SEC)
            for (key = 0; key < 2000; key++) {
                uint64_t other = key + now, taken = 0;
                assert_int_equal(tollbar_table_take_up_to_at(table, 0, &other, sizeof other, 2, now, &taken), TOLLBAR_ALLOWED);
                assert_int_equal(taken, 2);
                assert_int_equal(take(table, 0, other, now + SEC / 2, 1), TOLLBAR_ALLOWED);
                assert_int_equal(take(table, 0, other, now + SEC / 2, 1), TOLLBAR_DENIED);
                assert_int_equal(take(table, 0, other, now + SEC / 2, 4), TOLLBAR_NEVER);
                /* Two permits are back when the first two charges are out of the window. */
                assert_int_equal(take(table, 0, other, now + SEC + SEC / 4, 2), TOLLBAR_ALLOWED);
                assert_int_equal(take(table, 0, other, now + SEC + SEC / 4, 1), TOLLBAR_DENIED);
            }
        assert_true(stats_of(table).reclaimed > 30);
        tollbar_table_close(table);

        table = table_of(1000, "1/s", NULL);
        assert_int_equal(tollbar_table_add_policy(table, &spec, &number), TOLLBAR_E_MIXED_POLICIES);
        assert_int_equal(tollbar_table_set_policy(table, 0, &spec, TOLLBAR_KEEP_COUNT), TOLLBAR_E_MIXED_POLICIES);
        assert_int_equal(number, 77);
        tollbar_table_close(table);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exempt_keys_are_never_charged),
        cmocka_unit_test(so_many_keys_may_be_exempt),
        cmocka_unit_test(policies_change_while_keys_keep_their_debt),
        cmocka_unit_test(a_changed_policy_keeps_what_is_asked_for),
        cmocka_unit_test(a_table_has_128_policies_at_most),
        cmocka_unit_test(full_tables),
        cmocka_unit_test(windows_and_logs_have_a_table_for_themselves),
    };
    return cmocka_run_group_tests_name("policies of tables", tests, NULL, NULL);
}
