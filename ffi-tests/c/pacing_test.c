/* Pacing of a client's requests to servers. */
#define TOLLBAR_EXPERIMENTAL
#include "test.h"

#define PER_SECOND UINT64_C(1000000)

static tollbar_pacing *pacing_of(const tollbar_pacing_options *options, size_t hosts) {
    tollbar_pacing *pacing = NULL;
    assert_int_equal(tollbar_pacing_new(options, hosts, &pacing), 0);
    return pacing;
}

static tollbar_pacing_ticket acquire(tollbar_pacing *pacing, const char *host, uint64_t now) {
    tollbar_pacing_ticket ticket;
    assert_int_equal(tollbar_pacing_acquire_at(pacing, host, strlen(host), now, &ticket), 0);
    return ticket;
}

static uint64_t wait_of(tollbar_pacing *pacing, tollbar_pacing_ticket ticket, uint64_t now) {
    uint64_t wait = 7;
    const int32_t code = tollbar_pacing_wait_at(pacing, &ticket, now, &wait);
    assert_int_equal(code, wait == 0 ? TOLLBAR_ALLOWED : TOLLBAR_DENIED);
    return wait;
}

static void respond(tollbar_pacing *pacing, tollbar_pacing_ticket ticket, uint64_t now, uint32_t status, const char *header) {
    assert_int_equal(tollbar_pacing_respond_at(pacing, &ticket, status, header, strlen(header), 0, now), 0);
}

static tollbar_pacing_state read_of(tollbar_pacing *pacing, const char *host, uint64_t now) {
    tollbar_pacing_state state = TOLLBAR_PACING_STATE_INIT;
    assert_int_equal(tollbar_pacing_read_at(pacing, host, strlen(host), now, &state), TOLLBAR_YES);
    return state;
}

static void callers_wait_for_their_turn_and_for_the_end_of_a_pause(void **state) {
    tollbar_pacing_options options = TOLLBAR_PACING_OPTIONS_INIT;
    tollbar_pacing *pacing;
    tollbar_pacing_ticket tickets[4];
    size_t n;
    (void)state;
    options.most = 10 * PER_SECOND;
    options.burst = 2;
    options.pause_most_ns = 60 * SEC;
    pacing = pacing_of(&options, 2);
    for (n = 0; n < COUNT(tickets); n++)
        tickets[n] = acquire(pacing, "a", 0);
    assert_int_equal(wait_of(pacing, tickets[1], 0), 0);
    assert_int_equal(wait_of(pacing, tickets[3], 0), 200 * MS);
    assert_int_equal(tollbar_pacing_leave_at(pacing, &tickets[2], 0), 0);
    assert_int_equal(wait_of(pacing, tickets[3], 0), 100 * MS);
    assert_int_equal(wait_of(pacing, acquire(pacing, "b", 0), 0), 0);
    respond(pacing, tickets[0], 50 * MS, 429, "Retry-After: 7\r\n");
    assert_int_equal(wait_of(pacing, tickets[3], SEC), 6 * SEC + 50 * MS);
    assert_int_equal(wait_of(pacing, tickets[3], 7 * SEC + 50 * MS), 0);
    respond(pacing, tickets[1], 8 * SEC, 429, "Retry-After: 10000000000\r\n");
    assert_int_equal(read_of(pacing, "a", 8 * SEC).paused_ns, 60 * SEC);
    tollbar_pacing_free(pacing);
    tollbar_pacing_free(NULL);
}

static void bad_arguments_change_nothing(void **state) {
    const tollbar_pacing_options good = TOLLBAR_PACING_OPTIONS_INIT;
    tollbar_pacing_options options = good;
    tollbar_pacing_state found = TOLLBAR_PACING_STATE_INIT;
    tollbar_pacing *pacing = NULL;
    tollbar_pacing_ticket ticket;
    uint64_t wait;
    (void)state;
    options.algorithm = 2;
    assert_int_equal(tollbar_pacing_new(&options, 1, &pacing), TOLLBAR_E_OUT_OF_RANGE);
    options = good;
    options.least = 0;
    assert_int_equal(tollbar_pacing_new(&options, 1, &pacing), TOLLBAR_E_OUT_OF_RANGE);
    options = good;
    options.increase = 1;
    assert_int_equal(tollbar_pacing_new(&options, 1, &pacing), TOLLBAR_E_OUT_OF_RANGE);
    options = good;
    options.reserved = 1;
    assert_int_equal(tollbar_pacing_new(&options, 1, &pacing), TOLLBAR_E_RESERVED);
    assert_int_equal(tollbar_pacing_new(&good, 0, &pacing), TOLLBAR_E_CAPACITY);
    assert_int_equal(tollbar_pacing_new(&good, 4097, &pacing), TOLLBAR_E_CAPACITY);
    assert_int_equal(tollbar_pacing_new(&good, 1, NULL), TOLLBAR_E_NULL);
    assert_null(pacing);
    assert_int_equal(tollbar_pacing_acquire_at(NULL, "a", 1, 0, &ticket), TOLLBAR_E_NULL);
    pacing = pacing_of(&good, 1);
    assert_int_equal(tollbar_pacing_read_at(pacing, "a", 1, 0, &found), TOLLBAR_NO);
    assert_int_equal(tollbar_pacing_acquire_at(pacing, "a", 1, 0, NULL), TOLLBAR_E_NULL);
    ticket = acquire(pacing, "a", 0);
    assert_int_equal(tollbar_pacing_wait_at(pacing, NULL, 0, &wait), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_pacing_wait_at(pacing, &ticket, 0, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_pacing_respond_at(pacing, &ticket, 65536, NULL, 0, 0, 0), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_pacing_respond_at(pacing, &ticket, 429, NULL, 1, 0, 0), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_pacing_leave_at(pacing, NULL, 0), TOLLBAR_E_NULL);
    found.struct_size = 8;
    assert_int_equal(tollbar_pacing_read_at(pacing, "a", 1, 0, &found), TOLLBAR_E_STRUCT_SIZE);
    assert_int_equal(read_of(pacing, "a", 0).rate, good.most);
    tollbar_pacing_free(pacing);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_wait_for_their_turn_and_for_the_end_of_a_pause),
        cmocka_unit_test(bad_arguments_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
