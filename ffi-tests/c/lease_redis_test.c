/* Nodes and clients on a real redis-server. The upper bounds of times are wide, for a busy machine
 * or valgrind. If the documents promise a time, the test prints it. */
#define _DEFAULT_SOURCE
#include "lease.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void two_nodes_share_a_limit(void **state) {
    tollbar_lease *leases[2];
    tollbar_lease_client *clients[2];
    uint64_t got[2] = {0, 0}, start, spent, least;
    int i;
    (void)state;
    for (i = 0; i < 2; i++) {
        leases[i] = lease_by(tollbar_lease_new, "2000/s burst 400", 2);
        clients[i] = client_of(leases[i]);
        connect_to_store(clients[i]);
    }
    start = monotonic();
    /* For two seconds, and on a busy machine until the nodes have had a quarter of the rate. */
    while ((spent = monotonic() - start) < 2 * SEC || (got[0] + got[1] < spent / (SEC / 2000) / 4 && spent < 30 * SEC)) {
        turn(clients, 2);
        for (i = 0; i < 40; i++)
            got[i % 2] += take(leases[i % 2], "");
    }
    least = spent / (SEC / 2000) / 4;
    spent = monotonic() - start;
    print_message("%u and %u of %u\n", (unsigned)got[0], (unsigned)got[1], (unsigned)(spent / (SEC / 2000)));
    /* Together never more than the burst and the refill. */
    assert_in_range(got[0] + got[1], 0, 400 + spent / (SEC / 2000) + 1);
    /* Not much less either, and each node has a part of it. */
    assert_in_range(got[0] + got[1], least, UINT64_MAX);
    /* A late answer opens the circuit for a while. */
    for (i = 0; i < 2; i++) {
        const uint64_t late = monotonic();
        while (told_by(leases[i]).circuit != TOLLBAR_CIRCUIT_CLOSED) {
            turn(clients, 2);
            assert_in_range(monotonic() - late, 0, 30 * SEC);
        }
    }
    for (i = 0; i < 2; i++) {
        const tollbar_lease_stats stats = told_by(leases[i]);
        assert_true(stats.granted > 0 && stats.asked > 0 && got[i] > 0);
        end(leases[i], clients[i], 10000, 0);
    }
    connections_become(0);
}

static void the_store_has_charged_what_was_granted(void **state) {
    tollbar_lease *lease = lease_by(tollbar_lease_new, SLOW, 2);
    tollbar_lease_client *client = client_of(lease);
    int64_t before, taken;
    int i;
    (void)state;
    connect_to_store(client);
    take(lease, "k");
    settle(client);
    before = charged("k");
    taken = had(lease);
    assert_true(before > 0 && told_by(lease).owed == 0);
    for (i = 0; i < 300; i++) {
        take(lease, "k");
        if (i % 10 == 0)
            turn(&client, 1);
    }
    settle(client);
    assert_int_equal(told_by(lease).owed, 0);
    assert_true(had(lease) > taken);
    assert_int_equal(charged("k") - before, (had(lease) - taken) * 1000000);
    end(lease, client, 10000, 0);
}

struct changes {
    uint32_t circuit;
    uint32_t calls;
};

static void note(void *argument, uint32_t circuit) {
    struct changes *changes = argument;
    __atomic_fetch_add(&changes->calls, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&changes->circuit, circuit, __ATOMIC_SEQ_CST);
}

static uint64_t until(const struct changes *changes, uint32_t circuit) {
    const uint64_t start = monotonic();
    while (__atomic_load_n(&changes->circuit, __ATOMIC_SEQ_CST) != circuit) {
        usleep(1000);
        assert_in_range(monotonic() - start, 0, 30 * SEC);
    }
    return monotonic() - start;
}

static void *drive(void *client) {
    if (tollbar_lease_client_run(client) != 0)
        abort();
    return NULL;
}

/* The store stops and starts twice, because the second time must be like the first. The promise is
 * 200 ms until the node knows that it is back. A busy machine may make that longer than 3 s, and
 * then the store stops and starts once more. */
