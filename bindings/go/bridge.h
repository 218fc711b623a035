/* C functions between Go and tollbar.h. * Go passes handles as numbers and bytes as uint8_t *. From
 * these types cgo knows at compile time that it passes no Go pointer to a Go pointer, and leaves
 * out its check at run time, which costs more than the decision. */
#ifndef TOLLBAR_GO_BRIDGE_H
#define TOLLBAR_GO_BRIDGE_H

/* A build that lacks something stops here, with a message. The check looks for the library's
 * archive beside the repository's header, since the compiler does not know the linker's paths. */
#if !__has_include("tollbar.h") && defined(TOLLBAR_GO_INSTALLED)
#error "tollbar: pkg-config names a directory without tollbar.h; expected: the tollbar that `make install` has installed"
#elif !__has_include("tollbar.h")
#error "tollbar: ../../include/tollbar.h is not there, so this is a copy outside tollbar's repository (go mod vendor); run `make install` in the repository and build with -tags tollbar_installed"
#elif !defined(TOLLBAR_GO_INSTALLED) && !__has_include("../build/libtollbar.a")
#error "tollbar: ../../build/libtollbar.a is not there; run `make lib` in tollbar's repository, or, in a copy outside it, build with -tags tollbar_installed"
#endif

/* For limits that follow the latency, and for pacing. */
#define TOLLBAR_EXPERIMENTAL
#include "tollbar.h"

#define GO_LIMITER(handle) ((const tollbar_limiter *)(handle))
#define GO_TABLE(handle) ((const tollbar_table *)(handle))

/* An empty call, for the benchmark of a call's cost. */
static inline int32_t go_nothing(uintptr_t limiter) { return (int32_t)(limiter == 0); }

/* Refers to the symbol that a library of another ABI does not have. */
static inline uint32_t go_abi(void) { return tollbar_abi_1; }

/* ---- limiters ---- */

static inline int32_t go_limiter_new(const tollbar_policy_spec *spec, uint32_t clock, uint32_t credit, uintptr_t *out) {
    tollbar_limiter_options options = TOLLBAR_LIMITER_OPTIONS_INIT;
    tollbar_limiter *limiter = NULL;
    options.clock = clock;
    options.credit = credit;
    int32_t code = tollbar_limiter_new(spec, &options, &limiter);
    *out = (uintptr_t)limiter;
    return code;
}
static inline void go_limiter_free(uintptr_t limiter) { tollbar_limiter_free((tollbar_limiter *)limiter); }

