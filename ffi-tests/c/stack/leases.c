/* Leases, with a real server, and with a name that is looked up. */
#include "stack.h"

#include <poll.h>
#include <stdlib.h>

#include "redis.h"
#include "tollbar_redis.h"

static struct redis server;

static tollbar_lease *lease_of(const struct world *w) {
    tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(2);
    tollbar_lease *lease = NULL;
    (void)tollbar_lease_new("limit", 5, &w->spec, &options, &lease);
    return lease;
}
static tollbar_lease_client *client_of(const tollbar_lease *lease) {
    tollbar_lease_client *client = NULL;
    (void)tollbar_lease_client_new(lease, server.url, strlen(server.url), NULL, &client);
    return client;
}

/* A case with a lease, once: the worlds differ in nothing that a lease takes. */
#define LEASE(name, ...)                                                                                                                       \
    CASE(name) {                                                                                                                               \
        tollbar_decision decision = TOLLBAR_DECISION_INIT;                                                                                     \
        tollbar_lease_stats stats = TOLLBAR_LEASE_STATS_INIT;                                                                                  \
        tollbar_lease_request request = TOLLBAR_LEASE_REQUEST_INIT(1, 0);                                                                      \
        tollbar_lease *lease = w->is_first ? lease_of(w) : NULL;                                                                               \
        (void)decision, (void)stats, (void)request;                                                                                            \
        if (lease == NULL)                                                                                                                     \
            return;                                                                                                                            \
        RUN(name(lease, __VA_ARGS__));                                                                                                         \
        RUN(name(lease, __VA_ARGS__));                                                                                                         \
        tollbar_lease_close(lease);                                                                                                            \
    }
LEASE(tollbar_lease_check, KEY, 1, &decision)
LEASE(tollbar_lease_check_at, KEY, 1, w->now, &decision)
LEASE(tollbar_lease_wait, KEY, 1, 0, &decision)
LEASE(tollbar_lease_poll, KEY, &request, &decision)
LEASE(tollbar_lease_peek, KEY, 1, &decision)
LEASE(tollbar_lease_get_stats, &stats)

CASE(tollbar_redis_version) {
    (void)w;
    RUN((tollbar_redis_version(), 0));
}
CASE(tollbar_lease_bytes) {
    tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(2);
    uint64_t bytes;
    RUN(tollbar_lease_bytes(&w->spec, &options, &bytes));
}
CASE(tollbar_lease_new) {
    tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(2);
    tollbar_lease *lease = NULL;
    RUN(tollbar_lease_new("limit", 5, &w->spec, &options, &lease));
    tollbar_lease_close(lease);
}
CASE(tollbar_lease_new_shared) {
    tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(2);
    tollbar_lease *lease = NULL;
    RUN(tollbar_lease_new_shared("limit", 5, &w->spec, &options, &lease));
    tollbar_lease_close(lease);
}
CASE(tollbar_lease_init_in) {
    tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(2);
    tollbar_lease *lease = NULL;
    RUN(tollbar_lease_init_in(memory, sizeof *memory, "limit", 5, &w->spec, &options, &lease));
    tollbar_lease_close(lease);
}
CASE(tollbar_lease_attach) {
    tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(2);
    tollbar_lease *lease = NULL, *again = NULL;
    (void)tollbar_lease_init_in(memory, sizeof *memory, "limit", 5, &w->spec, &options, &lease);
    RUN(tollbar_lease_attach(memory, sizeof *memory, &again));
    tollbar_lease_close(again);
    tollbar_lease_close(lease);
}
CASE(tollbar_lease_close) {
    tollbar_lease *lease = lease_of(w);
    RUN((tollbar_lease_close(lease), 0));
}
CASE(tollbar_lease_now) {
    tollbar_lease *lease = lease_of(w);
    RUN((tollbar_lease_now(lease), 0));
    tollbar_lease_close(lease);
}

static void listen_to(void *argument, uint32_t circuit) {
    (void)argument, (void)circuit;
}

/* A case with a client, once. */
#define CLIENT(name, ...)                                                                                                                      \
    CASE(name) {                                                                                                                               \
        tollbar_lease *lease;                                                                                                                  \
        tollbar_lease_client *client;                                                                                                          \
        uint32_t events;                                                                                                                       \
        (void)events;                                                                                                                          \
        if (!w->is_first)                                                                                                                      \
            return;                                                                                                                            \
        redis_start(&server);                                                                                                                  \
        lease = lease_of(w);                                                                                                                   \
        client = client_of(lease);                                                                                                             \
        RUN((name(__VA_ARGS__), 0));                                                                                                           \
        (void)tollbar_lease_client_close(client, 0);                                                                                           \
        tollbar_lease_close(lease);                                                                                                            \
        redis_end(&server);                                                                                                                    \
    }
