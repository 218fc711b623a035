/* The loops that bench.c and bench.cpp have, each in its own language. Each makes `count` decisions
 * and returns how many allowed. */
#ifndef TOLLBAR_BENCH_H
#define TOLLBAR_BENCH_H

#include "tollbar.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KEYS = 1024, KEY_LENGTH = 12, BATCH = 64 };

/* Names of KEYS keys, without NULs. */
extern char bench_keys[KEYS][KEY_LENGTH];

/* Limiter: a verdict; at the caller's time; an answer in full. Table: a verdict; an answer in full;
 * batches. */
uint64_t c_limiter_check(const tollbar_limiter *limiter, int count);
uint64_t c_limiter_check_at(const tollbar_limiter *limiter, int count);
uint64_t c_limiter_decide(const tollbar_limiter *limiter, int count);
uint64_t c_table_check(const tollbar_table *table, int count);
uint64_t c_table_decide(const tollbar_table *table, int count);
uint64_t c_table_check_many(const tollbar_table *table, int count);

#ifdef __cplusplus
}
#endif

#endif
