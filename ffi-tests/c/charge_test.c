/* Charges without a decision. */
#include "test.h"

/* A policy, and the number of permits that a fresh limiter charges of 1,000. */
static const struct {
    const char *text;
    uint64_t charged;
} holds[] = {
    {"5/s", 10},
    {"5/s algo fixed-window", 5},
    {"5/s borrow", 1000},
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
        cmocka_unit_test(the_text_and_the_struct_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
