/* Limits in flight that follow the latency. */
#define TOLLBAR_EXPERIMENTAL
#include "test.h"

#define MS UINT64_C(1000000)

static tollbar_adaptive_state read_of(const tollbar_adaptive *limit) {
    tollbar_adaptive_state state = TOLLBAR_ADAPTIVE_STATE_INIT;
    assert_int_equal(tollbar_adaptive_read(limit, &state), 0);
    return state;
}

static void a_limit_without_a_table(void **state) {
    tollbar_adaptive_options options = TOLLBAR_ADAPTIVE_OPTIONS_INIT;
    tollbar_adaptive limit;
    tollbar_ticket tickets[20], more = 7;
    uint32_t n;
    (void)state;
    options.algorithm = TOLLBAR_ADAPTIVE_AIMD;
    options.timeout_ns = 30 * MS;
    options.window_ns = 0;
    assert_int_equal(tollbar_adaptive_init(&limit, &options), 0);
    for (n = 0; n < 20; n++)
        assert_int_equal(tollbar_adaptive_acquire(&limit, &tickets[n]), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_adaptive_acquire(&limit, &more), TOLLBAR_DENIED);
    assert_int_equal(more, 7);
    assert_true(read_of(&limit).limit == 20 && read_of(&limit).in_flight == 20);
    assert_int_equal(tollbar_adaptive_release_at(&limit, tickets[19], TOLLBAR_OUTCOME_ANSWERED, 10 * MS, 0), 0);
    assert_int_equal(read_of(&limit).limit, 21);
    assert_int_equal(tollbar_adaptive_release(&limit, tickets[18], TOLLBAR_OUTCOME_IGNORED, 0), 0);
    assert_int_equal(read_of(&limit).limit, 21);
    assert_int_equal(tollbar_adaptive_release_at(&limit, tickets[17], TOLLBAR_OUTCOME_ANSWERED, 40 * MS, SEC), 0);
    assert_true(read_of(&limit).limit == 18 && read_of(&limit).in_flight == 17);
}

static void the_limit_of_a_key(void **state) {
    tollbar_in_flight_options sizes = TOLLBAR_IN_FLIGHT_OPTIONS_INIT;
    tollbar_adaptive_options options = TOLLBAR_ADAPTIVE_OPTIONS_INIT;
    tollbar_in_flight *table = NULL;
    tollbar_adaptive limit;
    tollbar_ticket first, second;
    uint64_t count;
    (void)state;
    sizes.capacity = 10;
    assert_int_equal(tollbar_in_flight_new(&sizes, &table), 0);
    options.algorithm = TOLLBAR_ADAPTIVE_AIMD;
    options.timeout_ns = MS;
    options.window_ns = 0;
    options.initial = 2;
    assert_int_equal(tollbar_adaptive_init(&limit, &options), 0);
    assert_int_equal(tollbar_adaptive_acquire_key(&limit, table, "k", 1, &first), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_adaptive_acquire_key(&limit, table, "k", 1, &second), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_adaptive_acquire_key(&limit, table, "k", 1, &second), TOLLBAR_DENIED);
    assert_int_equal(tollbar_adaptive_release_key(&limit, table, "k", 1, first, TOLLBAR_OUTCOME_ANSWERED, MS), 0);
    assert_int_equal(read_of(&limit).limit, 3);
    assert_int_equal(tollbar_adaptive_release_key(&limit, table, "k", 1, 0, TOLLBAR_OUTCOME_DROPPED, MS), TOLLBAR_E_TICKET);
    assert_int_equal(tollbar_adaptive_release_key(&limit, table, "k", 1, second, TOLLBAR_OUTCOME_DROPPED, MS), 0);
    assert_int_equal(read_of(&limit).limit, 2);
    assert_int_equal(tollbar_in_flight_count(table, "k", 1, &count), 0);
    assert_int_equal(count, 0);
    tollbar_in_flight_close(table);
}

