/* Queues, pacing, adaptive limits, permits in flight, routes, prefixes, header fields, metrics. */
#include "stack.h"

#include <stdio.h>
#include <unistd.h>

static tollbar_queue *queue_of(const struct world *w) {
    tollbar_queue_options options = TOLLBAR_QUEUE_OPTIONS_INIT;
    tollbar_queue *queue = NULL;
    options.clock = w->clock;
    return tollbar_queue_new(&w->spec, 64, &options, &queue) == 0 ? queue : NULL;
}
/* A case of a queue with an item, for policies of which queues take any. */
#define QUEUE(name, ...)                                                                                                                       \
    CASE(name) {                                                                                                                               \
        tollbar_queue *queue = queue_of(w);                                                                                                    \
        tollbar_queue_ticket ticket = {0, 0, 0};                                                                                               \
        void *item = NULL;                                                                                                                     \
        uint64_t number = 0;                                                                                                                   \
        (void)ticket, (void)item, (void)number;                                                                                                \
        if (queue == NULL)                                                                                                                     \
            return;                                                                                                                            \
        (void)tollbar_queue_offer_at(queue, w, w->now, &ticket);                                                                               \
        RUN(name(queue, __VA_ARGS__));                                                                                                         \
        tollbar_queue_free(queue);                                                                                                             \
    }
QUEUE(tollbar_queue_offer, w, &ticket)
QUEUE(tollbar_queue_offer_at, w, w->now, &ticket)
QUEUE(tollbar_queue_offer_within, w, SEC / 1000, &ticket)
QUEUE(tollbar_queue_take, &item)
QUEUE(tollbar_queue_take_at, w->now, &item)
QUEUE(tollbar_queue_take_within, SEC / 1000, &item)
QUEUE(tollbar_queue_next_departure, &number)
QUEUE(tollbar_queue_next_departure_at, w->now, &number)
QUEUE(tollbar_queue_cancel, &ticket, &item)
QUEUE(tollbar_queue_length, &number)
QUEUE(tollbar_queue_now, &number)

CASE(tollbar_queue_new) {
    tollbar_queue_options options = TOLLBAR_QUEUE_OPTIONS_INIT;
    tollbar_queue *queue = NULL;
    options.clock = w->clock;
    RUN(tollbar_queue_new(&w->spec, 64, &options, &queue));
    tollbar_queue_free(queue);
}
CASE(tollbar_queue_from_text) {
    tollbar_queue *queue = NULL;
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    RUN(tollbar_queue_from_text(w->text, 64, &queue, &error));
    tollbar_queue_free(queue);
}
CASE(tollbar_queue_free) {
    tollbar_queue *queue = queue_of(w);
    RUN((tollbar_queue_free(queue), 0));
}
CASE(tollbar_queue_close) {
    tollbar_queue *queue = queue_of(w);
    RUN(tollbar_queue_close(queue));
    tollbar_queue_free(queue);
}
CASE(tollbar_queue_drain) {
    tollbar_queue *queue = queue_of(w);
    void *item;
    (void)tollbar_queue_offer_at(queue, w, w->now, NULL);
    (void)tollbar_queue_close(queue);
    RUN(tollbar_queue_drain(queue, &item));
    tollbar_queue_free(queue);
}
static void work(void *context, void *item) {
    (void)item;
    (void)tollbar_queue_stop(context);
}
CASE(tollbar_queue_run) {
    tollbar_queue *queue = queue_of(w);
    if (queue != NULL) {
        (void)tollbar_queue_offer_at(queue, w, w->now, NULL);
        RUN(tollbar_queue_run(queue, work, queue));
        tollbar_queue_free(queue);
    }
}
CASE(tollbar_queue_stop) {
    tollbar_queue *queue = queue_of(w);
    RUN(tollbar_queue_stop(queue));
    tollbar_queue_free(queue);
}

