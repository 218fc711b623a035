/* C functions between Go and tollbar_redis.h. Go passes handles as numbers and bytes as uint8_t *,
 * as in ../bridge.h. */
#ifndef TOLLBAR_GO_REDIS_BRIDGE_H
#define TOLLBAR_GO_REDIS_BRIDGE_H

/* ../bridge.h checks for everything else that a build may lack. */
#if !__has_include("tollbar_redis.h")
#error "tollbar/redis: tollbar_redis.h is not where tollbar.h is; `make install` puts both there"
#elif !defined(TOLLBAR_GO_INSTALLED) && !__has_include("../build/libtollbar-redis.a")
#error "tollbar/redis: build/libtollbar-redis.a of the repository is not there; run `make lib`, or, in a copy outside it, build with -tags tollbar_installed"
#endif

#include "tollbar_redis.h"

/* Refers to the symbol that a library of another ABI does not have. */
static inline uint32_t go_abi(void) { return tollbar_redis_abi_1; }

/* The text is one that libtollbar has accepted before. */
static inline int32_t go_spec(const uint8_t *policy, size_t length, tollbar_policy_spec *out) {
    return tollbar_policy_spec_parse((const char *)policy, length, out, NULL);
}

#define GO_LEASE(handle) ((const tollbar_lease *)(handle))

/* In this process's own memory: Go does not fork. */
static inline int32_t go_lease_new(const uint8_t *name, size_t length, const tollbar_policy_spec *spec,
                                   const tollbar_lease_options *options, uintptr_t *out) {
    tollbar_lease *lease = NULL;
    int32_t code = tollbar_lease_new((const char *)name, length, spec, options, &lease);
    *out = (uintptr_t)lease;
    return code;
}
static inline void go_lease_free(uintptr_t lease) { tollbar_lease_close((tollbar_lease *)lease); }
static inline int32_t go_lease_check(uintptr_t lease, const uint8_t *key, size_t length, uint64_t cost,
                                     tollbar_decision *out) {
    return tollbar_lease_check(GO_LEASE(lease), key, length, cost, out);
}
static inline int32_t go_lease_check_at(uintptr_t lease, const uint8_t *key, size_t length, uint64_t now, uint64_t cost,
                                        tollbar_decision *out) {
    return tollbar_lease_check_at(GO_LEASE(lease), key, length, cost, now, out);
}
static inline int32_t go_lease_peek(uintptr_t lease, const uint8_t *key, size_t length, uint64_t cost,
                                    tollbar_decision *out) {
    return tollbar_lease_peek(GO_LEASE(lease), key, length, cost, out);
}
static inline int32_t go_lease_poll(uintptr_t lease, const uint8_t *key, size_t length,
    tollbar_lease_request *request) {
    return tollbar_lease_poll(GO_LEASE(lease), key, length, request, NULL);
}
static inline uint64_t go_lease_now(uintptr_t lease) { return tollbar_lease_now(GO_LEASE(lease)); }
static inline int32_t go_lease_stats(uintptr_t lease, tollbar_lease_stats *out) {
    return tollbar_lease_get_stats(GO_LEASE(lease), out);
}

