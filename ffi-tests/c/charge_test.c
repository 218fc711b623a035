/* Charges without a decision, and bans. */
#include "test.h"

#include <stdio.h>
#include <unistd.h>

/* A policy, and the number of permits that a fresh limiter charges of 1,000. */
static const struct {
    const char *text;
    uint64_t charged;
} holds[] = {
    {"5/s", 10},
    {"5/s algo interval", 10},
    {"5/s algo fixed-window", 5},
    {"5/s algo weighted-window", 5},
    {"5/s algo sliding-window", 5},
    {"5/s algo sliding-log", 5},
    {"5/s algo pacer", 10},
    {"5/s algo warm-up warm 1s", 5},
    {"5/s borrow", 1000},
    {"5/s ban 1h", 10},
    {"0/s", 0},
};

static void the_rest_is_what_was_not_charged(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(holds); i++) {
        tollbar_limiter *limiter = limiter_of(holds[i].text);
        tollbar_table *table = table_of(100, holds[i].text, NULL);
        uint64_t rest = 7, of_key = 7;
        const int32_t want = holds[i].charged == 1000 ? TOLLBAR_ALLOWED : TOLLBAR_DENIED;
        assert_int_equal(tollbar_limiter_charge_at(limiter, 0, SEC, &rest), TOLLBAR_ALLOWED);
        assert_int_equal(rest, 0);
        assert_int_equal(tollbar_limiter_charge_at(limiter, 1000, SEC, &rest), want);
        assert_int_equal(tollbar_table_charge_at(table, 0, "k", 1, 1000, SEC, &of_key), want);
        assert_int_equal(rest, 1000 - holds[i].charged);
        assert_int_equal(of_key, rest);
        assert_int_equal(tollbar_limiter_peek_at(limiter, 1, SEC, NULL), TOLLBAR_DENIED);
        assert_int_equal(tollbar_table_peek_at(table, 0, "k", 1, 1, SEC, NULL), TOLLBAR_DENIED);
        /* Without an output for the rest, the result says whether there is a rest. */
        assert_int_equal(tollbar_limiter_charge_at(limiter, 1000, SEC, NULL), want);
        assert_int_equal(tollbar_table_charge_at(table, 0, "k", 1, 1000, SEC, NULL), want);
        tollbar_table_close(table);
        tollbar_limiter_free(limiter);
    }
}

static void errors_charge_nothing(void **state) {
    tollbar_table *table = table_of(100, "5/s", NULL);
    uint64_t rest = 7;
    (void)state;
    assert_int_equal(tollbar_table_charge(table, 9, "k", 1, 1, &rest), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(rest, 7);
    /* An empty key is not charged. */
    assert_int_equal(tollbar_table_charge(table, 0, "", 0, 3, &rest), TOLLBAR_DENIED);
    assert_int_equal(rest, 3);
    assert_int_equal(tollbar_table_exempt(table, 0, "us", 2), 0);
    assert_int_equal(tollbar_table_charge(table, 0, "us", 2, 1000, &rest), TOLLBAR_ALLOWED);
    assert_int_equal(rest, 0);
    tollbar_table_close(table);
}

static void a_debt_is_paid_by_time(void **state) {
    tollbar_table *table = table_of(100, "10/s burst 5", NULL);
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    (void)state;
    assert_int_equal(tollbar_table_charge_at(table, 0, "k", 1, 8, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, SEC, &got), TOLLBAR_DENIED);
    assert_int_equal(got.reason, TOLLBAR_REASON_RATE);
    assert_int_equal(got.retry_after_ns, 400 * MS);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, SEC + 400 * MS - 1, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, SEC + 400 * MS, NULL), TOLLBAR_ALLOWED);
    tollbar_table_close(table);
}