static const char refusal[] = "HTTP/1.1 429\r\nRetry-After: 2\r\nRateLimit: \"p\";r=0;t=5\r\nRateLimit-Policy: \"p\";q=10;w=60\r\n\r\n";
static tollbar_pacing *pacing_of(tollbar_pacing_ticket *ticket, uint64_t now) {
    tollbar_pacing *pacing = NULL;
    if (tollbar_pacing_new(NULL, 10, &pacing) == 0)
        (void)tollbar_pacing_acquire_at(pacing, "host", 4, now, ticket);
    return pacing;
}
#define PACING(name, ...)                                                                                                                      \
    CASE(name) {                                                                                                                               \
        tollbar_pacing_ticket ticket = {0, 0};                                                                                                 \
        tollbar_pacing_state state = TOLLBAR_PACING_STATE_INIT;                                                                                \
        tollbar_pacing *pacing = pacing_of(&ticket, w->now);                                                                                   \
        uint64_t wait = 0;                                                                                                                     \
        (void)state, (void)wait;                                                                                                               \
        RUN(name(pacing, __VA_ARGS__));                                                                                                        \
        tollbar_pacing_free(pacing);                                                                                                           \
    }
PACING(tollbar_pacing_acquire_at, "other", 5, w->now, &ticket)
PACING(tollbar_pacing_wait_at, &ticket, w->now, &wait)
PACING(tollbar_pacing_respond_at, &ticket, 429, refusal, sizeof refusal - 1, 1774857600 * SEC, w->now)
PACING(tollbar_pacing_leave_at, &ticket, w->now)
PACING(tollbar_pacing_read_at, "host", 4, w->now, &state)
CASE(tollbar_pacing_new) {
    tollbar_pacing_options options = TOLLBAR_PACING_OPTIONS_INIT;
    tollbar_pacing *pacing = NULL;
    (void)w;
    RUN(tollbar_pacing_new(&options, 1000, &pacing));
    tollbar_pacing_free(pacing);
}
CASE(tollbar_pacing_free) {
    tollbar_pacing_ticket ticket;
    tollbar_pacing *pacing = pacing_of(&ticket, w->now);
    RUN((tollbar_pacing_free(pacing), 0));
}

static tollbar_in_flight *in_flight_of(const struct world *w, tollbar_ticket *ticket) {
    tollbar_in_flight_options options = TOLLBAR_IN_FLIGHT_OPTIONS_INIT;
    tollbar_in_flight *table = NULL;
    options.capacity = 100;
    if (tollbar_in_flight_new(&options, &table) == 0)
        (void)tollbar_in_flight_acquire(table, KEY, 2, ticket);
    return table;
}
#define IN_FLIGHT(name, ...)                                                                                                                   \
    CASE(name) {                                                                                                                               \
        tollbar_ticket ticket = 0;                                                                                                             \
        uint64_t count = 0;                                                                                                                    \
        tollbar_in_flight *table = in_flight_of(w, &ticket);                                                                                   \
        (void)count;                                                                                                                           \
        RUN(name(__VA_ARGS__));                                                                                                                \
        tollbar_in_flight_close(table);                                                                                                        \
    }
IN_FLIGHT(tollbar_in_flight_join, table)
IN_FLIGHT(tollbar_in_flight_release, table, ticket)
IN_FLIGHT(tollbar_in_flight_count, table, KEY, &count)
CASE(tollbar_in_flight_acquire) {
    tollbar_ticket ticket;
    int n;
    tollbar_in_flight *table = in_flight_of(w, &ticket);
    for (n = 0; n < 3; n++)
        RUN(tollbar_in_flight_acquire(table, KEY, 2, &ticket));
    tollbar_in_flight_close(table);
}
CASE(tollbar_in_flight_close) {
    tollbar_ticket ticket;
    tollbar_in_flight *table = in_flight_of(w, &ticket);
    RUN((tollbar_in_flight_close(table), 0));
}
/* Calls that make a table of permits in flight. */
#define MAKES_IN_FLIGHT(name, first, last)                                                                                                     \
    CASE(name) {                                                                                                                               \
        tollbar_in_flight_options options = TOLLBAR_IN_FLIGHT_OPTIONS_INIT;                                                                    \
        tollbar_in_flight *table = NULL;                                                                                                       \
        (void)w;                                                                                                                               \
        options.capacity = 100;                                                                                                                \
        RUN(name(first &options last));                                                                                                        \
        tollbar_in_flight_close(table);                                                                                                        \
    }
