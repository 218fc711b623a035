#define _DEFAULT_SOURCE
#include "lease.h"

#include <poll.h>
#include <stdio.h>

struct redis redis;

int with_redis(void **state) {
    (void)state;
    redis_start(&redis);
    return 0;
}

int without_redis(void **state) {
    (void)state;
    redis_end(&redis);
    return 0;
}

tollbar_lease *lease_by(maker *make, const char *text, uint32_t nodes) {
    const tollbar_policy_spec spec = spec_of(text);
    tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(nodes);
    tollbar_lease *lease = NULL;
    /* A node asks again if an answer takes longer than half a lease's life, and then counts are not
     * exact. The default life is too short under valgrind. */
    if (strcmp(text, SLOW) == 0)
        options.life_ns = 2 * SEC;
    assert_int_equal(make("limit", 5, &spec, &options, &lease), 0);
    return lease;
}

tollbar_lease_client *client_of(const tollbar_lease *lease) {
    tollbar_lease_client *client = NULL;
    assert_int_equal(tollbar_lease_client_new(lease, redis.url, strlen(redis.url), NULL, &client), 0);
    return client;
}

void end(tollbar_lease *lease, tollbar_lease_client *client, uint32_t timeout, int32_t code) {
    assert_int_equal(tollbar_lease_client_close(client, timeout), code);
    tollbar_lease_close(lease);
}

tollbar_lease_stats told_by(const tollbar_lease *lease) {
    tollbar_lease_stats stats = TOLLBAR_LEASE_STATS_INIT;
    if (tollbar_lease_get_stats(lease, &stats) != 0)
        abort();
    return stats;
}

uint64_t take(const tollbar_lease *lease, const char *key) {
    return tollbar_lease_check(lease, key, strlen(key), 1, NULL) == TOLLBAR_ALLOWED;
}

void turn(tollbar_lease_client *const *clients, size_t count) {
    struct pollfd watched[4];
    uint32_t wait = 1000, due;
    size_t i;
    for (i = 0; i < count; i++) {
        uint32_t events = 0;
        if (tollbar_lease_client_tick(clients[i], &due) != 0)
            abort();
        wait = due < wait ? due : wait;
        watched[i].fd = tollbar_lease_client_fd(clients[i], &events);
        watched[i].events = (short)((events & TOLLBAR_EVENT_READ ? POLLIN : 0) | (events & TOLLBAR_EVENT_WRITE ? POLLOUT : 0));
        watched[i].revents = 0;
    }
    poll(watched, (nfds_t)count, (int)wait);
}

void turn_for(tollbar_lease_client *client, uint64_t time) {
    const uint64_t end = monotonic() + time;
    while (monotonic() < end)
        turn(&client, 1);
}

void settle(tollbar_lease_client *client) {
    const uint64_t start = monotonic();
    uint32_t due = 0;
    do {
        turn(&client, 1);
        if (tollbar_lease_client_tick(client, &due) != 0 || monotonic() - start > 30 * SEC)
            abort();
    } while (due <= 1);
    /* A tick first notes what the node owes. */
    if (tollbar_lease_client_tick(client, &due) != 0)
        abort();
}

void connect_to_store(tollbar_lease_client *client) {
    const uint64_t start = monotonic();
    while (tollbar_lease_client_circuit(client) != TOLLBAR_CIRCUIT_CLOSED) {
        turn(&client, 1);
        assert_in_range(monotonic() - start, 0, 30 * SEC);
    }
    turn_for(client, 1200 * MS);
}

int carry(tollbar_lease_calls *calls, uint32_t flags) {
    static char reply[1 << 16];
    const void *strings[256];
    size_t lengths[256], i;
    tollbar_lease_call call = TOLLBAR_LEASE_CALL_INIT;
    long length;
    if (tollbar_lease_calls_turn(calls, flags, &call) != 0 || call.count > sizeof lengths / sizeof *lengths)
        abort();
    if (call.count == 0) {
        if (call.wait_ms == 0)
            return 1;
        if (tollbar_lease_calls_wait(calls, call.wait_ms) != 0)
            abort();
        return 0;
    }
    for (i = 0; i < call.count; i++) {
        strings[i] = call.parts[i].bytes;
        lengths[i] = call.parts[i].length;
    }
    length = redis_eval(&redis, tollbar_lease_calls_script(), strings, lengths, call.count, call.keys, reply,
                        sizeof reply);
    assert_true(length >= 0);
    assert_int_equal(tollbar_lease_calls_answered(calls, reply, (size_t)length), 0);
    return 0;
}

int64_t charged(const char *key) {
    char command[64];
    snprintf(command, sizeof command, "GET tollbar:{limit}:k:%s", key);
    return redis_number(&redis, command);
}

int64_t had(const tollbar_lease *lease) {
    const tollbar_lease_stats stats = told_by(lease);
    return (int64_t)(stats.granted + stats.overdrawn + stats.fallback_permits - stats.owed);
}

void connections_become(int count) {
    const uint64_t start = monotonic();
    while (redis_clients(&redis) != count)
        assert_in_range(monotonic() - start, 0, 30 * SEC);
}
