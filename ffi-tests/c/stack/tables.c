/* Tables: requests, keys, policies, and what an operator does. */
#include "stack.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static void closed(tollbar_table *table) {
    tollbar_table_close(table);
}

/* Requests of a known key, a new key, a larger cost, and one that never passes. */
#define REQUEST(name, ...)                                                                                                                     \
    CASE(name) {                                                                                                                               \
        tollbar_decision decision = TOLLBAR_DECISION_INIT;                                                                                     \
        uint64_t number = 0;                                                                                                                   \
        (void)decision, (void)number;                                                                                                          \
        RUN(name(w->table, 0, KEY, 1, __VA_ARGS__));                                                                                           \
        RUN(name(w->table, 0, "a new key", 9, 1, __VA_ARGS__));                                                                                \
        RUN(name(w->table, 0, "own", 3, 1, __VA_ARGS__));                                                                                      \
        RUN(name(w->table, 0, "exempt", 6, 1, __VA_ARGS__));                                                                                   \
        RUN(name(w->table, 0, KEY, 60, __VA_ARGS__));                                                                                          \
        RUN(name(w->table, 0, KEY, 60, __VA_ARGS__));                                                                                          \
        RUN(name(w->table, 0, KEY, UINT64_MAX, __VA_ARGS__));                                                                                  \
    }
REQUEST(tollbar_table_check, &decision)
REQUEST(tollbar_table_check_at, w->now, &decision)
REQUEST(tollbar_table_peek, &decision)
REQUEST(tollbar_table_peek_at, w->now, &decision)
REQUEST(tollbar_table_check_leaving, 2, &decision)
REQUEST(tollbar_table_check_leaving_at, 2, w->now, &decision)
REQUEST(tollbar_table_check_class, "standard", &decision)
REQUEST(tollbar_table_check_class_at, "standard", w->now, &decision)
REQUEST(tollbar_table_charge, &number)
REQUEST(tollbar_table_charge_at, w->now, &number)
REQUEST(tollbar_table_take_up_to, &number)
REQUEST(tollbar_table_take_up_to_at, w->now, &number)
REQUEST(tollbar_table_wait, SEC / 500, &decision)

#define TAKE(name, ...)                                                                                                                        \
    CASE(name) {                                                                                                                               \
        tollbar_decision decision = TOLLBAR_DECISION_INIT;                                                                                     \
        tollbar_receipt receipt;                                                                                                               \
        RUN(name(w->table, 0, KEY, 1, __VA_ARGS__));                                                                                           \
        RUN(name(w->table, 0, "another new key", 15, 1, __VA_ARGS__));                                                                         \
    }
TAKE(tollbar_table_take, &receipt, &decision)
TAKE(tollbar_table_take_at, w->now, &receipt, &decision)

#define SETTLE(name, ...)                                                                                                                      \
    CASE(name) {                                                                                                                               \
        tollbar_decision decision = TOLLBAR_DECISION_INIT;                                                                                     \
        tollbar_settled settled = TOLLBAR_SETTLED_INIT;                                                                                        \
        tollbar_receipt receipt;                                                                                                               \
        uint64_t cost;                                                                                                                         \
        for (cost = 0; cost < 9; cost += 4)                                                                                                    \
            if (tollbar_table_take_at(w->table, 0, "settled", 7, 4, w->now, &receipt, &decision) == 0)                                         \
                RUN(name(w->table, &receipt, __VA_ARGS__));                                                                                    \
    }
SETTLE(tollbar_table_settle, cost, &settled)
SETTLE(tollbar_table_settle_at, cost, w->now, &settled)
SETTLE(tollbar_table_settle_in_full, cost, &settled)

#define BATCH(name, ...)                                                                                                                       \
    CASE(name) {                                                                                                                               \
        tollbar_request requests[64];                                                                                                          \
        int32_t results[64];                                                                                                                   \
        uint64_t keys[64];                                                                                                                     \
        size_t n;                                                                                                                              \
        for (n = 0; n < 64; n++) {                                                                                                             \
            tollbar_request request = {&keys[n], sizeof keys[n], 1, 0, 0};                                                                     \
            keys[n] = n * 1000;                                                                                                                \
            requests[n] = request;                                                                                                             \
        }                                                                                                                                      \
        RUN(name(w->table, requests, 64, __VA_ARGS__));                                                                                        \
    }
BATCH(tollbar_table_check_many, results)
BATCH(tollbar_table_check_many_at, w->now, results)