/* Five wrong passwords in a minute ban for an hour. Right passwords are not charged. */
static void five_wrong_passwords_ban(void **state) {
    tollbar_table *table = table_of(100, "5/min ban 1h", NULL);
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    uint64_t n;
    (void)state;
    for (n = 0; n < 100; n++) {
        assert_int_equal(tollbar_table_peek_at(table, 0, "right", 5, 1, SEC, NULL), TOLLBAR_ALLOWED);
    }
    for (n = 0; n < 5; n++) {
        assert_int_equal(tollbar_table_peek_at(table, 0, "wrong", 5, 1, SEC, NULL), TOLLBAR_ALLOWED);
        assert_int_equal(tollbar_table_charge_at(table, 0, "wrong", 5, 1, SEC, NULL), TOLLBAR_ALLOWED);
    }
    assert_int_equal(tollbar_table_peek_at(table, 0, "wrong", 5, 1, 13 * SEC, &got), TOLLBAR_DENIED);
    assert_int_equal(got.reason, TOLLBAR_REASON_BANNED);
    assert_int_equal(got.retry_after_ns, HOUR - 12 * SEC);
    assert_string_equal(tollbar_strreason(got.reason), "banned");
    assert_int_equal(tollbar_table_check_at(table, 0, "wrong", 5, 1, SEC + HOUR - 1, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_check_at(table, 0, "wrong", 5, 1, SEC + HOUR, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(table, 0, "right", 5, 5, SEC, NULL), TOLLBAR_ALLOWED);
    tollbar_table_close(table);
}

static void the_nth_refusal_bans_and_a_reset_unbans(void **state) {
    tollbar_limiter *limiter = limiter_of("2/min ban 1h after 3");
    tollbar_table *table = table_of(100, "2/min ban 1h after 3", NULL);
    static const uint32_t reasons[] = {TOLLBAR_REASON_ADMITTED, TOLLBAR_REASON_ADMITTED, TOLLBAR_REASON_RATE,
                                       TOLLBAR_REASON_RATE,     TOLLBAR_REASON_BANNED,   TOLLBAR_REASON_BANNED};
    size_t round, n;
    (void)state;
    for (round = 0; round < 2; round++) {
        for (n = 0; n < COUNT(reasons); n++) {
            tollbar_decision got = TOLLBAR_DECISION_INIT, of_key = TOLLBAR_DECISION_INIT;
            tollbar_limiter_check_at(limiter, 1, SEC, &got);
            tollbar_table_check_at(table, 0, "k", 1, 1, SEC, &of_key);
            assert_int_equal(got.reason, reasons[n]);
            assert_int_equal(of_key.reason, reasons[n]);
            assert_int_equal(got.retry_after_ns, of_key.retry_after_ns);
        }
        assert_int_equal(tollbar_limiter_reset(limiter), 0);
        assert_int_equal(tollbar_table_reset_at(table, 0, "k", 1, SEC), TOLLBAR_YES);
    }
    tollbar_limiter_free(limiter);
    tollbar_table_close(table);
}

static void a_ban_is_in_the_tables_file(void **state) {
    struct asked asked;
    tollbar_table *table = NULL;
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    uint64_t now;
    char path[64];
    (void)state;
    snprintf(path, sizeof path, "/tmp/tollbar-ban-%ld", (long)getpid());
    unlink(path);
    ask(&asked, 100, "1/min ban 1h", NULL);
    assert_int_equal(tollbar_table_open(path, asked.policies, asked.count, &asked.options, &table), 0);
    assert_int_equal(tollbar_table_now(table, &now), 0);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, now, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, now, NULL), TOLLBAR_DENIED);
    tollbar_table_close(table);
    assert_int_equal(tollbar_table_open(path, asked.policies, asked.count, &asked.options, &table), 0);
    assert_int_equal(tollbar_table_peek_at(table, 0, "k", 1, 1, now, &got), TOLLBAR_DENIED);
    assert_int_equal(got.reason, TOLLBAR_REASON_BANNED);
    assert_int_equal(got.retry_after_ns, HOUR);
    tollbar_table_close(table);
    unlink(path);
}

static void the_text_and_the_struct_agree(void **state) {
    tollbar_policy_spec spec = spec_of("5/min ban 90s after 7");
    char line[TOLLBAR_POLICY_TEXT_MAX];
    (void)state;
    assert_int_equal(spec.ban_ns, 90 * SEC);
    assert_int_equal(spec.ban_after, 7);
    assert_int_equal(tollbar_policy_spec_print(&spec, line, sizeof line, NULL), 0);
    assert_string_equal(line, "5/min ban 90s after 7");
    /* `ban_after` 0 means 1: the first refusal bans. */
    spec.ban_after = 0;
    assert_int_equal(tollbar_policy_spec_print(&spec, line, sizeof line, NULL), 0);
    assert_string_equal(line, "5/min ban 90s");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rest_is_what_was_not_charged),
        cmocka_unit_test(errors_charge_nothing),
        cmocka_unit_test(a_debt_is_paid_by_time),
        cmocka_unit_test(five_wrong_passwords_ban),
        cmocka_unit_test(the_nth_refusal_bans_and_a_reset_unbans),
        cmocka_unit_test(a_ban_is_in_the_tables_file),
        cmocka_unit_test(the_text_and_the_struct_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
