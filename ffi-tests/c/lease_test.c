/* Nodes and clients without a store. */
#define _DEFAULT_SOURCE
#include "test.h"
#include "tollbar_redis.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOWHERE "unix:/no-such-directory/redis.sock"

static tollbar_lease *lease_with(const char *text, const tollbar_lease_options *options) {
    const tollbar_policy_spec spec = spec_of(text);
    tollbar_lease *lease = NULL;
    assert_int_equal(tollbar_lease_new("limit", 5, &spec, options, &lease), 0);
    assert_non_null(lease);
    return lease;
}

/* A node of four, with the default options. */
static tollbar_lease *lease_of(const char *text) {
    const tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(4);
    return lease_with(text, &options);
}

static tollbar_lease_client *client_at(const tollbar_lease *lease, const char *url) {
    tollbar_lease_client *client = NULL;
    assert_int_equal(tollbar_lease_client_new(lease, url, strlen(url), NULL, &client), 0);
    return client;
}

static tollbar_lease_client *client_of(const tollbar_lease *lease) {
    return client_at(lease, NOWHERE);
}

static tollbar_lease_stats told_by(const tollbar_lease *lease) {
    tollbar_lease_stats stats = TOLLBAR_LEASE_STATS_INIT;
    assert_int_equal(tollbar_lease_get_stats(lease, &stats), 0);
    return stats;
}

static uint64_t take(const tollbar_lease *lease, const char *key, uint64_t now, int tries) {
    uint64_t got = 0;
    int i;
    for (i = 0; i < tries; i++) {
        const int32_t verdict = tollbar_lease_check_at(lease, key, strlen(key), 1, now, NULL);
        assert_in_range(verdict, TOLLBAR_ALLOWED, TOLLBAR_DENIED);
        got += verdict == TOLLBAR_ALLOWED;
    }
    return got;
}

/* The share of 1000/s among four is 250/s; a node begins with its overdraft, an eighth of its share
 * of the burst. */
static void without_a_client_a_node_lives_on_its_share(void **state) {
    tollbar_lease *lease = lease_of("1000/s burst 200");
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    tollbar_lease_stats stats;
    const uint64_t start = tollbar_lease_now(lease);
    uint64_t admitted, i;
    (void)state;
    assert_int_equal(take(lease, "k", start, 20), 8);
    assert_int_equal(tollbar_lease_check_at(lease, "k", 1, 1, start, &got), TOLLBAR_DENIED);
    assert_int_equal(got.verdict, TOLLBAR_DENIED);
    assert_in_range(got.retry_after_ns, 1, 4 * MS);
    assert_int_equal(take(lease, "k", start + 4 * MS - 1, 1), 0);
    assert_int_equal(take(lease, "k", start + 4 * MS, 2), 1);
    /* Each key has a separate bucket, also the empty key, which is the limit for all. */
    assert_int_equal(take(lease, "other", start, 20), 8);
    assert_int_equal(take(lease, "", start, 20), 8);
    for (admitted = 0, i = 1; i <= 1000; i++)
        admitted += take(lease, "busy", start + i * MS, 1);
    assert_int_equal(admitted, 8 + 249);
    stats = told_by(lease);
    assert_int_equal(stats.circuit, TOLLBAR_CIRCUIT_UNKNOWN);
    assert_int_equal(stats.fallback_permits, 8 + 1 + 8 + 8 + admitted);
    assert_true(stats.granted == 0 && stats.asked == 0 && stats.overdrawn == 0 && stats.uncounted == 0 && stats.opened == 0);
    tollbar_lease_close(lease);
}

static void the_other_fallbacks(void **state) {
    tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(4);
    tollbar_lease *lease;
    (void)state;
    options.fallback = TOLLBAR_FALLBACK_DENY;
    lease = lease_with("1000/s burst 200", &options);
    assert_int_equal(take(lease, "k", tollbar_lease_now(lease), 50), 0);
    assert_int_equal(told_by(lease).denied, 50);
    tollbar_lease_close(lease);
    options.fallback = TOLLBAR_FALLBACK_ALLOW;
    lease = lease_with("1000/s burst 200", &options);
    assert_int_equal(take(lease, "k", tollbar_lease_now(lease), 5000), 5000);
    assert_int_equal(told_by(lease).uncounted, 5000);
    tollbar_lease_close(lease);
}