static void a_thread_tells_when_the_store_goes_and_comes(void **state) {
    tollbar_lease *lease = lease_by(tollbar_lease_new, SLOW, 2);
    tollbar_lease_client *client = client_of(lease);
    struct changes changes = {TOLLBAR_CIRCUIT_UNKNOWN, 0};
    pthread_t thread;
    int round, soon = 0;
    (void)state;
    assert_int_equal(tollbar_lease_client_on_change(client, note, &changes), 0);
    assert_int_equal(pthread_create(&thread, NULL, drive, client), 0);
    until(&changes, TOLLBAR_CIRCUIT_CLOSED);
    for (round = 0; round < 10 && soon < 2; round++) {
        uint64_t gone, back;
        redis_kill(&redis);
        gone = until(&changes, TOLLBAR_CIRCUIT_OPEN);
        assert_int_equal(tollbar_lease_client_circuit(client), TOLLBAR_CIRCUIT_OPEN);
        /* The node decides without the store. */
        assert_int_equal(tollbar_lease_check(lease, &round, sizeof round, 1, NULL), TOLLBAR_ALLOWED);
        usleep(100000);
        redis_start(&redis);
        back = until(&changes, TOLLBAR_CIRCUIT_CLOSED);
        print_message("gone: told after %u us; back: after %u us\n", (unsigned)(gone / US), (unsigned)(back / US));
        soon += back <= 3 * SEC;
    }
    assert_int_equal(soon, 2);
    assert_true(changes.calls >= 5 && told_by(lease).opened >= 2);
    assert_int_equal(tollbar_lease_client_stop(client), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    end(lease, client, 10000, 0);
}

static void closing_tells_what_is_owed(void **state) {
    tollbar_lease *lease = lease_by(tollbar_lease_new, SLOW, 2);
    tollbar_lease_client *client = client_of(lease);
    uint64_t start;
    int64_t ahead;
    (void)state;
    connect_to_store(client);
    start = monotonic();
    assert_int_equal(tollbar_lease_check(lease, "k", 1, 5, NULL), TOLLBAR_ALLOWED);
    /* The store has not heard of the key yet. */
    assert_string_equal(redis_ask(&redis, "GET tollbar:{limit}:k:k"), "$-1");
    assert_int_equal(tollbar_lease_client_close(client, 10000), 0);
    assert_int_equal(told_by(lease).owed, 0);
    ahead = charged("k");
    ahead -= redis_number(&redis, "EVAL \"local t=redis.call('TIME') return t[1]*1000000+t[2]\" 0");
    assert_in_range(ahead + (int64_t)((monotonic() - start) / US) + 1, 5000000, 60000000);
    assert_in_range(ahead, 0, 5000000);
    tollbar_lease_close(lease);
}

static void and_says_so_if_it_cannot(void **state) {
    tollbar_lease *lease = lease_by(tollbar_lease_new, SLOW, 2);
    tollbar_lease_client *client = client_of(lease);
    uint64_t start;
    (void)state;
    connect_to_store(client);
    assert_int_equal(tollbar_lease_check(lease, "k", 1, 5, NULL), TOLLBAR_ALLOWED);
    redis_kill(&redis);
    start = monotonic();
    end(lease, client, 100, TOLLBAR_E_UNREPORTED);
    assert_in_range(monotonic() - start, 100 * MS, 10 * SEC);
}

static void a_refusal_is_said_in_the_stores_words(void **state) {
    tollbar_lease *lease = lease_by(tollbar_lease_new, SLOW, 2);
    tollbar_lease_client *client;
    char url[160];
    uint64_t start = monotonic();
    (void)state;
    snprintf(url, sizeof url, "%s?user=nobody&password=wrong", redis.url);
    assert_int_equal(tollbar_lease_client_new(lease, url, strlen(url), NULL, &client), 0);
    while (strstr(tollbar_lease_client_error(client), "WRONGPASS") == NULL) {
        turn(&client, 1);
        assert_in_range(monotonic() - start, 0, 30 * SEC);
    }
    assert_int_not_equal(tollbar_lease_client_circuit(client), TOLLBAR_CIRCUIT_CLOSED);
    end(lease, client, 0, 0);
}

/* Whether the machine has the address ::1. */
static int has_ipv6(void) {
    char line[128];
    int found = 0;
    FILE *addresses = fopen("/proc/net/if_inet6", "r");
    while (addresses != NULL && fgets(line, sizeof line, addresses) != NULL)
        found |= strncmp(line, "00000000000000000000000000000001", 32) == 0;
    if (addresses != NULL)
        fclose(addresses);
    return found;
}

/* Lets the server listen at a free port, too, and returns it. */
static unsigned listens(void) {
    char command[64];
    unsigned port;
    assert_string_equal(redis_ask(&redis, "CONFIG SET bind \"127.0.0.1 -::1\""), "+OK");
    for (port = 20000 + (unsigned)getpid() % 10000;; port++) {
        snprintf(command, sizeof command, "CONFIG SET port %u", port);
        if (strcmp(redis_ask(&redis, command), "+OK") == 0)
            return port;
        assert_in_range(port, 1, 40000);
    }
}

/* A client of this URL has permits of the store. */
static void reaches(const char *url) {
    tollbar_lease *lease = lease_by(tollbar_lease_new, SLOW, 2);
    tollbar_lease_client *client = NULL;
    const uint64_t start = monotonic();
    assert_int_equal(tollbar_lease_client_new(lease, url, strlen(url), NULL, &client), 0);
    while (told_by(lease).granted == 0) {
        turn(&client, 1);
        (void)take(lease, "k");
        if (monotonic() - start > 30 * SEC)
            fail_msg("%s: %s", url, tollbar_lease_client_error(client));
    }
    end(lease, client, 10000, 0);
}

static void ways_to_the_store(void **state) {
    char url[160];
    const unsigned port = listens();
    size_t i;
    static const char *const hosts[] = {"redis://127.0.0.1", "redis://localhost", "valkey://me:first@127.0.0.1",
                                        "redis://127.0.0.1:1,localhost", "redis://[::1]"};
    (void)state;
    assert_string_equal(redis_ask(&redis, "ACL SETUSER me on >first ~tollbar:* &* +@all"), "+OK");
    reaches(redis.url);
    for (i = 0; i < sizeof hosts / sizeof *hosts - (has_ipv6() ? 0 : 1); i++) {
        snprintf(url, sizeof url, "%s:%u%s", hosts[i], port, i == 1 ? "/3" : "");
        reaches(url);
    }
}

static void write_password(const char *path, const char *password) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fprintf(file, "%s\n", password) > 0 && fclose(file) == 0);
}