#define GO_CLIENT(handle) ((tollbar_lease_client *)(handle))
static void go_changed(void *client, uint32_t circuit) {
    (void)circuit;
    tollbar_lease_client_stop((tollbar_lease_client *)client);
}
/* A client that stops when the circuit of a lease changes. */
static inline int32_t go_client_new(uintptr_t lease, const uint8_t *url, size_t length, size_t *column,
                                    uintptr_t *out) {
    tollbar_lease_client *client = NULL;
    int32_t code = tollbar_lease_client_new(GO_LEASE(lease), (const char *)url, length, column, &client);
    *out = (uintptr_t)client;
    return code != 0 ? code : tollbar_lease_client_on_change(client, go_changed, client);
}
static inline int32_t go_client_add(uintptr_t client, uintptr_t lease) {
    return tollbar_lease_client_add(GO_CLIENT(client), GO_LEASE(lease));
}
static inline int32_t go_client_report(uintptr_t client, uintptr_t lease, uint32_t patience) {
    return tollbar_lease_client_report(GO_CLIENT(client), GO_LEASE(lease), patience);
}
static inline int32_t go_client_remove(uintptr_t client, uintptr_t lease, uint32_t patience) {
    return tollbar_lease_client_remove(GO_CLIENT(client), GO_LEASE(lease), patience);
}
/* Drives the client until it is stopped. This function does not call Go. */
static inline int32_t go_client_run(uintptr_t client) { return tollbar_lease_client_run(GO_CLIENT(client)); }
static inline void go_client_stop(uintptr_t client) { tollbar_lease_client_stop(GO_CLIENT(client)); }
static inline const char *go_client_lease_error(uintptr_t client, uintptr_t lease) {
    return tollbar_lease_client_lease_error(GO_CLIENT(client), GO_LEASE(lease));
}
static inline int32_t go_client_close(uintptr_t client, uint32_t patience) {
    return tollbar_lease_client_close(GO_CLIENT(client), patience);
}

static inline int32_t go_calls_new(uintptr_t lease, uintptr_t *out) {
    tollbar_lease_calls *calls = NULL;
    int32_t code = tollbar_lease_calls_new(GO_LEASE(lease), &calls);
    *out = (uintptr_t)calls;
    return code;
}
#define GO_CALLS(handle) ((tollbar_lease_calls *)(handle))
static inline int32_t go_calls_turn(uintptr_t calls, uint32_t flags, tollbar_lease_call *out) {
    return tollbar_lease_calls_turn(GO_CALLS(calls), flags, out);
}
static inline int32_t go_calls_answered(uintptr_t calls, const uint8_t *reply, size_t length) {
    return tollbar_lease_calls_answered(GO_CALLS(calls), reply, length);
}
static inline int32_t go_calls_refused(uintptr_t calls, const uint8_t *error, size_t length) {
    return tollbar_lease_calls_refused(GO_CALLS(calls), (const char *)error, length);
}
static inline int32_t go_calls_lost(uintptr_t calls, const uint8_t *why, size_t length) {
    return tollbar_lease_calls_lost(GO_CALLS(calls), (const char *)why, length);
}
static inline int32_t go_calls_wait(uintptr_t calls, uint32_t wait_ms) {
    return tollbar_lease_calls_wait(GO_CALLS(calls), wait_ms);
}
static inline const char *go_calls_error(uintptr_t calls) { return tollbar_lease_calls_error(GO_CALLS(calls)); }
static inline int32_t go_calls_close(uintptr_t calls) { return tollbar_lease_calls_close(GO_CALLS(calls)); }

#define GO_STORE_LIMIT(handle) ((tollbar_store_limit *)(handle))
static inline int32_t go_store_limit_new(const uint8_t *name, size_t length, const tollbar_policy_spec *spec,
                                         uintptr_t *out) {
    tollbar_store_limit *limit = NULL;
    int32_t code = tollbar_store_limit_new((const char *)name, length, spec, &limit);
    *out = (uintptr_t)limit;
    return code;
}
static inline void go_store_limit_free(uintptr_t limit) { tollbar_store_limit_free(GO_STORE_LIMIT(limit)); }
static inline int32_t go_store_ask(uintptr_t limit, uint32_t ask, const uint8_t *key, size_t length, uint64_t cost,
                                   tollbar_store_question *question) {
    return tollbar_store_ask(GO_STORE_LIMIT(limit), ask, key, length, cost, question);
}
static inline int32_t go_store_answer(uintptr_t limit, const tollbar_store_question *question, const int64_t *reply,
                                      size_t count, tollbar_decision *out, uint64_t *taken) {
    return tollbar_store_answer(GO_STORE_LIMIT(limit), question, reply, count, out, taken);
}

#endif