#define MAKE_TABLE , &table
#define IN_PATH w->path,
#define IN_MEMORY memory, sizeof *memory,
MAKES_IN_FLIGHT(tollbar_in_flight_new, , MAKE_TABLE)
MAKES_IN_FLIGHT(tollbar_in_flight_new_shared, , MAKE_TABLE)
MAKES_IN_FLIGHT(tollbar_in_flight_init_in, IN_MEMORY, MAKE_TABLE)
CASE(tollbar_in_flight_open) {
    tollbar_in_flight_options options = TOLLBAR_IN_FLIGHT_OPTIONS_INIT;
    int n;
    options.capacity = 100;
    unlink(w->path);
    /* The first makes the file, and the second opens it. */
    for (n = 0; n < 2; n++) {
        tollbar_in_flight *table = NULL;
        RUN(tollbar_in_flight_open(w->path, &options, &table));
        tollbar_in_flight_close(table);
    }
    unlink(w->path);
}
CASE(tollbar_in_flight_attach) {
    tollbar_in_flight_options options = TOLLBAR_IN_FLIGHT_OPTIONS_INIT;
    tollbar_in_flight *one = NULL, *two = NULL;
    (void)w;
    options.capacity = 100;
    (void)tollbar_in_flight_init_in(memory, sizeof *memory, &options, &one);
    RUN(tollbar_in_flight_attach(memory, sizeof *memory, &two));
    tollbar_in_flight_close(two);
    tollbar_in_flight_close(one);
}
CASE(tollbar_in_flight_bytes) {
    tollbar_in_flight_options options = TOLLBAR_IN_FLIGHT_OPTIONS_INIT;
    uint64_t bytes;
    (void)w;
    options.capacity = 100;
    RUN(tollbar_in_flight_bytes(&options, &bytes));
}

#define SEND_WINDOW(name, ...)                                                                                                                 \
    CASE(name) {                                                                                                                               \
        tollbar_send_window window = {0};                                                                                                      \
        tollbar_send_window_state state = TOLLBAR_SEND_WINDOW_STATE_INIT;                                                                      \
        uint32_t last = 0;                                                                                                                     \
        (void)w, (void)last, (void)state;                                                                                                      \
        (void)tollbar_send_window_resize(&window, 8);                                                                                          \
        (void)tollbar_send_window_acquire(&window, 2, &last);                                                                                  \
        RUN(name(&window, __VA_ARGS__));                                                                                                       \
    }
SEND_WINDOW(tollbar_send_window_acquire, 1, &last)
SEND_WINDOW(tollbar_send_window_release, 1)
SEND_WINDOW(tollbar_send_window_acknowledge, last)
SEND_WINDOW(tollbar_send_window_resize, 9)
SEND_WINDOW(tollbar_send_window_read, &state)

#define ADAPTIVE(name, ...)                                                                                                                    \
    CASE(name) {                                                                                                                               \
        tollbar_adaptive limit;                                                                                                                \
        tollbar_adaptive_options options = TOLLBAR_ADAPTIVE_OPTIONS_INIT;                                                                      \
        tollbar_adaptive_state state = TOLLBAR_ADAPTIVE_STATE_INIT;                                                                            \
        tollbar_ticket ticket = 0, other = 0;                                                                                                  \
        tollbar_in_flight *table = in_flight_of(w, &other);                                                                                    \
        (void)state, (void)options;                                                                                                            \
        (void)tollbar_adaptive_init(&limit, &options);                                                                                         \
        (void)tollbar_adaptive_acquire(&limit, &ticket);                                                                                       \
        RUN(name(&limit, __VA_ARGS__));                                                                                                        \
        tollbar_in_flight_close(table);                                                                                                        \
    }
ADAPTIVE(tollbar_adaptive_init, &options)
ADAPTIVE(tollbar_adaptive_acquire, &ticket)
ADAPTIVE(tollbar_adaptive_release, ticket, TOLLBAR_OUTCOME_ANSWERED, 1000000)
ADAPTIVE(tollbar_adaptive_release_at, ticket, TOLLBAR_OUTCOME_ANSWERED, 1000000, w->now)
ADAPTIVE(tollbar_adaptive_acquire_key, table, KEY, &ticket)
ADAPTIVE(tollbar_adaptive_release_key, table, KEY, other, TOLLBAR_OUTCOME_ANSWERED, 1000000)
ADAPTIVE(tollbar_adaptive_read, &state)
CASE(tollbar_adaptive_limit) {
    tollbar_adaptive limit = {{0}};
    (void)w;
    RUN(tollbar_adaptive_limit(&limit));
}