static inline int32_t go_limiter_allow(uintptr_t limiter, uint64_t cost) {
    return tollbar_limiter_check(GO_LIMITER(limiter), cost, NULL);
}
static inline int32_t go_limiter_allow_at(uintptr_t limiter, uint64_t now, uint64_t cost) {
    return tollbar_limiter_check_at(GO_LIMITER(limiter), cost, now, NULL);
}
static inline int32_t go_limiter_check(uintptr_t limiter, uint64_t cost, tollbar_decision *out) {
    return tollbar_limiter_check(GO_LIMITER(limiter), cost, out);
}
static inline int32_t go_limiter_check_at(uintptr_t limiter, uint64_t now, uint64_t cost, tollbar_decision *out) {
    return tollbar_limiter_check_at(GO_LIMITER(limiter), cost, now, out);
}
static inline int32_t go_limiter_peek(uintptr_t limiter, uint64_t cost, tollbar_decision *out) {
    return tollbar_limiter_peek(GO_LIMITER(limiter), cost, out);
}
static inline int32_t go_limiter_peek_at(uintptr_t limiter, uint64_t now, uint64_t cost, tollbar_decision *out) {
    return tollbar_limiter_peek_at(GO_LIMITER(limiter), cost, now, out);
}
/* Takes permits that are there. It counts no decision if they are not. */
static inline int32_t go_limiter_take_now(uintptr_t limiter, uint64_t cost) {
    tollbar_decision peeked = TOLLBAR_DECISION_INIT;
    int32_t code = tollbar_limiter_peek(GO_LIMITER(limiter), cost, &peeked);
    return code != TOLLBAR_ALLOWED ? code : tollbar_limiter_check(GO_LIMITER(limiter), cost, NULL);
}
static inline int32_t go_limiter_many(uintptr_t limiter, const uint64_t *costs, size_t count, int32_t *results) {
    return tollbar_limiter_check_many(GO_LIMITER(limiter), costs, count, results);
}
static inline int32_t go_limiter_many_at(uintptr_t limiter, uint64_t now, const uint64_t *costs, size_t count,
                                         int32_t *results) {
    return tollbar_limiter_check_many_at(GO_LIMITER(limiter), costs, count, now, results);
}
static inline int32_t go_limiter_take(uintptr_t limiter, uint64_t most, uint64_t *taken) {
    return tollbar_limiter_take_up_to(GO_LIMITER(limiter), most, taken);
}
static inline int32_t go_limiter_take_at(uintptr_t limiter, uint64_t now, uint64_t most, uint64_t *taken) {
    return tollbar_limiter_take_up_to_at(GO_LIMITER(limiter), most, now, taken);
}
static inline int32_t go_limiter_charge(uintptr_t limiter, uint64_t cost, uint64_t *rest) {
    return tollbar_limiter_charge(GO_LIMITER(limiter), cost, rest);
}
static inline int32_t go_limiter_charge_at(uintptr_t limiter, uint64_t now, uint64_t cost, uint64_t *rest) {
    return tollbar_limiter_charge_at(GO_LIMITER(limiter), cost, now, rest);
}
static inline int32_t go_limiter_reserve(uintptr_t limiter, uint64_t cost, uint64_t patience,
    tollbar_reservation *booked) {
    return tollbar_limiter_reserve(GO_LIMITER(limiter), cost, patience, booked);
}
static inline int32_t go_limiter_reserve_at(uintptr_t limiter, uint64_t now, uint64_t cost, uint64_t patience,
                                            tollbar_reservation *booked) {
    return tollbar_limiter_reserve_at(GO_LIMITER(limiter), cost, patience, now, booked);
}
static inline int32_t go_limiter_set_policy(uintptr_t limiter, const tollbar_policy_spec *spec, uint32_t keep) {
    return tollbar_limiter_set_policy(GO_LIMITER(limiter), spec, keep);
}
static inline int32_t go_limiter_set_policy_at(uintptr_t limiter, uint64_t now, const tollbar_policy_spec *spec,
                                               uint32_t keep) {
    return tollbar_limiter_set_policy_at(GO_LIMITER(limiter), spec, keep, now);
}
static inline int32_t go_limiter_cancel(uintptr_t limiter, const tollbar_reservation *booked, uint64_t *back) {
    return tollbar_limiter_cancel(GO_LIMITER(limiter), booked, back);
}
static inline int32_t go_limiter_cancel_at(uintptr_t limiter, uint64_t now, const tollbar_reservation *booked,
    uint64_t *back) {
    return tollbar_limiter_cancel_at(GO_LIMITER(limiter), booked, now, back);
}
static inline int32_t go_limiter_now(uintptr_t limiter, uint64_t *now) {
    return tollbar_limiter_now(GO_LIMITER(limiter), now);
}
static inline int32_t go_limiter_reset(uintptr_t limiter) { return tollbar_limiter_reset(GO_LIMITER(limiter)); }
static inline int32_t go_limiter_state(uintptr_t limiter, tollbar_limiter_state *out) {
    return tollbar_limiter_get_state(GO_LIMITER(limiter), out);
}

static inline int32_t go_limiter_check_class(uintptr_t limiter, int at, uint64_t now, uint64_t cost,
    const char *class_name,
                                             tollbar_decision *out) {
    return at ? tollbar_limiter_check_class_at(GO_LIMITER(limiter), cost, class_name, now, out)
              : tollbar_limiter_check_class(GO_LIMITER(limiter), cost, class_name, out);
}