CLIENT(tollbar_lease_client_on_change, client, listen_to, NULL)
CLIENT(tollbar_lease_client_circuit, client)
CLIENT(tollbar_lease_client_stop, client)
CLIENT(tollbar_lease_client_error, client)
CLIENT(tollbar_lease_client_lease_error, client, lease)
CLIENT(tollbar_lease_client_fd, client, &events)

CASE(tollbar_lease_client_new) {
    static const char *const urls[] = {"redis://user:secret@redis.example:6379/2", "unix:/tmp/redis.sock", "redis://[::1]:1", "http://"};
    tollbar_lease *lease = lease_of(w);
    size_t n;
    for (n = 0; lease != NULL && n < COUNT(urls); n++) {
        tollbar_lease_client *client = NULL;
        size_t column;
        RUN(tollbar_lease_client_new(lease, urls[n], strlen(urls[n]), &column, &client));
        if (client != NULL)
            (void)tollbar_lease_client_close(client, 0);
    }
    tollbar_lease_close(lease);
}

CASE(tollbar_lease_client_add) {
    tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(2);
    tollbar_lease *lease, *other = NULL;
    tollbar_lease_client *client;
    if (!w->is_first)
        return;
    redis_start(&server);
    lease = lease_of(w);
    (void)tollbar_lease_new("other", 5, &w->spec, &options, &other);
    client = client_of(lease);
    RUN(tollbar_lease_client_add(client, other));
    RUN(tollbar_lease_client_add(client, other));
    (void)tollbar_lease_client_close(client, 0);
    tollbar_lease_close(lease);
    tollbar_lease_close(other);
    redis_end(&server);
}

CLIENT(tollbar_lease_client_report, client, lease, 0)
CASE(tollbar_lease_client_remove) {
    tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(2);
    tollbar_lease *lease, *other = NULL;
    tollbar_lease_client *client;
    if (!w->is_first)
        return;
    redis_start(&server);
    lease = lease_of(w);
    (void)tollbar_lease_new("other", 5, &w->spec, &options, &other);
    client = client_of(lease);
    RUN(tollbar_lease_client_remove(client, other, 0));
    (void)tollbar_lease_client_add(client, other);
    (void)tollbar_lease_check(other, "k", 1, 1, NULL);
    RUN(tollbar_lease_client_remove(client, other, 1000));
    (void)tollbar_lease_client_close(client, 0);
    tollbar_lease_close(lease);
    tollbar_lease_close(other);
    redis_end(&server);
}

/* A TLS library that begins nothing. */
static void *no_start(void *context, const char *host) {
    (void)context;
    (void)host;
    return NULL;
}
static int64_t no_bytes_in(void *connection, const void *bytes, size_t length) {
    (void)connection;
    (void)bytes;
    (void)length;
    return 0;
}
static int64_t no_bytes_out(void *connection, void *bytes, size_t length) {
    return no_bytes_in(connection, bytes, length);
}
static int32_t no_wants(void *connection) {
    (void)connection;
    return TOLLBAR_TLS_FAULT;
}
static const char *no_fault(void *connection) {
    (void)connection;
    return NULL;
}
static void no_end(void *connection) {
    (void)connection;
}

CASE(tollbar_lease_client_new_tls) {
    static const char url[] = "rediss://user:secret@redis.example:6379,[::1]:1/2?timeout=2s";
    tollbar_tls tls = TOLLBAR_TLS_INIT;
    tollbar_lease *lease = lease_of(w);
    tollbar_lease_client *client = NULL;
    if (lease == NULL)
        return;
    /* Without functions, and with all. */
    RUN(tollbar_lease_client_new_tls(lease, url, sizeof url - 1, &tls, NULL, &client));
    tls.start = no_start;
    tls.cipher_in = tls.plain_in = no_bytes_in;
    tls.cipher_out = tls.plain_out = no_bytes_out;
    tls.wants = no_wants;
    tls.fault = no_fault;
    tls.end = no_end;
    RUN(tollbar_lease_client_new_tls(lease, url, sizeof url - 1, &tls, NULL, &client));
    if (client != NULL)
        (void)tollbar_lease_client_close(client, 0);
    tollbar_lease_close(lease);
}