static void an_overdraft_of_ones_own(void **state) {
    tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(4);
    tollbar_lease *lease;
    uint64_t now;
    (void)state;
    options.flags = TOLLBAR_LEASE_HAS_OVERDRAFT;
    options.overdraft = 12;
    lease = lease_with("1000/s burst 200", &options);
    assert_int_equal(take(lease, "k", tollbar_lease_now(lease), 50), 12);
    tollbar_lease_close(lease);
    /* Without an overdraft a node begins with no permits. */
    options.overdraft = 0;
    lease = lease_with("1000/s burst 200", &options);
    now = tollbar_lease_now(lease);
    assert_int_equal(take(lease, "k", now, 50), 0);
    assert_int_equal(take(lease, "k", now + 4 * MS, 50), 1);
    tollbar_lease_close(lease);
}

/* A request that waits is decided at once while no store answers, and a bad request is an error. */
static void waits_without_a_store(void **state) {
    tollbar_lease *lease = lease_of("1000/s burst 200");
    tollbar_lease_request request = TOLLBAR_LEASE_REQUEST_INIT(8, UINT64_MAX);
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    const uint64_t start = monotonic();
    (void)state;
    assert_int_equal(tollbar_lease_wait(lease, "k", 1, 8, 60 * SEC, &got), TOLLBAR_ALLOWED);
    assert_int_equal(got.reason, TOLLBAR_REASON_STORE_DOWN);
    assert_int_equal(tollbar_lease_wait(lease, "k", 1, 8, 60 * SEC, &got), TOLLBAR_DENIED);
    assert_int_equal(tollbar_lease_wait(lease, "k", 1, 201, 60 * SEC, NULL), TOLLBAR_NEVER);
    assert_in_range(monotonic() - start, 0, 30 * SEC);
    assert_int_equal(tollbar_lease_poll(lease, "other", 5, &request, &got), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_lease_poll(lease, "other", 5, &request, NULL), TOLLBAR_DENIED);
    request.struct_size = 8;
    assert_int_equal(tollbar_lease_poll(lease, "other", 5, &request, NULL), TOLLBAR_E_STRUCT_SIZE);
    tollbar_lease_close(lease);
}