/* The server takes another password and ends the connection; the client reads the file again. */
static void a_password_that_rotates(void **state) {
    tollbar_lease *lease = lease_by(tollbar_lease_new, SLOW, 2);
    tollbar_lease_client *client = NULL;
    char path[96], url[256];
    uint64_t before;
    const uint64_t start = monotonic();
    (void)state;
    snprintf(path, sizeof path, "%s/password", redis.directory);
    snprintf(url, sizeof url, "%s?user=me&password_file=%s", redis.url, path);
    write_password(path, "first");
    assert_string_equal(redis_ask(&redis, "ACL SETUSER me on >first ~tollbar:* &* +@all"), "+OK");
    assert_int_equal(tollbar_lease_client_new(lease, url, strlen(url), NULL, &client), 0);
    connect_to_store(client);
    while (told_by(lease).granted == 0) {
        (void)take(lease, "k");
        turn(&client, 1);
        assert_in_range(monotonic() - start, 0, 60 * SEC);
    }
    before = told_by(lease).granted;
    write_password(path, "second");
    assert_string_equal(redis_ask(&redis, "ACL SETUSER me resetpass >second"), "+OK");
    /* The server may not have seen yet that the client has left another connection. */
    assert_true(redis_number(&redis, "CLIENT KILL USER me") >= 1);
    connect_to_store(client);
    while (told_by(lease).granted == before) {
        (void)take(lease, "k");
        turn(&client, 1);
        assert_in_range(monotonic() - start, 0, 60 * SEC);
    }
    end(lease, client, 10000, 0);
    assert_int_equal(remove(path), 0);
}

/* One connection, one circuit and one heartbeat for all; each limit has its own keys and its own
 * refusals, and the error names it. */