/* ---- tables ---- */

/* The specs lie in one array, and tollbar.h takes an array of pointers. With a path of NULL the
 * table is in this process's own memory. */
static inline int32_t go_table_open(const char *path, const tollbar_table_options *options,
                                    const tollbar_policy_spec *specs, size_t count, uintptr_t *out) {
    const tollbar_policy_spec *policies[128];
    tollbar_table *table = NULL;
    int32_t code;
    size_t i;
    if (count > 128)
        return TOLLBAR_E_POLICY_COUNT;
    for (i = 0; i < count; i++)
        policies[i] = &specs[i];
    if (path == NULL)
        code = tollbar_table_new(policies, count, options, &table);
    else
        code = tollbar_table_open(path, count == 0 ? NULL : policies, count, options, &table);
    *out = (uintptr_t)table;
    return code;
}
static inline void go_table_free(uintptr_t table) { tollbar_table_close((tollbar_table *)table); }

static inline int32_t go_table_check(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length, uint64_t cost,
                                     tollbar_decision *out) {
    return tollbar_table_check(GO_TABLE(table), policy, key, length, cost, out);
}
static inline int32_t go_table_check_at(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length,
                                        uint64_t now, uint64_t cost, tollbar_decision *out) {
    return tollbar_table_check_at(GO_TABLE(table), policy, key, length, cost, now, out);
}
/* Takes permits that are there. It counts no decision if they are not. */
static inline int32_t go_table_take_now(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length,
    uint64_t cost) {
    tollbar_decision peeked = TOLLBAR_DECISION_INIT;
    int32_t code = tollbar_table_peek(GO_TABLE(table), policy, key, length, cost, &peeked);
    return code != TOLLBAR_ALLOWED ? code : tollbar_table_check(GO_TABLE(table), policy, key, length, cost, NULL);
}
static inline int32_t go_table_peek(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length, uint64_t cost,
                                    tollbar_decision *out) {
    return tollbar_table_peek(GO_TABLE(table), policy, key, length, cost, out);
}
static inline int32_t go_table_peek_at(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length,
    uint64_t now,
                                       uint64_t cost, tollbar_decision *out) {
    return tollbar_table_peek_at(GO_TABLE(table), policy, key, length, cost, now, out);
}
static inline int32_t go_table_check_class(uintptr_t table, uint32_t policy, const uint8_t *key, size_t key_length,
    int at, uint64_t now,
                                           uint64_t cost, const char *class_name, tollbar_decision *out) {
    return at ? tollbar_table_check_class_at(GO_TABLE(table), policy, key, key_length, cost, class_name, now, out)
              : tollbar_table_check_class(GO_TABLE(table), policy, key, key_length, cost, class_name, out);
}
static inline int32_t go_table_charge(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length,
    uint64_t cost,
                                      uint64_t *rest) {
    return tollbar_table_charge(GO_TABLE(table), policy, key, length, cost, rest);
}
static inline int32_t go_table_charge_at(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length,
    uint64_t now,
                                         uint64_t cost, uint64_t *rest) {
    return tollbar_table_charge_at(GO_TABLE(table), policy, key, length, cost, now, rest);
}
static inline int32_t go_table_take(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length, uint64_t most,
                                    uint64_t *taken) {
    return tollbar_table_take_up_to(GO_TABLE(table), policy, key, length, most, taken);
}
static inline int32_t go_table_reserve(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length,
    uint64_t cost,
                                       uint64_t patience, tollbar_reservation *booked) {
    return tollbar_table_reserve(GO_TABLE(table), policy, key, length, cost, patience, booked);
}
static inline int32_t go_table_cancel(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length,
                                      const tollbar_reservation *booked, uint64_t *back) {
    return tollbar_table_cancel(GO_TABLE(table), policy, key, length, booked, back);
}
static inline int32_t go_table_reserve_at(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length,
    uint64_t now,
                                          uint64_t cost, uint64_t patience, tollbar_reservation *booked) {
    return tollbar_table_reserve_at(GO_TABLE(table), policy, key, length, cost, patience, now, booked);
}
static inline int32_t go_table_cancel_at(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length,
    uint64_t now,
                                         const tollbar_reservation *booked, uint64_t *back) {
    return tollbar_table_cancel_at(GO_TABLE(table), policy, key, length, booked, now, back);
}
static inline int32_t go_table_take_estimate(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length,
    uint64_t estimate,
                                             tollbar_receipt *receipt, tollbar_decision *out) {
    return tollbar_table_take(GO_TABLE(table), policy, key, length, estimate, receipt, out);
}
static inline int32_t go_table_take_estimate_at(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length,
    uint64_t now,
                                                uint64_t estimate, tollbar_receipt *receipt, tollbar_decision *out) {
    return tollbar_table_take_at(GO_TABLE(table), policy, key, length, estimate, now, receipt, out);
}
static inline int32_t go_table_settle(uintptr_t table, const tollbar_receipt *receipt, uint64_t cost,
    tollbar_settled *out) {
    return tollbar_table_settle(GO_TABLE(table), receipt, cost, out);
}
static inline int32_t go_table_settle_at(uintptr_t table, const tollbar_receipt *receipt, uint64_t now, uint64_t cost,
                                         tollbar_settled *out) {
    return tollbar_table_settle_at(GO_TABLE(table), receipt, cost, now, out);
}
static inline int32_t go_table_settle_in_full(uintptr_t table, const tollbar_receipt *receipt, uint64_t cost,
    tollbar_settled *out) {
    return tollbar_table_settle_in_full(GO_TABLE(table), receipt, cost, out);
}
static inline int32_t go_table_hash(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length,
                                    uint64_t *hash) {
    return tollbar_table_hash(GO_TABLE(table), policy, key, length, hash);
}
/* The answer to a yes or no question as Go's code: nil for yes, ErrDenied for no. */
static inline int32_t go_answer(int32_t code) {
    return code < 0 ? code : code == TOLLBAR_YES ? TOLLBAR_ALLOWED : TOLLBAR_DENIED;
}
static inline int32_t go_table_reset(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length) {
    return go_answer(tollbar_table_reset(GO_TABLE(table), policy, key, length));
}
static inline int32_t go_table_reset_at(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length,
    uint64_t now) {
    return go_answer(tollbar_table_reset_at(GO_TABLE(table), policy, key, length, now));
}
static inline int32_t go_table_exempt(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length) {
    return tollbar_table_exempt(GO_TABLE(table), policy, key, length);
}
static inline int32_t go_table_unexempt(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length) {
    return go_answer(tollbar_table_unexempt(GO_TABLE(table), policy, key, length));
}