/* Ticks by which the client looks its server up, connects, loads its scripts, and asks for
 * leases. */
static void ticks(tollbar_lease *lease, tollbar_lease_client *client, const struct world *w) {
    int n;
    for (n = 0; n < 200; n++) {
        struct pollfd watched = {-1, 0, 0};
        uint32_t events = 0, wait = 0;
        uint64_t key = (uint64_t)n % 7;
        (void)tollbar_lease_check(lease, &key, sizeof key, 1, NULL);
        (void)tollbar_lease_check(lease, KEY, 1, NULL);
        RUN(tollbar_lease_client_tick(client, &wait));
        watched.fd = tollbar_lease_client_fd(client, &events);
        watched.events = (short)((events & TOLLBAR_EVENT_READ ? POLLIN : 0) | (events & TOLLBAR_EVENT_WRITE ? POLLOUT : 0));
        (void)poll(&watched, 1, 1);
    }
}
CASE(tollbar_lease_client_tick) {
    static const char named[] = "redis://redis.invalid:6379";
    tollbar_lease *lease;
    tollbar_lease_client *client;
    if (!w->is_first)
        return;
    redis_start(&server);
    lease = lease_of(w);
    client = client_of(lease);
    ticks(lease, client, w);
    (void)tollbar_lease_client_close(client, 100);
    redis_end(&server);
    if (tollbar_lease_client_new(lease, named, sizeof named - 1, NULL, &client) == 0) {
        ticks(lease, client, w);
        (void)tollbar_lease_client_close(client, 0);
    }
    tollbar_lease_close(lease);
}
CASE(tollbar_lease_client_run) {
    tollbar_lease *lease;
    tollbar_lease_client *client;
    if (!w->is_first)
        return;
    redis_start(&server);
    lease = lease_of(w);
    client = client_of(lease);
    (void)tollbar_lease_client_stop(client);
    RUN(tollbar_lease_client_run(client));
    (void)tollbar_lease_client_close(client, 0);
    tollbar_lease_close(lease);
    redis_end(&server);
}
CASE(tollbar_lease_client_close) {
    tollbar_lease *lease;
    if (!w->is_first)
        return;
    redis_start(&server);
    lease = lease_of(w);
    (void)tollbar_lease_check(lease, KEY, 1, NULL);
    RUN((tollbar_lease_client_close(client_of(lease), 100), 0));
    tollbar_lease_close(lease);
    redis_end(&server);
}

static tollbar_lease_calls *calls_of(const tollbar_lease *lease) {
    tollbar_lease_calls *calls = NULL;
    (void)tollbar_lease_calls_new(lease, &calls);
    return calls;
}

CASE(tollbar_lease_calls_new) {
    tollbar_lease *lease = lease_of(w);
    tollbar_lease_calls *calls = NULL;
    if (lease == NULL)
        return;
    RUN(tollbar_lease_calls_new(lease, &calls));
    (void)tollbar_lease_calls_close(calls);
    tollbar_lease_close(lease);
}
CASE(tollbar_lease_calls_add) {
    tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(2);
    tollbar_lease *lease = lease_of(w), *other = NULL;
    tollbar_lease_calls *calls = NULL;
    if (lease == NULL)
        return;
    (void)tollbar_lease_new("other", 5, &w->spec, &options, &other);
    calls = calls_of(lease);
    RUN(tollbar_lease_calls_add(calls, other));
    (void)tollbar_lease_calls_close(calls);
    tollbar_lease_close(lease);
    tollbar_lease_close(other);
}
CASE(tollbar_lease_calls_script) {
    (void)w;
    RUN((tollbar_lease_calls_script(), 0));
}

