/* Common parts of the C tests: cmocka, names of times, and helpers that make objects and
 * requests. */
#ifndef TOLLBAR_TEST_H
#define TOLLBAR_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tollbar.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define SEC UINT64_C(1000000000)
#define MIN (60 * SEC)
#define HOUR (60 * MIN)

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* One policy for each algorithm, in the order of the TOLLBAR_ALGORITHM_ numbers, with a burst of 5
 * where the algorithm has one. */
extern const char *const every_algorithm[8];

/* A limiter, a compiled policy and a policy struct from a text. If the text is wrong, the test
 * fails and names it. */
tollbar_limiter *limiter_of(const char *text);
tollbar_policy *policy_of(const char *text);
tollbar_policy_spec spec_of(const char *text);

/* A limiter from a text, with a clock and a bound on sleepers. */
tollbar_limiter *limiter_with(const char *text, uint32_t clock, uint32_t waiters);
/* A limiter from a text, whose threads take permits in advance. */
tollbar_limiter *limiter_with_credit(const char *text);

/* Answers of a fresh limiter of `text` to requests for one permit at these times, as 'T' and
 * 'F'. */
void assert_answers(const char *text, const uint64_t *times, size_t count, const char *want);

/* The options and policies of a table: one or two policies (the second may be NULL), and a fixed
 * seed, so that the same keys share buckets in every run. It has pointers into itself, so do not
 * copy it. */
struct asked {
    tollbar_table_options options;
    tollbar_policy_spec specs[2];
    const tollbar_policy_spec *policies[2];
    size_t count;
};
void ask(struct asked *asked, uint64_t capacity, const char *first, const char *second);

/* A table in this process's memory, with the options of `asked` or with defaults. The test fails if
 * it cannot be made. */
tollbar_table *table_asked(const struct asked *asked);
tollbar_table *table_of(uint64_t capacity, const char *first, const char *second);

/* A table's statistics. */
tollbar_table_stats stats_of(const tollbar_table *table);

/* Waits until no window of that length that is aligned to a clock of UTC ends within ten seconds:
 * for a test that takes permits of an aligned policy by a real clock, and must not see them come
 * back. */
void away_from_edges(uint64_t period);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t monotonic(void);

#endif