/* Sixteen limits: a limiter, permits in flight, and keys of the table. */
#define MANY(name, ...)                                                                                                                        \
    CASE(name) {                                                                                                                               \
        tollbar_in_flight_options options = TOLLBAR_IN_FLIGHT_OPTIONS_INIT;                                                                    \
        tollbar_in_flight *in_flight = NULL;                                                                                                   \
        tollbar_limit limits[16];                                                                                                              \
        tollbar_decision decisions[16];                                                                                                        \
        tollbar_taken taken = TOLLBAR_TAKEN_INIT;                                                                                              \
        tollbar_ticket ticket;                                                                                                                 \
        char names[16];                                                                                                                        \
        size_t n;                                                                                                                              \
        options.capacity = 100;                                                                                                                \
        (void)tollbar_in_flight_new(&options, &in_flight);                                                                                     \
        memset(limits, 0, sizeof limits);                                                                                                      \
        for (n = 0; n < 16; n++) {                                                                                                             \
            decisions[n] = (tollbar_decision)TOLLBAR_DECISION_INIT;                                                                            \
            names[n] = (char)n;                                                                                                                \
            limits[n].table = w->table, limits[n].key = &names[n], limits[n].length = 1, limits[n].cost = 1;                                   \
        }                                                                                                                                      \
        limits[14].table = NULL, limits[14].limiter = w->limiter;                                                                              \
        limits[15].table = NULL, limits[15].in_flight = in_flight, limits[15].most = 4, limits[15].ticket = &ticket;                           \
        limits[14].key = NULL, limits[14].length = 0;                                                                                          \
        RUN(name(limits, 16, __VA_ARGS__));                                                                                                    \
        RUN(name(limits, 2, __VA_ARGS__));                                                                                                     \
        tollbar_in_flight_close(in_flight);                                                                                                    \
    }
MANY(tollbar_take_many, decisions, &taken)
MANY(tollbar_take_many_at, w->now, decisions, &taken)

#define MORE(name, ...)                                                                                                                        \
    CASE(name) {                                                                                                                               \
        tollbar_decision decision = TOLLBAR_DECISION_INIT;                                                                                     \
        uint64_t more;                                                                                                                         \
        (void)tollbar_table_check_at(w->table, 0, KEY, 1, w->now, &decision);                                                                  \
        RUN(name(w->table, 0, KEY, 1, __VA_ARGS__));                                                                                           \
    }
MORE(tollbar_table_more_after, &decision, &more)
MORE(tollbar_table_more_after_at, w->now, &decision, &more)

CASE(tollbar_table_reserve) {
    tollbar_reservation booked;
    RUN(tollbar_table_reserve(w->table, 0, KEY, 1, SEC, &booked));
}
CASE(tollbar_table_reserve_at) {
    tollbar_reservation booked;
    RUN(tollbar_table_reserve_at(w->table, 0, KEY, 1, SEC, w->now, &booked));
}
CASE(tollbar_table_cancel) {
    tollbar_reservation booked;
    uint64_t back;
    if (tollbar_table_reserve(w->table, 0, KEY, 1, SEC, &booked) == 0)
        RUN(tollbar_table_cancel(w->table, 0, KEY, &booked, &back));
}
CASE(tollbar_table_cancel_at) {
    tollbar_reservation booked;
    uint64_t back;
    if (tollbar_table_reserve_at(w->table, 0, KEY, 1, SEC, w->now, &booked) == 0)
        RUN(tollbar_table_cancel_at(w->table, 0, KEY, &booked, w->now, &back));
}
CASE(tollbar_table_reset) {
    RUN(tollbar_table_reset(w->table, 0, KEY));
}
CASE(tollbar_table_reset_at) {
    RUN(tollbar_table_reset_at(w->table, 0, KEY, w->now));
}
CASE(tollbar_table_exempt) {
    RUN(tollbar_table_exempt(w->table, 1, KEY));
}
CASE(tollbar_table_unexempt) {
    RUN(tollbar_table_unexempt(w->table, 1, KEY));
}
CASE(tollbar_table_hash) {
    uint64_t hash;
    RUN(tollbar_table_hash(w->table, 0, KEY, &hash));
}
CASE(tollbar_table_now) {
    uint64_t now;
    RUN(tollbar_table_now(w->table, &now));
}

/* A policy of a key's own. */
CASE(tollbar_table_set_override) {
    tollbar_policy_spec spec = w->spec;
    spec.limit += 7;
    RUN(tollbar_table_set_override(w->table, 0, "set", 3, &spec, TOLLBAR_KEEP_COUNT));
}
CASE(tollbar_table_clear_override) {
    RUN(tollbar_table_clear_override(w->table, 0, "set", 3));
}
CASE(tollbar_table_get_override) {
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    RUN(tollbar_table_get_override(w->table, 0, "own", 3, &spec));
}
CASE(tollbar_table_next_override) {
    tollbar_table_override found = TOLLBAR_TABLE_OVERRIDE_INIT;
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    RUN(tollbar_table_next_override(w->table, 0, &found, &spec));
}

