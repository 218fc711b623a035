/* The C side of the bench: what a C program would write. */
#include "bench.h"

#define AT(i) (UINT64_C(1000000000) + (uint64_t)(i))

uint64_t c_limiter_check(const tollbar_limiter *limiter, int count) {
    uint64_t yes = 0;
    int i;
    for (i = 0; i < count; i++)
        yes += tollbar_limiter_check(limiter, 1, NULL) == TOLLBAR_ALLOWED;
    return yes;
}

uint64_t c_limiter_check_at(const tollbar_limiter *limiter, int count) {
    uint64_t yes = 0;
    int i;
    for (i = 0; i < count; i++)
        yes += tollbar_limiter_check_at(limiter, 1, AT(i), NULL) == TOLLBAR_ALLOWED;
    return yes;
}

uint64_t c_limiter_decide(const tollbar_limiter *limiter, int count) {
    uint64_t yes = 0;
    int i;
    for (i = 0; i < count; i++) {
        tollbar_decision decision = TOLLBAR_DECISION_INIT;
        yes += tollbar_limiter_check(limiter, 1, &decision) == TOLLBAR_ALLOWED && decision.remaining != 0;
    }
    return yes;
}

uint64_t c_table_check(const tollbar_table *table, int count) {
    uint64_t yes = 0;
    int i;
    for (i = 0; i < count; i++)
        yes += tollbar_table_check(table, 0, bench_keys[i % KEYS], KEY_LENGTH, 1, NULL) == TOLLBAR_ALLOWED;
    return yes;
}

uint64_t c_table_decide(const tollbar_table *table, int count) {
    uint64_t yes = 0;
    int i;
    for (i = 0; i < count; i++) {
        tollbar_decision decision = TOLLBAR_DECISION_INIT;
        yes += tollbar_table_check(table, 0, bench_keys[i % KEYS], KEY_LENGTH, 1, &decision) == TOLLBAR_ALLOWED &&
               decision.remaining != 0;
    }
    return yes;
}

uint64_t c_table_check_many(const tollbar_table *table, int count) {
    uint64_t yes = 0;
    tollbar_request requests[BATCH];
    int32_t results[BATCH];
    int i, j;
    for (i = 0; i < count; i += BATCH) {
        for (j = 0; j < BATCH; j++) {
            const tollbar_request fresh = TOLLBAR_REQUEST_INIT;
            requests[j] = fresh;
            requests[j].key = bench_keys[(i + j) % KEYS];
            requests[j].length = KEY_LENGTH;
        }
        if (tollbar_table_check_many(table, requests, BATCH, results) != 0)
            return 0;
        for (j = 0; j < BATCH; j++)
            yes += results[j] == TOLLBAR_ALLOWED;
    }
    return yes;
}