static void one_client_asks_for_many_limits(void **state) {
    enum { LIMITS = 40 };
    tollbar_lease *leases[LIMITS];
    const tollbar_policy_spec spec = spec_of("60/min burst 600");
    tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(2);
    tollbar_lease_client *client;
    const uint64_t start = monotonic();
    char name[24], command[80];
    int i;
    (void)state;
    options.life_ns = 2 * SEC;
    for (i = 0; i < LIMITS; i++) {
        snprintf(name, sizeof name, "limit%d", i);
        assert_int_equal(tollbar_lease_new(name, strlen(name), &spec, &options, &leases[i]), 0);
    }
    client = client_of(leases[0]);
    assert_int_equal(tollbar_lease_client_add(NULL, leases[1]), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_lease_client_add(client, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_lease_client_remove(NULL, leases[1], 0), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_lease_client_remove(client, NULL, 0), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_lease_client_remove(client, leases[1], 0), TOLLBAR_E_CLIENT_LEASES);
    assert_int_equal(tollbar_lease_client_add(client, leases[0]), TOLLBAR_E_CLIENT_LEASES);
    for (i = 1; i < LIMITS; i++)
        assert_int_equal(tollbar_lease_client_add(client, leases[i]), 0);
    while (tollbar_lease_client_circuit(client) != TOLLBAR_CIRCUIT_CLOSED) {
        turn(&client, 1);
        assert_in_range(monotonic() - start, 0, 30 * SEC);
    }
    connections_become(1);
    assert_string_equal(tollbar_lease_client_error(client), "");
    assert_string_equal(tollbar_lease_client_lease_error(client, leases[1]), "");
    for (i = 0; i < LIMITS; i++)
        assert_int_equal(tollbar_lease_check(leases[i], "k", 1, 2, NULL), TOLLBAR_ALLOWED);
    settle(client);
    for (i = 0; i < LIMITS; i++) {
        snprintf(command, sizeof command, "EXISTS tollbar:{limit%d}:k:k", i);
        assert_int_equal(redis_number(&redis, command), 1);
        assert_int_equal(told_by(leases[i]).owed, 0);
    }
    /* A lease that leaves is charged before, and can be freed. Its place is free. */
    for (i = 0; i < LIMITS / 2; i++) {
        assert_int_equal(tollbar_lease_check(leases[i], "last", 4, 2, NULL), TOLLBAR_ALLOWED);
        if (i % 2 != 0)
            assert_int_equal(tollbar_lease_client_report(client, leases[i], 10000), 0);
        assert_int_equal(tollbar_lease_client_remove(client, leases[i], i % 2 != 0 ? 0 : 10000), 0);
        assert_int_equal(tollbar_lease_client_report(client, leases[i], 0), TOLLBAR_E_CLIENT_LEASES);
        assert_int_equal(tollbar_lease_client_remove(client, leases[i], 10000), TOLLBAR_E_CLIENT_LEASES);
        snprintf(command, sizeof command, "EXISTS tollbar:{limit%d}:k:last", i);
        assert_int_equal(redis_number(&redis, command), 1);
        tollbar_lease_close(leases[i]);
    }
    for (i = 0; i < LIMITS / 2; i++) {
        snprintf(name, sizeof name, "limit%d", i);
        assert_int_equal(tollbar_lease_new(name, strlen(name), &spec, &options, &leases[i]), 0);
        assert_int_equal(tollbar_lease_client_add(client, leases[i]), 0);
    }
    for (i = 0; i < LIMITS; i++)
        assert_int_equal(tollbar_lease_check(leases[i], "again", 5, 2, NULL), TOLLBAR_ALLOWED);
    settle(client);
    connections_become(1);
    assert_int_equal(tollbar_lease_client_close(client, 10000), 0);
    for (i = 0; i < LIMITS; i++)
        tollbar_lease_close(leases[i]);
    connections_become(0);
}

static void the_programs_own_client_asks(void **state) {
    tollbar_lease *lease = lease_by(tollbar_lease_new, "1000/day burst 400", 1);
    tollbar_lease_calls *calls = NULL;
    tollbar_lease_request request = TOLLBAR_LEASE_REQUEST_INIT(1, 0);
    uint64_t admitted = 0, asked = 0;
    const uint64_t start = monotonic();
    (void)state;
    assert_int_equal(tollbar_lease_calls_new(lease, &calls), 0);
    assert_int_equal(tollbar_lease_calls_add(calls, lease), TOLLBAR_E_CLIENT_LEASES);
    while (told_by(lease).circuit != TOLLBAR_CIRCUIT_CLOSED) {
        (void)carry(calls, 0);
        assert_in_range(monotonic() - start, 0, 30 * SEC);
    }
    while (asked < 450) {
        int32_t code;
        if (request.until_ns == 0)
            request.until_ns = tollbar_lease_now(lease) + 10 * SEC;
        code = tollbar_lease_poll(lease, "ann", 3, &request, NULL);
        if (code == TOLLBAR_LEASE_WAITS) {
            (void)carry(calls, 0);
            continue;
        }
        admitted += code == TOLLBAR_ALLOWED;
        asked++;
        request.progress = 0;
        request.until_ns = 0;
    }
    print_message("%u of 400\n", (unsigned)admitted);
    /* The store keeps 8 permits for a machine that admits before it asks. If this program does not
     * run for 250 ms, the permits that the store has given it end unused. */
    assert_in_range(admitted, 300, 400);
    assert_string_equal(tollbar_lease_calls_error(calls), "");
    while (!carry(calls, TOLLBAR_LEASE_CLOSING))
        assert_in_range(monotonic() - start, 0, 30 * SEC);
    assert_int_equal(tollbar_lease_calls_close(calls), 0);
    tollbar_lease_close(lease);
}

static void a_call_without_a_reply_is_lost(void **state) {
    tollbar_lease *lease = lease_by(tollbar_lease_new, SLOW, 1);
    tollbar_lease_calls *calls = NULL;
    tollbar_lease_call call = TOLLBAR_LEASE_CALL_INIT;
    (void)state;
    assert_int_equal(tollbar_lease_calls_new(lease, &calls), 0);
    assert_int_equal(tollbar_lease_calls_turn(calls, 2, &call), TOLLBAR_E_RESERVED);
    while (call.count == 0)
        assert_int_equal(tollbar_lease_calls_turn(calls, 0, &call), 0);
    assert_int_equal(call.keys, 1);
    assert_memory_equal(call.parts[0].bytes, "tollbar:{limit}:record", 22);
    /* Said by nobody, and then by the program. */
    assert_int_equal(tollbar_lease_calls_turn(calls, 0, &call), 0);
    assert_string_equal(tollbar_lease_calls_error(calls), "the program's Redis client failed: the call before it had no reply");
    while (call.count == 0)
        assert_int_equal(tollbar_lease_calls_turn(calls, 0, &call), 0);
    assert_int_equal(tollbar_lease_calls_lost(calls, "cable", 5), 0);
    assert_string_equal(tollbar_lease_calls_error(calls), "the program's Redis client failed: cable");
    assert_int_equal(told_by(lease).circuit, TOLLBAR_CIRCUIT_OPEN);
    /* A reply to no call is nobody's. */
    assert_int_equal(tollbar_lease_calls_answered(calls, "+", 1), 0);
    do
        assert_int_equal(tollbar_lease_calls_turn(calls, 0, &call), 0);
    while (call.count == 0);
    assert_int_equal(tollbar_lease_calls_refused(calls, "OOM no room", 11), 0);
    assert_string_equal(tollbar_lease_calls_error(calls), "the server is out of memory (EVALSHA): OOM no room");
    do
        assert_int_equal(tollbar_lease_calls_turn(calls, 0, &call), 0);
    while (call.count == 0);
    assert_int_equal(tollbar_lease_calls_answered(calls, "nonsense", 8), 0);
    assert_string_equal(tollbar_lease_calls_error(calls), "not a Redis server's reply (EVALSHA): not a Redis server's reply");
    assert_int_equal(tollbar_lease_calls_close(calls), 0);
    tollbar_lease_close(lease);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_REDIS(two_nodes_share_a_limit),
        WITH_REDIS(the_store_has_charged_what_was_granted),
        WITH_REDIS(a_thread_tells_when_the_store_goes_and_comes),
        WITH_REDIS(closing_tells_what_is_owed),
        WITH_REDIS(and_says_so_if_it_cannot),
        WITH_REDIS(a_refusal_is_said_in_the_stores_words),
        WITH_REDIS(ways_to_the_store),
        WITH_REDIS(a_password_that_rotates),
        WITH_REDIS(one_client_asks_for_many_limits),
        WITH_REDIS(the_programs_own_client_asks),
        WITH_REDIS(a_call_without_a_reply_is_lost),
    };
    return cmocka_run_group_tests_name("leases of a store", tests, NULL, NULL);
}