/* Policies. */
CASE(tollbar_table_add_policy) {
    uint32_t number;
    RUN(tollbar_table_add_policy(w->table, &w->spec, &number));
}
CASE(tollbar_table_find_or_add_policy) {
    tollbar_policy_spec spec = w->spec;
    uint32_t number;
    spec.limit += 5;
    RUN(tollbar_table_find_or_add_policy(w->table, &spec, &number));
    RUN(tollbar_table_find_or_add_policy(w->table, &spec, &number));
}
CASE(tollbar_table_set_policy) {
    tollbar_policy_spec spec = w->spec;
    spec.limit += 3;
    RUN(tollbar_table_set_policy(w->table, 0, &spec, TOLLBAR_KEEP_COUNT));
    RUN(tollbar_table_set_policy(w->table, 0, &w->spec, TOLLBAR_KEEP_TIME));
}
CASE(tollbar_table_get_policy) {
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    RUN(tollbar_table_get_policy(w->table, 0, &spec));
}

/* Counts and statistics. */
CASE(tollbar_table_get_counts) {
    tollbar_counts counts = TOLLBAR_COUNTS_INIT;
    RUN(tollbar_table_get_counts(w->table, 0, &counts));
}
CASE(tollbar_table_count_verdict) {
    RUN(tollbar_table_count_verdict(w->table, 0, TOLLBAR_DENIED, TOLLBAR_REASON_RATE));
}
CASE(tollbar_table_count_refusal) {
    RUN(tollbar_table_count_refusal(w->table, 0, "refused", 7, TOLLBAR_DENIED, TOLLBAR_REASON_RATE));
}
CASE(tollbar_table_get_stats) {
    tollbar_table_stats stats = TOLLBAR_TABLE_STATS_INIT;
    RUN(tollbar_table_get_stats(w->table, &stats));
}
CASE(tollbar_table_record_refusals) {
    RUN(tollbar_table_record_refusals(w->table, 1));
}
CASE(tollbar_table_records_refusals) {
    RUN(tollbar_table_records_refusals(w->table));
}
CASE(tollbar_table_top_refused) {
    static tollbar_table_refused refused[TOLLBAR_REFUSED_MOST];
    size_t count, n;
    for (n = 0; n < 200; n++)
        (void)tollbar_table_check_at(w->table, 0, "refused", 7, 60, w->now, NULL);
    for (n = 0; n < COUNT(refused); n++)
        refused[n] = (tollbar_table_refused)TOLLBAR_TABLE_REFUSED_INIT;
    RUN(tollbar_table_top_refused(w->table, w->now, refused, COUNT(refused), &count));
}

/* Keys, one after the other. */
CASE(tollbar_table_next) {
    tollbar_table_entry entry = TOLLBAR_TABLE_ENTRY_INIT;
    RUN(tollbar_table_next(w->table, 0, w->now, &entry));
}
CASE(tollbar_table_sweep) {
    tollbar_table_sweep_result result = TOLLBAR_TABLE_SWEEP_RESULT_INIT;
    RUN(tollbar_table_sweep(w->table, 0, UINT64_MAX, w->now, &result));
}
CASE(tollbar_table_validate) {
    tollbar_table_health health = TOLLBAR_TABLE_HEALTH_INIT;
    RUN(tollbar_table_validate(w->table, w->now, &health));
}
CASE(tollbar_table_repair) {
    tollbar_table_health health = TOLLBAR_TABLE_HEALTH_INIT;
    RUN(tollbar_table_repair(w->table, w->now, &health));
}
CASE(tollbar_table_copy) {
    tollbar_table_copy_result result = TOLLBAR_TABLE_COPY_RESULT_INIT;
    tollbar_table *to = NULL;
    if (tollbar_table_new(w->policies, w->count, &w->options, &to) == 0)
        RUN(tollbar_table_copy(to, w->table, w->now, &result));
    tollbar_table_close(to);
}

/* Making and opening. */
CASE(tollbar_table_bytes) {
    uint64_t bytes;
    RUN(tollbar_table_bytes(w->policies, w->count, &w->options, &bytes));
}
#define MAKES(name, ...)                                                                                                                       \
    CASE(name) {                                                                                                                               \
        tollbar_table *table = NULL;                                                                                                           \
        RUN(name(w->policies, w->count, &w->options, __VA_ARGS__));                                                                            \
        closed(table);                                                                                                                         \
    }
