/* A list of two policies, such as "10/s; 1000/day", wherever one policy is taken. */
#include "test.h"

#define DAY (24 * 3600 * SEC)

static void a_limiter_of_a_list(void **state) {
    tollbar_limiter *limiter = limiter_of("10/s; 25/day");
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    uint64_t second;
    (void)state;
    for (second = 0; second < 2; second++)
        assert_int_equal(tollbar_limiter_check_at(limiter, 10, DAY + second * SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_limiter_check_at(limiter, 1, DAY + SEC, &got), TOLLBAR_DENIED);
    assert_int_equal(got.bound, 0);
    assert_int_equal(got.retry_after_ns, SEC / 10);
    /* A refusal by the day charges nothing of the second. */
    assert_int_equal(tollbar_limiter_check_at(limiter, 6, DAY + 2 * SEC, &got), TOLLBAR_DENIED);
    assert_int_equal(got.bound, 1);
    assert_int_equal(got.reason, TOLLBAR_REASON_RATE);
    assert_int_equal(got.remaining, 5);
    assert_int_equal(got.retry_after_ns, DAY / 25 - 2 * SEC);
    assert_int_equal(tollbar_limiter_check_at(limiter, 5, DAY + 2 * SEC, &got), TOLLBAR_ALLOWED);
    assert_int_equal(got.bound, 1);
    assert_int_equal(tollbar_limiter_check_at(limiter, 11, DAY + 2 * SEC, &got), TOLLBAR_NEVER);
    assert_int_equal(got.bound, 0);
    tollbar_limiter_free(limiter);
}

static void a_cell_of_a_list(void **state) {
    tollbar_policy *policy = NULL;
    tollbar_cell cell = TOLLBAR_CELL_INIT;
    (void)state;
    assert_int_equal(tollbar_policy_from_text("2/s; 3/h", &policy, NULL), 0);
    assert_int_equal(tollbar_cell_check_at(&cell, policy, 2, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_cell_check_at(&cell, policy, 1, SEC, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_cell_check_at(&cell, policy, 1, 2 * SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_cell_check_at(&cell, policy, 1, 4 * SEC, NULL), TOLLBAR_DENIED);
    tollbar_policy_free(policy);
}

static void a_table_of_lists(void **state) {
    tollbar_table *table = table_of(100, "10/s; 25/day", NULL);
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    char text[TOLLBAR_POLICY_TEXT_MAX];
    (void)state;
    assert_int_equal(tollbar_table_check_at(table, 0, "a", 1, 10, DAY, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(table, 0, "a", 1, 10, DAY + SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(table, 0, "a", 1, 10, DAY + 2 * SEC, &got), TOLLBAR_DENIED);
    assert_int_equal(got.bound, 1);
    assert_int_equal(got.remaining, 5);
    assert_int_equal(tollbar_table_check_at(table, 0, "b", 1, 10, DAY + 2 * SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_get_policy(table, 0, &spec), 0);
    assert_int_equal(spec.second_limit, 25);
    assert_int_equal(tollbar_policy_spec_print(&spec, text, sizeof text, NULL), 0);
    assert_string_equal(text, "10/s; 25/day");
    tollbar_table_close(table);
}

static void a_change_of_a_limiters_list_keeps_what_is_left(void **state) {
    static const char changed[] = "10/s burst 40; 30/day";
    tollbar_limiter *limiter = limiter_of("10/s burst 40; 20/day");
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    (void)state;
    assert_int_equal(tollbar_limiter_check(limiter, 10, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_policy_spec_parse(changed, strlen(changed), &spec, NULL), 0);
    assert_int_equal(tollbar_limiter_set_policy(limiter, &spec, TOLLBAR_KEEP_COUNT), 0);
    assert_int_equal(tollbar_limiter_peek(limiter, 1, &got), TOLLBAR_ALLOWED);
    /* The 10 permits of 20 that were left. The check and the change may each round a part of a permit away. */
    assert_in_range(got.remaining, 8, 10);
    assert_int_equal(got.bound, 1);
    tollbar_limiter_free(limiter);
}

static void fields_of_a_second_bucket(void **state) {
    static const struct {
        uint64_t limit, period, burst;
        int32_t code;
    } seconds[] = {
        {0, 0, 0, 0},
        {25, DAY, 25, 0},
        {0, DAY, 25, TOLLBAR_E_LIST},
        {25, 0, 25, TOLLBAR_E_LIST},
        {25, DAY, 0, TOLLBAR_E_LIST},
        {UINT64_MAX, 1, UINT64_MAX, TOLLBAR_E_LIST},
        {1, UINT64_MAX, UINT64_MAX, TOLLBAR_E_LIST},
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
        spec.limit = spec.burst = 10;
        spec.period_ns = SEC;
        spec.second_limit = seconds[i].limit;
        spec.second_period_ns = seconds[i].period;
        spec.second_burst = seconds[i].burst;
        assert_int_equal(tollbar_policy_spec_validate(&spec), seconds[i].code);
        spec.ban_ns = SEC;
        assert_int_equal(tollbar_policy_spec_validate(&spec), i == 0 ? 0 : TOLLBAR_E_LIST);
    }
}

static void lists_that_do_not_fit_a_word_say_so(void **state) {
    static const struct {
        const char *text;
        int32_t code;
        uint64_t column;
    } lists[] = {
        {"100/s; 1000000/day", TOLLBAR_E_LIST, 8},
        {"10/s; 5/min ban 1h", TOLLBAR_E_LIST, 7},
        {"10/s; 1000/day; 5000/week", TOLLBAR_E_SYNTAX, 15},
        {"10/s; 1000/fortnight", TOLLBAR_E_SYNTAX, 12},
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof lists / sizeof *lists; i++) {
        tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
        tollbar_limiter *limiter = NULL;
        assert_int_equal(tollbar_limiter_from_text(lists[i].text, &limiter, &error), lists[i].code);
        assert_int_equal(error.column, lists[i].column);
        assert_null(limiter);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limiter_of_a_list),
        cmocka_unit_test(a_cell_of_a_list),
        cmocka_unit_test(a_table_of_lists),
        cmocka_unit_test(a_change_of_a_limiters_list_keeps_what_is_left),
        cmocka_unit_test(fields_of_a_second_bucket),
        cmocka_unit_test(lists_that_do_not_fit_a_word_say_so),
    };
    return cmocka_run_group_tests_name("lists", tests, NULL, NULL);
}
