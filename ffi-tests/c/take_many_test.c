/* Requests with several limits. */
#include "test.h"

static void the_longest_wait_binds(void **state) {
    tollbar_limiter *second = limiter_of("2/s");
    tollbar_limiter *hour = limiter_of("5/h");
    tollbar_table *table = table_of(100, "3/min", NULL);
    tollbar_limit limits[] = {
        TOLLBAR_LIMIT_OF_LIMITER(second, 1),
        TOLLBAR_LIMIT_OF_KEY(table, 0, "k", 1, 1),
        TOLLBAR_LIMIT_OF_LIMITER(hour, 1),
    };
    tollbar_decision each[] = {TOLLBAR_DECISION_INIT, TOLLBAR_DECISION_INIT, TOLLBAR_DECISION_INIT};
    tollbar_taken taken = TOLLBAR_TAKEN_INIT;
    (void)state;
    assert_int_equal(tollbar_take_many_at(limits, 3, SEC, each, &taken), TOLLBAR_ALLOWED);
    assert_int_equal(taken.verdict, TOLLBAR_ALLOWED);
    assert_int_equal(taken.reason, TOLLBAR_REASON_ADMITTED);
    assert_int_equal(taken.remaining, 1);
    assert_int_equal(taken.bound, 0);
    assert_int_equal(taken.reset_after_ns, 720 * SEC);
    assert_int_equal(each[0].remaining, 1);
    assert_int_equal(each[1].remaining, 2);
    assert_int_equal(each[2].remaining, 4);

    limits[0].cost = limits[1].cost = 3;
    assert_int_equal(tollbar_take_many_at(limits, 3, SEC, NULL, &taken), TOLLBAR_NEVER);
    assert_int_equal(taken.bound, 0);
    assert_int_equal(taken.retry_after_ns, TOLLBAR_NO_TIME);
    limits[0].cost = 2;
    assert_int_equal(tollbar_take_many_at(limits, 3, SEC, each, &taken), TOLLBAR_DENIED);
    assert_int_equal(taken.bound, 1);
    assert_int_equal(taken.reason, TOLLBAR_REASON_RATE);
    assert_int_equal(taken.retry_after_ns, 20 * SEC);
    assert_int_equal(each[0].retry_after_ns, SEC / 2);
    assert_int_equal(each[2].verdict, TOLLBAR_ALLOWED);
    /* The refusal has charged no limit. */
    assert_int_equal(tollbar_take_many_at(limits, 3, SEC, NULL, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_limiter_peek_at(second, 1, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_peek_at(table, 0, "k", 1, 2, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_limiter_peek_at(hour, 4, SEC, NULL), TOLLBAR_ALLOWED);
    tollbar_table_close(table);
    tollbar_limiter_free(hour);
    tollbar_limiter_free(second);
}

static void by_their_own_clocks(void **state) {
    tollbar_limiter *limiter = limiter_of("1/day");
    tollbar_table *table = table_of(100, "1/day", NULL);
    const tollbar_limit limits[] = {
        TOLLBAR_LIMIT_OF_KEY(table, 0, "k", 1, 1),
        TOLLBAR_LIMIT_OF_LIMITER(limiter, 1),
    };
    (void)state;
    assert_int_equal(tollbar_take_many(limits, 2, NULL, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_take_many(limits, 2, NULL, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_take_many(limits, 1, NULL, NULL), TOLLBAR_DENIED);
    tollbar_table_close(table);
    tollbar_limiter_free(limiter);
}

static void bad_limits_charge_nothing(void **state) {
    tollbar_limiter *limiter = limiter_of("3/s");
    tollbar_table *table = table_of(100, "3/s", NULL);
    tollbar_limit limits[17];
    tollbar_taken taken = TOLLBAR_TAKEN_INIT;
    tollbar_decision each[2] = {TOLLBAR_DECISION_INIT, TOLLBAR_DECISION_INIT};
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(limits); i++) {
        const tollbar_limit one = TOLLBAR_LIMIT_OF_LIMITER(limiter, 1);
        limits[i] = one;
    }
    assert_int_equal(tollbar_take_many_at(limits, 0, SEC, NULL, NULL), TOLLBAR_E_LIMITS);
    assert_int_equal(tollbar_take_many_at(NULL, 1, SEC, NULL, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_take_many_at(limits, 17, SEC, NULL, NULL), TOLLBAR_E_LIMITS);
    limits[1].table = table;
    assert_int_equal(tollbar_take_many_at(limits, 2, SEC, NULL, NULL), TOLLBAR_E_LIMITS);
    limits[1].limiter = NULL;
    limits[1].table = NULL;
    assert_int_equal(tollbar_take_many_at(limits, 2, SEC, NULL, NULL), TOLLBAR_E_LIMITS);
    limits[1].table = table;
    limits[1].key = NULL;
    limits[1].length = 1;
    assert_int_equal(tollbar_take_many_at(limits, 2, SEC, NULL, NULL), TOLLBAR_E_NULL);
    limits[1].key = "k";
    limits[1].policy = 7;
    assert_int_equal(tollbar_take_many_at(limits, 2, SEC, NULL, NULL), TOLLBAR_E_NO_SUCH_POLICY);
    limits[1].policy = 0;
    limits[1].most = 1;
    assert_int_equal(tollbar_take_many_at(limits, 2, SEC, NULL, NULL), TOLLBAR_E_RESERVED);
    limits[1].most = 0;
    taken.struct_size = 3;
    assert_int_equal(tollbar_take_many_at(limits, 2, SEC, NULL, &taken), TOLLBAR_E_STRUCT_SIZE);
    each[0].struct_size = 3;
    assert_int_equal(tollbar_take_many_at(limits, 2, SEC, each, NULL), TOLLBAR_E_STRUCT_SIZE);
    assert_int_equal(tollbar_limiter_peek_at(limiter, 3, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_peek_at(table, 0, "k", 1, 3, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_take_many_at(limits, 2, SEC, NULL, NULL), TOLLBAR_ALLOWED);
    /* An empty key is a missing key, and the table's options decide on it. */
    limits[1].length = 0;
    limits[1].key = NULL;
    assert_int_equal(tollbar_take_many_at(limits, 2, SEC, NULL, NULL), TOLLBAR_DENIED);
    tollbar_table_close(table);
    tollbar_limiter_free(limiter);
}

/* For two keys of one table and no outputs the library takes a shorter path. It must decide as the
 * general path does. */
static void the_shorter_path_decides_alike(void **state) {
    tollbar_table *brief = table_of(100, "20/s", "9/min");
    tollbar_table *full = table_of(100, "20/s", "9/min");
    uint64_t now = SEC;
    uint32_t random = 1;
    int allowed = 0, denied = 0;
    (void)state;
    while (allowed + denied < 20000) {
        const char *keys = "abc";
        uint32_t pick[6];
        size_t n;
        tollbar_taken taken = TOLLBAR_TAKEN_INIT;
        int32_t verdict;
        for (n = 0; n < COUNT(pick); n++) {
            random = random * 1103515245u + 12345u;
            pick[n] = random >> 16;
        }
        {
            const tollbar_limit one = TOLLBAR_LIMIT_OF_KEY(brief, pick[0] % 2u, keys + pick[1] % 3, 1, pick[2] % 3);
            const tollbar_limit other = TOLLBAR_LIMIT_OF_KEY(brief, pick[3] % 2, keys + pick[4] % 3, 1, 1);
            tollbar_limit limits[2];
            limits[0] = one;
            limits[1] = other;
            verdict = tollbar_take_many_at(limits, 2, now, NULL, NULL);
            limits[0].table = limits[1].table = full;
            assert_int_equal(tollbar_take_many_at(limits, 2, now, NULL, &taken), verdict);
        }
        for (n = 0; n < 6; n++) {
            tollbar_decision a = TOLLBAR_DECISION_INIT, b = TOLLBAR_DECISION_INIT;
            tollbar_table_peek_at(brief, n % 2, keys + n / 2, 1, 1, now, &a);
            tollbar_table_peek_at(full, n % 2, keys + n / 2, 1, 1, now, &b);
            assert_memory_equal(&a, &b, sizeof a);
        }
        allowed += verdict == TOLLBAR_ALLOWED;
        denied += verdict != TOLLBAR_ALLOWED;
        now += pick[5] % 1000 * (SEC / 1000);
    }
    assert_true(allowed > 2000 && denied > 2000);
    tollbar_table_close(full);
    tollbar_table_close(brief);
}

static tollbar_in_flight *flights_of(uint64_t capacity) {
    tollbar_in_flight_options options = TOLLBAR_IN_FLIGHT_OPTIONS_INIT;
    tollbar_in_flight *flights = NULL;
    options.capacity = capacity;
    assert_int_equal(tollbar_in_flight_new(&options, &flights), 0);
    return flights;
}

static uint64_t open_of(const tollbar_in_flight *flights) {
    uint64_t open = 99;
    assert_int_equal(tollbar_in_flight_count(flights, "k", 1, &open), 0);
    return open;
}

static void ten_a_second_and_four_at_one_time(void **state) {
    tollbar_table *table = table_of(100, "10/s", NULL);
    tollbar_in_flight *flights = flights_of(100);
    tollbar_ticket held[4], ticket = 7;
    tollbar_limit limits[] = {
        TOLLBAR_LIMIT_OF_KEY(table, 0, "k", 1, 1),
        TOLLBAR_LIMIT_OF_PERMIT(flights, "k", 1, 4, &ticket),
    };
    tollbar_decision each[] = {TOLLBAR_DECISION_INIT, TOLLBAR_DECISION_INIT};
    tollbar_taken taken = TOLLBAR_TAKEN_INIT;
    size_t n;
    (void)state;
    for (n = 0; n < 4; n++) {
        limits[1].ticket = &held[n];
        assert_int_equal(tollbar_take_many_at(limits, 2, SEC, NULL, NULL), TOLLBAR_ALLOWED);
    }
    assert_int_equal(open_of(flights), 4);
    /* The in-flight limit refuses, and the rate keeps its six permits. */
    limits[1].ticket = &ticket;
    assert_int_equal(tollbar_take_many_at(limits, 2, SEC, each, &taken), TOLLBAR_DENIED);
    assert_true(taken.bound == 1 && taken.reason == TOLLBAR_REASON_IN_FLIGHT && taken.retry_after_ns == TOLLBAR_NO_TIME);
    assert_true(each[0].verdict == TOLLBAR_ALLOWED && each[0].remaining == 6 && each[1].remaining == 0);
    assert_string_equal(tollbar_strreason(taken.reason), "too many in flight");
    assert_int_equal(ticket, 7);
    for (n = 0; n < 4; n++)
        assert_int_equal(tollbar_in_flight_release(flights, held[n]), 0);

    /* Fields of different kinds of limits in one limit. */
    {
        const tollbar_limit good = limits[1];
        limits[1].ticket = NULL;
        assert_int_equal(tollbar_take_many_at(limits, 2, 2 * SEC, NULL, NULL), TOLLBAR_E_NULL);
        limits[1] = good;
        limits[1].cost = 2;
        assert_int_equal(tollbar_take_many_at(limits, 2, 2 * SEC, NULL, NULL), TOLLBAR_E_RESERVED);
        limits[1] = good;
        limits[1].policy = 1;
        assert_int_equal(tollbar_take_many_at(limits, 2, 2 * SEC, NULL, NULL), TOLLBAR_E_RESERVED);
        limits[1] = good;
        limits[1].table = table;
        assert_int_equal(tollbar_take_many_at(limits, 2, 2 * SEC, NULL, NULL), TOLLBAR_E_LIMITS);
        limits[1] = limits[0];
        limits[1].ticket = &ticket;
        assert_int_equal(tollbar_take_many_at(limits, 2, 2 * SEC, NULL, NULL), TOLLBAR_E_RESERVED);
    }
    assert_int_equal(tollbar_table_peek_at(table, 0, "k", 1, 10, 2 * SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(open_of(flights), 0);
    tollbar_in_flight_close(flights);
    tollbar_table_close(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_wait_binds),
        cmocka_unit_test(by_their_own_clocks),
        cmocka_unit_test(bad_limits_charge_nothing),
        cmocka_unit_test(the_shorter_path_decides_alike),
        cmocka_unit_test(ten_a_second_and_four_at_one_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