MAKES(tollbar_table_new, &table)
MAKES(tollbar_table_new_shared, &table)
CASE(tollbar_table_new_sealed) {
    tollbar_table *table = NULL;
    int fd = -1;
    RUN(tollbar_table_new_sealed(w->policies, w->count, &w->options, &fd, &table));
    closed(table);
    close(fd);
}
CASE(tollbar_table_open_fd) {
    tollbar_table *table = NULL, *again = NULL;
    int fd = -1;
    (void)tollbar_table_new_sealed(w->policies, w->count, &w->options, &fd, &table);
    RUN(tollbar_table_open_fd(fd, &again));
    closed(again);
    closed(table);
    close(fd);
}
CASE(tollbar_table_open) {
    int n;
    unlink(w->path);
    /* The first makes the file, the second opens it, and the third opens any table. */
    for (n = 0; n < 3; n++) {
        tollbar_table *table = NULL;
        RUN(tollbar_table_open(w->path, n == 2 ? NULL : w->policies, n == 2 ? 0 : w->count, n == 2 ? NULL : &w->options, &table));
        closed(table);
    }
    unlink(w->path);
}
CASE(tollbar_table_sync) {
    tollbar_table *table = NULL;
    unlink(w->path);
    if (tollbar_table_open(w->path, w->policies, w->count, &w->options, &table) == 0)
        RUN(tollbar_table_sync(table));
    closed(table);
    unlink(w->path);
}
CASE(tollbar_table_init_in) {
    tollbar_table *table = NULL;
    RUN(tollbar_table_init_in(memory, sizeof *memory, w->policies, w->count, &w->options, &table));
    closed(table);
}
CASE(tollbar_table_attach) {
    tollbar_table *table = NULL, *again = NULL;
    (void)tollbar_table_init_in(memory, sizeof *memory, w->policies, w->count, &w->options, &table);
    RUN(tollbar_table_attach(memory, sizeof *memory, &again));
    closed(again);
    closed(table);
}
CASE(tollbar_table_set_hot_keys) {
    tollbar_table *table = NULL;
    (void)tollbar_table_new(w->policies, w->count, &w->options, &table);
    RUN(tollbar_table_set_hot_keys(table, 64));
    closed(table);
}
CASE(tollbar_table_close) {
    tollbar_table *table = NULL;
    (void)tollbar_table_new(w->policies, w->count, &w->options, &table);
    RUN((tollbar_table_close(table), 0));
}

/* A hierarchy, whose classes are keys of a table of its policy. */
static tollbar_hierarchy *hierarchy_of(uint32_t *leaf) {
    tollbar_hierarchy *hierarchy = NULL;
    uint32_t tenant = 0;
    if (tollbar_hierarchy_new("1000000/s", 1000000000, 4, 0, &hierarchy) != 0)
        return NULL;
    (void)tollbar_hierarchy_add(hierarchy, 0, "tenant", "1000/s", "", 1, &tenant);
    (void)tollbar_hierarchy_add(hierarchy, tenant, "users", "", "", 2, leaf);
    return hierarchy;
}
CASE(tollbar_hierarchy_new) {
    tollbar_hierarchy *hierarchy = NULL;
    (void)w;
    RUN(tollbar_hierarchy_new("1000000/s", 1000000000, 4, 0, &hierarchy));
    tollbar_hierarchy_free(hierarchy);
}
CASE(tollbar_hierarchy_free) {
    uint32_t leaf;
    (void)w;
    RUN((tollbar_hierarchy_free(hierarchy_of(&leaf)), 0));
}
CASE(tollbar_hierarchy_add) {
    uint32_t leaf = 0, more;
    tollbar_hierarchy *hierarchy = hierarchy_of(&leaf);
    (void)w;
    RUN(tollbar_hierarchy_add(hierarchy, 0, "other", "100/s", "1000/s", 1, &more));
    tollbar_hierarchy_free(hierarchy);
}
static tollbar_table *nodes(void) {
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    const tollbar_policy_spec *policies[1] = {&spec};
    tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(100);
    tollbar_table *table = NULL;
    (void)tollbar_policy_spec_parse(TOLLBAR_HIERARCHY_POLICY, strlen(TOLLBAR_HIERARCHY_POLICY), &spec, NULL);
    (void)tollbar_table_new(policies, 1, &options, &table);
    return table;
}
#define SHARE(name, ...)                                                                                                                       \
    CASE(name) {                                                                                                                               \
        uint32_t leaf = 0;                                                                                                                     \
        tollbar_hierarchy *hierarchy = hierarchy_of(&leaf);                                                                                    \
        tollbar_table *table = nodes();                                                                                                        \
        tollbar_share share = TOLLBAR_SHARE_INIT;                                                                                              \
        RUN(name(hierarchy, table, leaf, KEY, 1, __VA_ARGS__));                                                                                \
        RUN(name(hierarchy, table, leaf, KEY, 1, __VA_ARGS__));                                                                                \
        tollbar_table_close(table);                                                                                                            \
        tollbar_hierarchy_free(hierarchy);                                                                                                     \
    }
SHARE(tollbar_hierarchy_take, &share)
SHARE(tollbar_hierarchy_take_at, w->now, &share)