static void costs_and_looks(void **state) {
    tollbar_lease *lease = lease_of("1000/s burst 200");
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    char longest[300];
    (void)state;
    memset(longest, 'x', sizeof longest);
    assert_int_equal(tollbar_lease_check(lease, "k", 1, 201, &got), TOLLBAR_NEVER);
    assert_true(got.retry_after_ns == TOLLBAR_NO_TIME);
    assert_int_equal(tollbar_lease_check(lease, "k", 1, UINT64_MAX, NULL), TOLLBAR_NEVER);
    /* A peek takes no permits, and neither does a cost of 0. */
    assert_int_equal(tollbar_lease_peek(lease, "k", 1, 8, &got), TOLLBAR_ALLOWED);
    assert_int_equal(got.remaining, 8);
    assert_int_equal(tollbar_lease_peek(lease, "k", 1, 9, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_lease_peek(lease, "k", 1, 201, NULL), TOLLBAR_NEVER);
    assert_int_equal(tollbar_lease_check(lease, "k", 1, 0, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_lease_check(lease, "k", 1, 4, &got), TOLLBAR_ALLOWED);
    assert_int_equal(got.reset_after_ns, 0);
    /* Keys that are longer than the store's keys differ in all of their bytes. */
    assert_int_equal(tollbar_lease_check(lease, longest, sizeof longest, 8, NULL), TOLLBAR_ALLOWED);
    longest[299] = 'y';
    assert_int_equal(tollbar_lease_check(lease, longest, sizeof longest, 8, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(told_by(lease).fallback_permits, 20);
    {
        /* The clock is that of a limiter. The second finds a wrong unit or a wrong zero. */
        tollbar_limiter *limiter = limiter_with("1/s", TOLLBAR_CLOCK_TSC, 0);
        uint64_t before = 0, now, after = 0;
        assert_int_equal(tollbar_limiter_now(limiter, &before), 0);
        now = tollbar_lease_now(lease);
        assert_int_equal(tollbar_limiter_now(limiter, &after), 0);
        assert_in_range(now, before - SEC, after + SEC);
        tollbar_limiter_free(limiter);
    }
    tollbar_lease_close(lease);
}

static void a_node_in_the_callers_memory(void **state) {
    const tollbar_policy_spec spec = spec_of("1000/s burst 200");
    tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(4);
    tollbar_lease *made = NULL, *view = NULL, *none = NULL;
    unsigned char *memory;
    void *room = NULL;
    uint64_t bytes = 0, now;
    (void)state;
    options.capacity = 100;
    assert_int_equal(tollbar_lease_bytes(&spec, &options, &bytes), 0);
    assert_int_equal(posix_memalign(&room, 64, (size_t)bytes + 64), 0);
    memory = room;
    memset(memory, 0xa5, (size_t)bytes + 64);
    assert_int_equal(tollbar_lease_init_in(memory, (size_t)bytes - 1, "limit", 5, &spec, &options, &none), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_lease_attach(memory, (size_t)bytes, &none), TOLLBAR_E_NOT_A_LEASE);
    assert_int_equal(tollbar_lease_init_in(memory, (size_t)bytes, "limit", 5, &spec, &options, &made), 0);
    assert_int_equal(tollbar_lease_attach(memory, (size_t)bytes - 1, &none), TOLLBAR_E_NOT_A_LEASE);
    assert_int_equal(tollbar_lease_attach(memory, 4095, &none), TOLLBAR_E_NOT_A_LEASE);
    assert_null(none);
    assert_int_equal(tollbar_lease_attach(memory, (size_t)bytes, &view), 0);
    now = tollbar_lease_now(made);
    assert_int_equal(take(made, "k", now, 4), 4);
    assert_int_equal(take(view, "k", now, 9), 4);
    assert_int_equal(told_by(made).fallback_permits, 8);
    /* The node outlives a view. */
    tollbar_lease_close(made);
    assert_int_equal(take(view, "k", now + 4 * MS, 4), 1);
    tollbar_lease_close(view);
    /* The library has not written behind the node's memory. */
    assert_int_equal(memory[bytes], 0xa5);
    memory[0] ^= 1;
    assert_int_equal(tollbar_lease_attach(memory, (size_t)bytes, &none), TOLLBAR_E_NOT_A_LEASE);
    free(room);
}

static void c5_a_shared_node_is_one_for_parent_and_child(void **state) {
    const tollbar_policy_spec spec = spec_of("1000/s burst 200");
    const tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(4);
    tollbar_lease *lease = NULL;
    uint64_t now;
    int status = 0;
    pid_t child;
    (void)state;
    assert_int_equal(tollbar_lease_new_shared("limit", 5, &spec, &options, &lease), 0);
    now = tollbar_lease_now(lease);
    assert_int_equal(take(lease, "k", now, 2), 2);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int wrong = tollbar_lease_check_at(lease, "k", 1, 3, now, NULL) != TOLLBAR_ALLOWED;
        tollbar_lease_close(lease);
        _exit(wrong);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(take(lease, "k", now, 5), 3);
    tollbar_lease_close(lease);
}

static void a_client_whose_store_is_not_there(void **state) {
    tollbar_lease *lease = lease_of("1000/s burst 200");
    tollbar_lease_client *client = client_of(lease);
    uint32_t wait = 0, events = 0;
    uint64_t start;
    (void)state;
    assert_int_equal(tollbar_lease_client_circuit(client), TOLLBAR_CIRCUIT_UNKNOWN);
    assert_int_equal(tollbar_lease_client_fd(client, &events), -1);
    assert_int_equal(events, 0);
    assert_int_equal(tollbar_lease_client_tick(client, &wait), 0);
    assert_in_range(wait, 1, 100);
    assert_int_not_equal(tollbar_lease_client_circuit(client), TOLLBAR_CIRCUIT_CLOSED);
    assert_string_equal(tollbar_lease_client_error(client), "the server's socket does not exist");
    assert_int_equal(tollbar_lease_check(lease, "k", 1, 2, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_lease_client_tick(client, NULL), 0);
    assert_int_equal(told_by(lease).owed, 2);
    /* close waits for its 50 ms and then returns the error. The upper bound is wide for a busy
     * machine. */
    start = monotonic();
    assert_int_equal(tollbar_lease_client_close(client, 50), TOLLBAR_E_UNREPORTED);
    assert_in_range(monotonic() - start, 50 * MS, 10 * SEC);
    tollbar_lease_close(lease);
}

/* Whether the second of two clients of a node has left the report to the first, which leads. A
 * first client that a busy machine keeps silent for half a second leads no longer. */
static int the_second_reports_nothing(void) {
    tollbar_lease *lease = lease_of("1000/s burst 200");
    tollbar_lease_client *first = client_of(lease), *second = client_of(lease);
    int32_t code;
    int reports;
    assert_int_equal(tollbar_lease_client_tick(first, NULL), 0);
    assert_int_equal(tollbar_lease_check(lease, "k", 1, 2, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_lease_client_tick(second, NULL), 0);
    code = tollbar_lease_client_close(second, 1000);
    reports = tollbar_lease_client_close(first, 0) == TOLLBAR_E_UNREPORTED;
    tollbar_lease_close(lease);
    return code == 0 && reports;
}

/* The close of a node that owes nothing does not wait. */
static void closing_with_nothing_to_report(void **state) {
    tollbar_lease *lease = lease_of("1000/s burst 200");
    const uint64_t start = monotonic();
    int tries;
    (void)state;
    assert_int_equal(tollbar_lease_client_close(client_of(lease), 60000), 0);
    assert_in_range(monotonic() - start, 0, 30 * SEC);
    tollbar_lease_close(lease);
    for (tries = 0; tries < 20; tries++)
        if (the_second_reports_nothing())
            return;
    fail_msg("the second client waited for the store, or the first did not");
}

static void note(void *argument, uint32_t circuit) {
    __atomic_store_n((uint32_t *)argument, circuit, __ATOMIC_SEQ_CST);
}

static void *drive(void *client) {
    static int32_t result;
    result = tollbar_lease_client_run(client);
    return &result;
}

static void while_a_thread_drives_it(void **state) {
    tollbar_lease *lease = lease_of("1000/s burst 200");
    /* No server listens there. The thread reports the refused connection as a change. */
    tollbar_lease_client *client = client_at(lease, "redis://127.0.0.1:1");
    uint32_t events = 7, wait = 7, told = TOLLBAR_CIRCUIT_UNKNOWN;
    pthread_t thread;
    void *result = NULL;
    (void)state;
    /* A stop before the run ends the run. */
    assert_int_equal(tollbar_lease_client_stop(client), 0);
    assert_int_equal(tollbar_lease_client_run(client), 0);
    assert_int_equal(tollbar_lease_client_on_change(client, note, &told), 0);
    assert_int_equal(pthread_create(&thread, NULL, drive, client), 0);
    while (__atomic_load_n(&told, __ATOMIC_SEQ_CST) == TOLLBAR_CIRCUIT_UNKNOWN)
        usleep(1000);
    assert_int_equal(told, TOLLBAR_CIRCUIT_OPEN);
    assert_int_equal(tollbar_lease_client_tick(client, &wait), TOLLBAR_E_RUNNING);
    assert_int_equal(tollbar_lease_client_run(client), TOLLBAR_E_RUNNING);
    assert_int_equal(tollbar_lease_client_on_change(client, NULL, NULL), TOLLBAR_E_RUNNING);
    assert_int_equal(tollbar_lease_client_close(client, 10), TOLLBAR_E_RUNNING);
    assert_int_equal(tollbar_lease_client_fd(client, &events), -1);
    assert_string_equal(tollbar_lease_client_error(client), "");
    assert_int_equal(tollbar_lease_client_circuit(client), TOLLBAR_CIRCUIT_OPEN);
    assert_true(wait == 7 && events == 7);
    assert_int_equal(tollbar_lease_client_stop(client), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_int_equal(*(const int32_t *)result, 0);
    /* The client is free again, for a tick or for another thread. */
    assert_int_equal(tollbar_lease_client_tick(client, &wait), 0);
    assert_int_equal(tollbar_lease_client_stop(client), 0);
    assert_int_equal(tollbar_lease_client_run(client), 0);
    assert_int_equal(tollbar_lease_client_close(client, 0), 0);
    tollbar_lease_close(lease);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_client_a_node_lives_on_its_share),
        cmocka_unit_test(the_other_fallbacks),
        cmocka_unit_test(an_overdraft_of_ones_own),
        cmocka_unit_test(waits_without_a_store),
        cmocka_unit_test(costs_and_looks),
        cmocka_unit_test(a_node_in_the_callers_memory),
        cmocka_unit_test(c5_a_shared_node_is_one_for_parent_and_child),
        cmocka_unit_test(a_client_whose_store_is_not_there),
        cmocka_unit_test(closing_with_nothing_to_report),
        cmocka_unit_test(while_a_thread_drives_it),
    };
    return cmocka_run_group_tests_name("leases without a store", tests, NULL, NULL);
}