/* The cases of a call: questions, by a real server's answers, and what may come in their place. */
#define CALLS(name, call_it)                                                                                                                   \
    CASE(name) {                                                                                                                               \
        static char reply[1 << 16];                                                                                                            \
        tollbar_lease *lease = w->is_first ? lease_of(w) : NULL;                                                                               \
        tollbar_lease_calls *calls;                                                                                                            \
        int n;                                                                                                                                 \
        if (lease == NULL)                                                                                                                     \
            return;                                                                                                                            \
        redis_start(&server);                                                                                                                  \
        calls = calls_of(lease);                                                                                                               \
        for (n = 0; n < 50; n++) {                                                                                                             \
            tollbar_lease_call call = TOLLBAR_LEASE_CALL_INIT;                                                                                 \
            const uint64_t key = (uint64_t)n % 7;                                                                                              \
            long length;                                                                                                                       \
            (void)tollbar_lease_check(lease, &key, sizeof key, 1, NULL);                                                                       \
            if (tollbar_lease_calls_turn(calls, 0, &call) != 0 || call.count == 0) {                                                           \
                (void)poll(NULL, 0, 1);                                                                                                        \
                continue;                                                                                                                      \
            }                                                                                                                                  \
            length = eval(&call, reply, sizeof reply);                                                                                         \
            (void)length;                                                                                                                      \
            call_it;                                                                                                                           \
            if (length > 0)                                                                                                                    \
                (void)tollbar_lease_calls_answered(calls, reply, (size_t)length);                                                              \
        }                                                                                                                                      \
        (void)tollbar_lease_calls_close(calls);                                                                                                \
        tollbar_lease_close(lease);                                                                                                            \
        redis_end(&server);                                                                                                                    \
    }

static long eval(const tollbar_lease_call *call, char *reply, size_t room) {
    const void *strings[256];
    size_t lengths[256], n;
    for (n = 0; n < call->count && n < COUNT(strings); n++) {
        strings[n] = call->parts[n].bytes;
        lengths[n] = call->parts[n].length;
    }
    return redis_eval(&server, tollbar_lease_calls_script(), strings, lengths, call->count, call->keys, reply, room);
}

CALLS(tollbar_lease_calls_answered, RUN(tollbar_lease_calls_answered(calls, reply, (size_t)length)))
CALLS(tollbar_lease_calls_refused, RUN(tollbar_lease_calls_refused(calls, "OOM no room", 11)))
CALLS(tollbar_lease_calls_lost, RUN(tollbar_lease_calls_lost(calls, "no answer", 9)))
CALLS(tollbar_lease_calls_error, RUN((tollbar_lease_calls_error(calls), 0)))
CALLS(tollbar_lease_calls_turn, RUN(tollbar_lease_calls_turn(calls, 0, &call)))
CALLS(tollbar_lease_calls_wait, RUN(tollbar_lease_calls_wait(calls, 1)))

CASE(tollbar_lease_calls_close) {
    tollbar_lease *lease = w->is_first ? lease_of(w) : NULL;
    tollbar_lease_calls *calls;
    if (lease == NULL)
        return;
    calls = calls_of(lease);
    RUN(tollbar_lease_calls_close(calls));
    tollbar_lease_close(lease);
}

/* NULL for a policy that no store decides. */
static tollbar_store_limit *store_limit_of(const struct world *w) {
    tollbar_store_limit *limit = NULL;
    (void)tollbar_store_limit_new("stack", 5, &w->spec, &limit);
    return limit;
}

CASE(tollbar_store_limit_new) {
    tollbar_store_limit *limit = NULL;
    RUN(tollbar_store_limit_new("stack", 5, &w->spec, &limit));
    tollbar_store_limit_free(limit);
}
CASE(tollbar_store_limit_free) {
    tollbar_store_limit *limit = store_limit_of(w);
    RUN((tollbar_store_limit_free(limit), 0));
}
CASE(tollbar_store_ask) {
    tollbar_store_limit *limit = store_limit_of(w);
    tollbar_store_question question = TOLLBAR_STORE_QUESTION_INIT;
    uint32_t ask;
    if (limit == NULL)
        return;
    for (ask = TOLLBAR_STORE_CHECK; ask <= TOLLBAR_STORE_RESET; ask++)
        RUN(tollbar_store_ask(limit, ask, KEY, 1, &question));
    tollbar_store_limit_free(limit);
}
CASE(tollbar_store_answer) {
    static const int64_t numbers[] = {1, 0, 1767225600000000, 5, 5, 5};
    tollbar_store_limit *limit = store_limit_of(w);
    tollbar_store_question question = TOLLBAR_STORE_QUESTION_INIT;
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    uint64_t taken;
    if (limit == NULL)
        return;
    (void)tollbar_store_ask(limit, TOLLBAR_STORE_CHECK, KEY, 1, &question);
    RUN(tollbar_store_answer(limit, &question, numbers, COUNT(numbers), &decision, &taken));
    RUN(tollbar_store_answer(limit, &question, numbers, 1, &decision, &taken));
    tollbar_store_limit_free(limit);
}