/* A request of a batch, whose key ends at `end` of the batch's bytes and begins where the one
 * before ended. */
typedef struct go_item {
    uint64_t end;
    uint64_t cost;
    uint32_t policy;
    uint32_t class_number;
} go_item;

enum { GO_CHUNK = 128 };

/* All keys come in one block of memory, so that no Go memory points to Go memory. This function
 * makes the pointers, one chunk at a time, and reads the clock once for all. */
static inline int32_t go_table_many(uintptr_t table, int at, uint64_t now, const uint8_t *keys, const go_item *items,
                                    size_t count, int32_t *results) {
    tollbar_request requests[GO_CHUNK];
    uint64_t begin = 0;
    size_t done = 0;
    if (!at) {
        int32_t code = tollbar_table_now(GO_TABLE(table), &now);
        if (code != 0)
            return code;
    }
    while (done < count) {
        size_t n = count - done < GO_CHUNK ? count - done : GO_CHUNK, i;
        int32_t code;
        for (i = 0; i < n; i++) {
            const go_item *item = &items[done + i];
            requests[i].key = keys + begin;
            requests[i].length = item->end - begin;
            requests[i].cost = item->cost;
            requests[i].policy = item->policy;
            requests[i].class_number = item->class_number;
            begin = item->end;
        }
        code = tollbar_table_check_many_at(GO_TABLE(table), requests, n, now, results + done);
        if (code != 0)
            return code;
        done += n;
    }
    return 0;
}