CASE(tollbar_route) {
    tollbar_node nodes[3] = {{"a", 1, 1, 0}, {"b", 1, 1, 0}, {"c", 1, 2, 0}};
    size_t node;
    RUN(tollbar_route(nodes, 3, KEY, 7, &node));
}
CASE(tollbar_prefix_parse) {
    tollbar_prefix prefix = TOLLBAR_PREFIX_INIT;
    (void)w;
    RUN(tollbar_prefix_parse("2001:db8::1", 11, 32, 64, &prefix));
}
CASE(tollbar_prefix_from_address) {
    static const unsigned char address[4] = {192, 0, 2, 1};
    tollbar_prefix prefix = TOLLBAR_PREFIX_INIT;
    (void)w;
    RUN(tollbar_prefix_from_address(address, 4, 32, 64, &prefix));
}
CASE(tollbar_network_parse) {
    tollbar_prefix prefix = TOLLBAR_PREFIX_INIT;
    (void)w;
    RUN(tollbar_network_parse("2001:db8::/32", 13, &prefix));
}
CASE(tollbar_prefix_of_client) {
    tollbar_prefix prefix = TOLLBAR_PREFIX_INIT, proxy = TOLLBAR_PREFIX_INIT;
    (void)w;
    (void)tollbar_network_parse("2001:db8::/32", 13, &proxy);
    RUN(tollbar_prefix_of_client("2001:db8::1", 11, "1.1.1.1, 192.0.2.1", 18, &proxy, 1, 32, 64, &prefix));
}

/* The fields of sixteen limits. */
#define HTTP(name, fourth)                                                                                                                     \
    CASE(name) {                                                                                                                               \
        tollbar_http_limit limits[16];                                                                                                         \
        tollbar_decision decision = TOLLBAR_DECISION_INIT;                                                                                     \
        char names[16];                                                                                                                        \
        size_t n, length;                                                                                                                      \
        (void)tollbar_limiter_check(w->limiter, 1, &decision);                                                                                 \
        for (n = 0; n < 16; n++) {                                                                                                             \
            tollbar_http_limit limit = {&names[n], 1, &w->spec, &decision, 5 * SEC, KEY};                                                      \
            names[n] = (char)('a' + n);                                                                                                        \
            limits[n] = limit;                                                                                                                 \
        }                                                                                                                                      \
        RUN(name(limits, 16, fourth buffer, sizeof buffer, &length));                                                                          \
    }
#define FIELDS TOLLBAR_HTTP_RETRY_AFTER | TOLLBAR_HTTP_LEGACY | TOLLBAR_HTTP_DRAFT_11, 1774857600 * SEC,
#define STATUS 429,
HTTP(tollbar_http_fields, FIELDS)
HTTP(tollbar_http_problem, STATUS)
CASE(tollbar_http_read) {
    tollbar_http_seen seen = TOLLBAR_HTTP_SEEN_INIT;
    (void)w;
    RUN(tollbar_http_read(refusal, sizeof refusal - 1, 1774857600 * SEC, &seen));
}
CASE(tollbar_metrics) {
    tollbar_metrics_source sources[2];
    size_t length;
    memset(sources, 0, sizeof sources);
    sources[0].name = "limiter", sources[0].name_length = 7, sources[0].limiter = w->limiter;
    sources[1].name = "table", sources[1].name_length = 5, sources[1].table = w->table;
    RUN(tollbar_metrics(sources, 2, 0, buffer, sizeof buffer, &length));
}
CASE(tollbar_times_begin) {
    tollbar_times times = {0};
    (void)w;
    RUN((tollbar_times_begin(&times), 0));
}
CASE(tollbar_times_end) {
    tollbar_times times = {0};
    (void)w;
    RUN((tollbar_times_end(&times, 1), 0));
}
CASE(tollbar_times_metrics) {
    static tollbar_times times;
    const tollbar_times_source source = {"limiter", 7, &times};
    size_t length;
    (void)w;
    RUN(tollbar_times_metrics(&source, 1, buffer, sizeof buffer, &length));
}