static void bad_arguments_change_nothing(void **state) {
    const tollbar_adaptive_options good = TOLLBAR_ADAPTIVE_OPTIONS_INIT;
    tollbar_adaptive_options options = good;
    tollbar_adaptive_state found = TOLLBAR_ADAPTIVE_STATE_INIT;
    tollbar_adaptive limit = {{0}};
    tollbar_ticket ticket = 7;
    (void)state;
    /* Zeroed memory is a limit of 0. */
    assert_int_equal(tollbar_adaptive_acquire(&limit, &ticket), TOLLBAR_DENIED);
    assert_int_equal(tollbar_adaptive_release(&limit, 1, TOLLBAR_OUTCOME_ANSWERED, 1), TOLLBAR_E_TICKET);
    options.algorithm = 2;
    assert_int_equal(tollbar_adaptive_init(&limit, &options), TOLLBAR_E_OUT_OF_RANGE);
    options = good;
    options.algorithm = TOLLBAR_ADAPTIVE_AIMD;
    assert_int_equal(tollbar_adaptive_init(&limit, &options), TOLLBAR_E_OUT_OF_RANGE);
    options = good;
    options.least = 0;
    assert_int_equal(tollbar_adaptive_init(&limit, &options), TOLLBAR_E_OUT_OF_RANGE);
    options = good;
    options.most = 19;
    assert_int_equal(tollbar_adaptive_init(&limit, &options), TOLLBAR_E_OUT_OF_RANGE);
    options = good;
    options.reserved = 1;
    assert_int_equal(tollbar_adaptive_init(&limit, &options), TOLLBAR_E_RESERVED);
    assert_int_equal(tollbar_adaptive_init(NULL, &good), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_adaptive_init(&limit, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_adaptive_acquire(NULL, &ticket), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_adaptive_acquire(&limit, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_adaptive_read(NULL, &found), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_adaptive_read(&limit, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_adaptive_init(&limit, &good), 0);
    assert_int_equal(tollbar_adaptive_acquire(&limit, &ticket), 0);
    assert_int_equal(tollbar_adaptive_release(&limit, ticket, 3, 1), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_adaptive_release(&limit, 0, TOLLBAR_OUTCOME_ANSWERED, 1), TOLLBAR_E_TICKET);
    assert_int_equal(read_of(&limit).in_flight, 1);
    assert_int_equal(tollbar_adaptive_release(&limit, ticket, TOLLBAR_OUTCOME_ANSWERED, MS), 0);
    assert_int_equal(read_of(&limit).in_flight, 0);
}

/* One call takes from a rate and opens a request under a learned limit, or does neither. */
static void a_rate_and_a_learned_limit_in_one_decision(void **state) {
    tollbar_in_flight_options sizes = TOLLBAR_IN_FLIGHT_OPTIONS_INIT;
    tollbar_adaptive_options options = TOLLBAR_ADAPTIVE_OPTIONS_INIT;
    tollbar_in_flight *table = NULL;
    tollbar_limiter *rate = NULL;
    tollbar_adaptive server;
    tollbar_ticket tickets[3] = {0};
    int n;
    (void)state;
    options.algorithm = TOLLBAR_ADAPTIVE_AIMD;
    options.timeout_ns = 30 * MS;
    options.window_ns = 0;
    options.initial = 2;
    sizes.capacity = 10;
    assert_int_equal(tollbar_adaptive_init(&server, &options), 0);
    assert_int_equal(tollbar_adaptive_limit(&server), 2);
    assert_int_equal(tollbar_adaptive_limit(NULL), 0);
    assert_int_equal(tollbar_in_flight_new(&sizes, &table), 0);
    rate = limiter_of("3/h");
    for (n = 0; n < 3; n++) {
        const tollbar_limit limits[] = {
            TOLLBAR_LIMIT_OF_LIMITER(rate, 1),
            TOLLBAR_LIMIT_OF_ADAPTIVE(&server, table, "server", 6, &tickets[n]),
        };
        tollbar_taken taken = TOLLBAR_TAKEN_INIT;
        assert_int_equal(tollbar_take_many(limits, 2, NULL, &taken), n < 2 ? TOLLBAR_ALLOWED : TOLLBAR_DENIED);
        if (n == 2)
            assert_true(taken.bound == 1 && taken.reason == TOLLBAR_REASON_IN_FLIGHT);
    }
    /* The refusal charged no rate: one of three permits is left. */
    assert_true(tickets[2] == 0);
    assert_int_equal(tollbar_adaptive_release_key(&server, table, "server", 6, tickets[0], TOLLBAR_OUTCOME_ANSWERED, MS), 0);
    assert_int_equal(tollbar_adaptive_limit(&server), 3);
    assert_int_equal(tollbar_adaptive_release_key(&server, table, "server", 6, tickets[1], TOLLBAR_OUTCOME_ANSWERED, MS), 0);
    for (n = 0; n < 2; n++) {
        const tollbar_limit limits[] = {
            TOLLBAR_LIMIT_OF_LIMITER(rate, 1),
            TOLLBAR_LIMIT_OF_ADAPTIVE(&server, table, "server", 6, &tickets[n]),
        };
        uint64_t open = 0;
        /* The rate has one permit. The second call is refused and opens no request. */
        assert_int_equal(tollbar_take_many(limits, 2, NULL, NULL), n == 0 ? TOLLBAR_ALLOWED : TOLLBAR_DENIED);
        assert_int_equal(tollbar_in_flight_count(table, "server", 6, &open), 0);
        assert_int_equal(open, 1);
    }
    tollbar_limiter_free(rate);
    tollbar_in_flight_close(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_without_a_table),
        cmocka_unit_test(the_limit_of_a_key),
        cmocka_unit_test(a_rate_and_a_learned_limit_in_one_decision),
        cmocka_unit_test(bad_arguments_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