/* The same batch `rounds` times, as a C program makes it, with requests that point to the keys. A
 * benchmark compares go_table_many with it. */
static inline int32_t go_table_many_in_c(uintptr_t table, const uint8_t *keys, const go_item *items, size_t count,
    int32_t *results,
                                         size_t rounds) {
    tollbar_request requests[GO_CHUNK];
    uint64_t begin = 0;
    int32_t code = 0;
    for (size_t i = 0; i < count && i < GO_CHUNK; i++) {
        const go_item *item = &items[i];
        requests[i].key = keys + begin, requests[i].length = item->end - begin;
        requests[i].cost = item->cost, requests[i].policy = item->policy, requests[i].class_number = item->class_number;
        begin = item->end;
    }
    while (rounds-- > 0 && code == 0)
        code = tollbar_table_check_many(GO_TABLE(table), requests, count < GO_CHUNK ? count : GO_CHUNK, results);
    return code;
}

/* One limit of several. A table's key ends at `end` of the call's bytes and begins where the one
 * before ended. */
typedef struct go_limit {
    uintptr_t limiter;
    uintptr_t table;
    uint64_t end;
    uint64_t cost;
    uint32_t policy;
    uint32_t most;
    uintptr_t in_flight;
    /* Gets the permit's ticket if the request is admitted. */
    uint64_t ticket;
    /* Empty: none. */
    char class_name[TOLLBAR_CLASS_NAME_SIZE];
} go_limit;

static inline int32_t go_take_many(const uint8_t *keys, go_limit *items, size_t count, int at, uint64_t now,
                                   tollbar_decision *each, tollbar_taken *out) {
    tollbar_limit limits[TOLLBAR_LIMITS_MOST];
    uint64_t begin = 0;
    size_t i;
    if (count > TOLLBAR_LIMITS_MOST)
        return TOLLBAR_E_LIMITS;
    for (i = 0; i < count; i++) {
        limits[i].limiter = GO_LIMITER(items[i].limiter);
        limits[i].table = GO_TABLE(items[i].table);
        limits[i].key = keys + begin;
        limits[i].length = items[i].end - begin;
        limits[i].cost = items[i].cost;
        limits[i].policy = items[i].policy;
        limits[i].most = items[i].most;
        limits[i].in_flight = (const tollbar_in_flight *)items[i].in_flight;
        limits[i].ticket = items[i].in_flight == 0 ? NULL : &items[i].ticket;
        limits[i].class_name = items[i].class_name[0] == '\0' ? NULL : items[i].class_name;
        begin = items[i].end;
    }
    return at ? tollbar_take_many_at(limits, count, now, each, out) : tollbar_take_many(limits, count, each, out);
}

static inline int32_t go_table_now(uintptr_t table, uint64_t *now) { return tollbar_table_now(GO_TABLE(table), now); }
static inline int32_t go_table_next(uintptr_t table, uint64_t from, uint64_t now, tollbar_table_entry *out) {
    return go_answer(tollbar_table_next(GO_TABLE(table), from, now, out));
}
static inline int32_t go_table_sweep(uintptr_t table, uint64_t from, uint64_t most, uint64_t now,
                                     tollbar_table_sweep_result *out) {
    return tollbar_table_sweep(GO_TABLE(table), from, most, now, out);
}
static inline int32_t go_table_add_policy(uintptr_t table, const tollbar_policy_spec *spec, uint32_t *number) {
    return tollbar_table_add_policy(GO_TABLE(table), spec, number);
}

