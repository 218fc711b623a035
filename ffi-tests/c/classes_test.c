/* Classes of requests that share a limit: requests of a lower class leave a reserve. */
#include "test.h"

static void calls_without_a_time_read_the_clock(void **state) {
    tollbar_limiter *limiter = limiter_of("3/day");
    tollbar_table *table = table_of(10, "3/day", NULL);
    (void)state;
    assert_int_equal(tollbar_limiter_check_leaving(limiter, 1, 2, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_limiter_check_leaving(limiter, 1, 2, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_check_leaving(table, 0, "key", 3, 1, 2, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_leaving(table, 0, "key", 3, 1, 2, NULL), TOLLBAR_DENIED);
    tollbar_limiter_free(limiter);
    tollbar_table_close(table);
}

static void what_keeps_no_reserve_is_an_error(void **state) {
    static const char *const others[] = {"10/s borrow", "10/s algo pacer", "10/s algo warm-up warm 2s",
                                         "10/s algo sliding-window", "10/s algo sliding-log"};
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(others); i++) {
        tollbar_limiter *limiter = limiter_of(others[i]);
        tollbar_table *table = table_of(10, others[i], NULL);
        assert_int_equal(tollbar_limiter_check_leaving(limiter, 1, 2, NULL), TOLLBAR_E_OPTION_MISMATCH);
        assert_int_equal(tollbar_table_check_leaving(table, 0, "key", 3, 1, 2, NULL), TOLLBAR_E_OPTION_MISMATCH);
        assert_int_equal(tollbar_table_check_leaving(table, 7, "key", 3, 1, 2, NULL), TOLLBAR_E_NO_SUCH_POLICY);
        tollbar_limiter_free(limiter);
        tollbar_table_close(table);
    }
}

/* Requests that leave 20 permits stop there, whether they say so or belong to a class of that
 * reserve. The decision says why. */
static void m5_a_class_stops_exactly_at_its_reserve(void **state) {
    tollbar_limiter *limiter = limiter_of("100/s reserve low 20 high 0");
    tollbar_table *table = table_of(10, "100/s reserve low 20 high 0", NULL);
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    int n;
    (void)state;
    for (n = 0; n < 80; n++) {
        assert_int_equal(n % 2 ? tollbar_limiter_check_class_at(limiter, 1, "low", HOUR, NULL)
                               : tollbar_limiter_check_leaving_at(limiter, 1, 20, HOUR, NULL), TOLLBAR_ALLOWED);
        assert_int_equal(n % 3 ? tollbar_table_check_class_at(table, 0, "key", 3, 1, n % 3 == 1 ? "low" : "1", HOUR, NULL)
                               : tollbar_table_check_leaving_at(table, 0, "key", 3, 1, 20, HOUR, NULL), TOLLBAR_ALLOWED);
    }
    assert_int_equal(tollbar_limiter_check_class_at(limiter, 1, "low", HOUR, &got), TOLLBAR_DENIED);
    assert_true(got.remaining == 20 && got.reason == TOLLBAR_REASON_RESERVE);
    assert_int_equal(tollbar_table_check_class_at(table, 0, "key", 3, 1, "low", HOUR, &got), TOLLBAR_DENIED);
    assert_true(got.remaining == 20 && got.reason == TOLLBAR_REASON_RESERVE);
    assert_int_equal(tollbar_limiter_check_leaving_at(limiter, 81, 20, HOUR, NULL), TOLLBAR_NEVER);
    assert_int_equal(tollbar_limiter_check_class_at(limiter, 20, "high", HOUR, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_class_at(table, 0, "key", 3, 20, "2", HOUR, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_limiter_check_class_at(limiter, 1, "low", HOUR, &got), TOLLBAR_DENIED);
    assert_int_equal(got.reason, TOLLBAR_REASON_RATE);
    tollbar_limiter_free(limiter);
    tollbar_table_close(table);
}

static void classes_are_in_batches_and_several_limits(void **state) {
    tollbar_limiter *all = limiter_of("100/h reserve low 20");
    tollbar_table *table = table_of(10, "10/h reserve low 2 high 0", NULL);
    tollbar_request requests[12];
    tollbar_limit limits[2] = {TOLLBAR_LIMIT_OF_LIMITER(NULL, 20), TOLLBAR_LIMIT_OF_KEY(NULL, 0, "a", 1, 1)};
    tollbar_taken taken = TOLLBAR_TAKEN_INIT;
    tollbar_ticket ticket;
    int32_t results[12];
    int n, got = 0;
    (void)state;
    limits[0].limiter = all;
    limits[0].class_name = "low";
    limits[1].table = table;
    limits[1].class_name = "high";
    for (n = 0; n < 4; n++)
        assert_int_equal(tollbar_take_many(limits, 2, NULL, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_take_many(limits, 2, NULL, &taken), TOLLBAR_DENIED);
    assert_int_equal(taken.bound, 0);
    assert_int_equal(taken.reason, TOLLBAR_REASON_RESERVE);
    limits[0].class_name = NULL;
    assert_int_equal(tollbar_take_many(limits, 2, NULL, NULL), TOLLBAR_ALLOWED);
    limits[0].cost = 0;
    limits[1].class_name = "other";
    assert_int_equal(tollbar_take_many(limits, 2, NULL, NULL), TOLLBAR_E_NO_SUCH_CLASS);
    for (n = 0; n < 12; n++) {
        const tollbar_request fresh = TOLLBAR_REQUEST_INIT;
        requests[n] = fresh;
        requests[n].key = "b";
        requests[n].length = 1;
        requests[n].class_number = n < 10 ? 1 : n == 10 ? 2 : 3;
    }
    assert_int_equal(tollbar_table_check_many(table, requests, 12, results), 0);
    for (n = 0; n < 10; n++)
        got += results[n] == TOLLBAR_ALLOWED;
    assert_int_equal(got, 8);
    assert_int_equal(results[10], TOLLBAR_ALLOWED);
    assert_int_equal(results[11], TOLLBAR_E_NO_SUCH_CLASS);
    {
        tollbar_limit permit = TOLLBAR_LIMIT_OF_PERMIT(NULL, "a", 1, 4, &ticket);
        permit.in_flight = (const tollbar_in_flight *)(const void *)all;
        permit.class_name = "low";
        assert_int_equal(tollbar_take_many(&permit, 1, NULL, NULL), TOLLBAR_E_RESERVED);
    }
    tollbar_limiter_free(all);
    tollbar_table_close(table);
}

static void a_wrong_class_is_an_error(void **state) {
    tollbar_limiter *limiter = limiter_of("100/s reserve low 20");
    tollbar_limiter *plain = limiter_of("100/s");
    tollbar_table *table = table_of(10, "100/s reserve low 20", NULL);
    tollbar_limiter_options credit = TOLLBAR_LIMITER_OPTIONS_INIT;
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_limiter *none = NULL;
    static const char *const wrong[] = {"", "lo", "lows", "LOW", "0", "2", "10", "low ", "a-name-of-many-bytes-that-no-class-has"};
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(tollbar_limiter_check_class(limiter, 1, wrong[i], NULL), TOLLBAR_E_NO_SUCH_CLASS);
        assert_int_equal(tollbar_table_check_class(table, 0, "key", 3, 1, wrong[i], NULL), TOLLBAR_E_NO_SUCH_CLASS);
    }
    assert_int_equal(tollbar_limiter_check_class(plain, 1, "low", NULL), TOLLBAR_E_NO_SUCH_CLASS);
    assert_int_equal(tollbar_limiter_check_class(limiter, 1, NULL, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_table_check_class(table, 0, "key", 3, 1, NULL, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_limiter_check_class(NULL, 1, "low", NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_policy_spec_parse("100/s reserve low 20", 20, &spec, NULL), 0);
    assert_string_equal(spec.classes[0].name, "low");
    assert_int_equal(spec.classes[0].reserve, 20);
    credit.credit = TOLLBAR_CREDIT_ON;
    assert_int_equal(tollbar_limiter_new(&spec, &credit, &none), TOLLBAR_E_CLASSES);
    spec.classes[2] = spec.classes[0];
    assert_int_equal(tollbar_policy_spec_validate(&spec), TOLLBAR_E_CLASSES);
    tollbar_limiter_free(limiter);
    tollbar_limiter_free(plain);
    tollbar_table_close(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_without_a_time_read_the_clock),
        cmocka_unit_test(what_keeps_no_reserve_is_an_error),
        cmocka_unit_test(m5_a_class_stops_exactly_at_its_reserve),
        cmocka_unit_test(classes_are_in_batches_and_several_limits),
        cmocka_unit_test(a_wrong_class_is_an_error),
    };
    return cmocka_run_group_tests_name("classes", tests, NULL, NULL);
}
