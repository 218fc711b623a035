/* Classes of requests that share a limit: requests of a lower class leave a reserve. */
#include "test.h"

static const char *const keeping[] = {"100/s", "100/min; 1000/h", "100/s algo interval", "100/s algo fixed-window",
                                      "100/s algo weighted-window", "100/forever"};

/* Standard requests stop exactly when 20 permits are left, and urgent ones take those. */
static void standard_requests_stop_at_the_reserve(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(keeping); i++) {
        tollbar_limiter *limiter = limiter_of(keeping[i]);
        tollbar_table *table = table_of(10, keeping[i], NULL);
        tollbar_decision got = TOLLBAR_DECISION_INIT;
        uint64_t n, taken = 0;
        for (n = 0; n < 80; n++) {
            assert_int_equal(tollbar_limiter_check_leaving_at(limiter, 1, 20, HOUR, NULL), TOLLBAR_ALLOWED);
            assert_int_equal(tollbar_table_check_leaving_at(table, 0, "key", 3, 1, 20, HOUR, &got), TOLLBAR_ALLOWED);
            assert_int_equal(got.remaining, 99 - n);
        }
        assert_int_equal(tollbar_limiter_check_leaving_at(limiter, 1, 20, HOUR, &got), TOLLBAR_DENIED);
        assert_int_equal(got.remaining, 20);
        assert_int_equal(tollbar_table_check_leaving_at(table, 0, "key", 3, 1, 20, HOUR, NULL), TOLLBAR_DENIED);
        assert_int_equal(tollbar_limiter_check_leaving_at(limiter, 81, 20, HOUR, NULL), TOLLBAR_NEVER);
        assert_int_equal(tollbar_limiter_take_up_to_at(limiter, 100, HOUR, &taken), TOLLBAR_ALLOWED);
        assert_int_equal(taken, 20);
        tollbar_limiter_free(limiter);
        tollbar_table_close(table);
    }
}

/* The wait of a refusal is until the cost and the reserve are there. */
static void a_wait_is_for_the_reserve_too(void **state) {
    tollbar_limiter *limiter = limiter_of("100/s");
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    (void)state;
    assert_int_equal(tollbar_limiter_check_at(limiter, 100, HOUR, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_limiter_check_leaving_at(limiter, 1, 20, HOUR, &got), TOLLBAR_DENIED);
    assert_int_equal(got.retry_after_ns, 21 * (SEC / 100));
    assert_int_equal(tollbar_limiter_check_leaving_at(limiter, 1, 20, HOUR + got.retry_after_ns - 1, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_limiter_check_leaving_at(limiter, 1, 20, HOUR + got.retry_after_ns, NULL), TOLLBAR_ALLOWED);
    tollbar_limiter_free(limiter);
}

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(standard_requests_stop_at_the_reserve),
        cmocka_unit_test(a_wait_is_for_the_reserve_too),
        cmocka_unit_test(calls_without_a_time_read_the_clock),
        cmocka_unit_test(what_keeps_no_reserve_is_an_error),
    };
    return cmocka_run_group_tests_name("classes", tests, NULL, NULL);
}