static inline int32_t go_table_find_or_add_policy(uintptr_t table, const tollbar_policy_spec *spec, uint32_t *number) {
    return tollbar_table_find_or_add_policy(GO_TABLE(table), spec, number);
}
static inline int32_t go_table_set_policy(uintptr_t table, uint32_t number, const tollbar_policy_spec *spec,
    uint32_t keep) {
    return tollbar_table_set_policy(GO_TABLE(table), number, spec, keep);
}
static inline int32_t go_table_set_override(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length,
                                            const tollbar_policy_spec *spec, uint32_t keep) {
    return tollbar_table_set_override(GO_TABLE(table), policy, key, length, spec, keep);
}
static inline int32_t go_table_clear_override(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length) {
    return go_answer(tollbar_table_clear_override(GO_TABLE(table), policy, key, length));
}
static inline int32_t go_table_get_override(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length,
                                            tollbar_policy_spec *out) {
    return go_answer(tollbar_table_get_override(GO_TABLE(table), policy, key, length, out));
}
static inline int32_t go_table_next_override(uintptr_t table, uint64_t from, tollbar_table_override *out,
                                             tollbar_policy_spec *spec) {
    return tollbar_table_next_override(GO_TABLE(table), from, out, spec);
}
static inline int32_t go_table_record_refusals(uintptr_t table, uint32_t on) {
    return tollbar_table_record_refusals(GO_TABLE(table), on);
}
static inline int32_t go_table_records_refusals(uintptr_t table) {
    return tollbar_table_records_refusals(GO_TABLE(table));
}
static inline int32_t go_table_top_refused(uintptr_t table, uint64_t now, tollbar_table_refused *top, size_t most,
    size_t *count) {
    return tollbar_table_top_refused(GO_TABLE(table), now, top, most, count);
}
static inline int32_t go_table_get_policy(uintptr_t table, uint32_t number, tollbar_policy_spec *out) {
    return tollbar_table_get_policy(GO_TABLE(table), number, out);
}
static inline int32_t go_table_counts(uintptr_t table, uint32_t policy, tollbar_counts *out) {
    return tollbar_table_get_counts(GO_TABLE(table), policy, out);
}
static inline int32_t go_table_stats(uintptr_t table, tollbar_table_stats *out) {
    return tollbar_table_get_stats(GO_TABLE(table), out);
}
static inline int32_t go_table_sync(uintptr_t table) { return tollbar_table_sync(GO_TABLE(table)); }
static inline int32_t go_table_health(uintptr_t table, int repair, uint64_t now, tollbar_table_health *out) {
    return repair ? tollbar_table_repair(GO_TABLE(table), now, out) : tollbar_table_validate(GO_TABLE(table), now, out);
}
static inline int32_t go_table_copy(uintptr_t table, uintptr_t from, uint64_t now, tollbar_table_copy_result *out) {
    return tollbar_table_copy(GO_TABLE(table), GO_TABLE(from), now, out);
}

/* ---- in flight ---- */

#define GO_IN_FLIGHT(handle) ((const tollbar_in_flight *)(handle))

/* A path of NULL: a table in this process's own memory. A capacity of 0: whatever table is in the
 * file. */
static inline int32_t go_in_flight_open(const char *path, const tollbar_in_flight_options *options, uintptr_t *out) {
    tollbar_in_flight *table = NULL;
    int32_t code = path == NULL ? tollbar_in_flight_new(options, &table)
                                : tollbar_in_flight_open(path, options->capacity == 0 ? NULL : options, &table);
    *out = (uintptr_t)table;
    return code;
}
static inline void go_in_flight_close(uintptr_t table) { tollbar_in_flight_close((tollbar_in_flight *)table); }
static inline int32_t go_in_flight_acquire(uintptr_t table, const uint8_t *key, size_t length, uint32_t limit,
    uint64_t *ticket) {
    return tollbar_in_flight_acquire(GO_IN_FLIGHT(table), key, length, limit, ticket);
}
static inline int32_t go_in_flight_release(uintptr_t table, uint64_t ticket) {
    return tollbar_in_flight_release(GO_IN_FLIGHT(table), ticket);
}
static inline int32_t go_in_flight_count(uintptr_t table, const uint8_t *key, size_t length, uint64_t *count) {
    return tollbar_in_flight_count(GO_IN_FLIGHT(table), key, length, count);
}

static inline int32_t go_adaptive_acquire(tollbar_adaptive *limit,
    uint64_t *ticket) { return tollbar_adaptive_acquire(limit, ticket); }
static inline int32_t go_adaptive_release(tollbar_adaptive *limit, uint64_t ticket, uint32_t outcome,
    uint64_t latency) {
    return tollbar_adaptive_release(limit, ticket, outcome, latency);
}
static inline int32_t go_adaptive_acquire_key(tollbar_adaptive *limit, uintptr_t table, const uint8_t *key,
    size_t length,
                                              uint64_t *ticket) {
    return tollbar_adaptive_acquire_key(limit, GO_IN_FLIGHT(table), key, length, ticket);
}
static inline int32_t go_adaptive_release_key(tollbar_adaptive *limit, uintptr_t table, const uint8_t *key,
    size_t length,
                                              uint64_t ticket, uint32_t outcome, uint64_t latency) {
    return tollbar_adaptive_release_key(limit, GO_IN_FLIGHT(table), key, length, ticket, outcome, latency);
}

/* ---- pacing: tickets are passed by value, so that no Go memory is involved ---- */

#define GO_PACING(handle) ((tollbar_pacing *)(handle))

static inline int32_t go_pacing_new(const tollbar_pacing_options *options, size_t hosts, uintptr_t *out) {
    tollbar_pacing *pacing = NULL;
    int32_t code = tollbar_pacing_new(options, hosts, &pacing);
    *out = (uintptr_t)pacing;
    return code;
}
static inline void go_pacing_free(uintptr_t pacing) { tollbar_pacing_free(GO_PACING(pacing)); }
static inline int32_t go_pacing_acquire(uintptr_t pacing, const uint8_t *host, size_t length, uint64_t now,
    tollbar_pacing_ticket *out) {
    return tollbar_pacing_acquire_at(GO_PACING(pacing), (const char *)host, length, now, out);
}
static inline uint64_t go_pacing_wait(uintptr_t pacing, tollbar_pacing_ticket ticket, uint64_t now) {
    uint64_t wait = 0;
    tollbar_pacing_wait_at(GO_PACING(pacing), &ticket, now, &wait);
    return wait;
}
static inline int32_t go_pacing_respond(uintptr_t pacing, tollbar_pacing_ticket ticket, uint32_t status,
    const uint8_t *header,
                                        size_t length, uint64_t utc, uint64_t now) {
    return tollbar_pacing_respond_at(GO_PACING(pacing), &ticket, status, (const char *)header, length, utc, now);
}
static inline int32_t go_pacing_leave(uintptr_t pacing, tollbar_pacing_ticket ticket, uint64_t now) {
    return tollbar_pacing_leave_at(GO_PACING(pacing), &ticket, now);
}
static inline int32_t go_pacing_read(uintptr_t pacing, const uint8_t *host, size_t length, uint64_t now,
    tollbar_pacing_state *out) {
    return tollbar_pacing_read_at(GO_PACING(pacing), (const char *)host, length, now, out);
}

/* ---- header fields ---- */

static inline int32_t go_table_more(uintptr_t table, uint32_t policy, const uint8_t *key, size_t length, uint64_t cost,
                                    const tollbar_decision *decision, uint64_t *more) {
    return tollbar_table_more_after(GO_TABLE(table), policy, key, length, cost, decision, more);
}
static inline int32_t go_limiter_more(uintptr_t limiter, uint64_t cost, const tollbar_decision *decision,
    uint64_t *more) {
    return tollbar_limiter_more_after(GO_LIMITER(limiter), cost, decision, more);
}

/* A limit without its name and partition, which are one after the other in `text`. */
typedef struct {
    tollbar_policy_spec policy;
    tollbar_decision decision;
    uint64_t more;
    size_t name, partition;
} go_http_limit;

/* The fields `what`, with `number` the time since 1970; for `what` 0 the problem, with `number` its
 * status. */
static inline int32_t go_http_write(const go_http_limit *from, const uint8_t *text, size_t count, uint32_t what,
    uint64_t number,
                                    uint8_t *buffer, size_t capacity, size_t *length) {
    tollbar_http_limit limits[TOLLBAR_LIMITS_MOST];
    for (size_t i = 0; i < count && i < TOLLBAR_LIMITS_MOST; i++) {
        const go_http_limit *one = from + i;
        limits[i].name = (const char *)text, limits[i].name_length = one->name;
        limits[i].partition = text + one->name, limits[i].partition_length = one->partition;
        limits[i].policy = &one->policy, limits[i].decision = &one->decision, limits[i].more_after_ns = one->more;
        text += one->name + one->partition;
    }
    return what == 0 ? tollbar_http_problem(limits, count, (uint32_t)number, (char *)buffer, capacity, length)
                     : tollbar_http_fields(limits, count, what, number, (char *)buffer, capacity, length);
}
static inline int32_t go_http_read(const uint8_t *text, size_t length, uint64_t utc, tollbar_http_seen *out) {
    return tollbar_http_read((const char *)text, length, utc, out);
}

/* ---- metrics ---- */

/* A limiter or a table, and the length of its name. The other handle is 0. The names follow each
 * other in `text`. */
typedef struct {
    uintptr_t limiter, table;
    size_t name;
} go_metrics_source;

static inline int32_t go_metrics(const go_metrics_source *from, const uint8_t *text, size_t count, uint32_t format,
    uint8_t *buffer,
                                 size_t capacity, size_t *length) {
    tollbar_metrics_source sources[TOLLBAR_METRICS_MOST];
    for (size_t i = 0; i < count && i < TOLLBAR_METRICS_MOST; i++) {
        sources[i].name = (const char *)text, sources[i].name_length = from[i].name;
        sources[i].limiter = GO_LIMITER(from[i].limiter), sources[i].table = GO_TABLE(from[i].table),
    sources[i].flags = 0;
        text += from[i].name;
    }
    return tollbar_metrics(sources, count, format, (char *)buffer, capacity, length);
}

static inline int32_t go_hierarchy_new(const char *rate, uint64_t burst, uint32_t classes, uint32_t policy,
    uintptr_t *out) {
    tollbar_hierarchy *made = NULL;
    int32_t code = tollbar_hierarchy_new(rate, burst, classes, policy, &made);
    *out = (uintptr_t)made;
    return code;
}
static inline void go_hierarchy_free(uintptr_t of) { tollbar_hierarchy_free((tollbar_hierarchy *)of); }
static inline int32_t go_hierarchy_add(uintptr_t of, uint32_t parent, const char *name, const char *guaranteed,
    const char *ceiling,
                                       uint32_t keys, uint32_t *number) {
    return tollbar_hierarchy_add((tollbar_hierarchy *)of, parent, name, guaranteed, ceiling, keys, number);
}
static inline int32_t go_hierarchy_take(uintptr_t of, uintptr_t table, uint32_t leaf, const uint8_t *key,
    size_t length, uint64_t cost, int at,
                                        uint64_t now, tollbar_share *share) {
    const tollbar_hierarchy *tree = (const tollbar_hierarchy *)of;
    const tollbar_table *nodes = (const tollbar_table *)table;
    return at ? tollbar_hierarchy_take_at(tree, nodes, leaf, key, length, cost, now, share)
              : tollbar_hierarchy_take(tree, nodes, leaf, key, length, cost, share);
}

#endif
