/* What the C tests share: cmocka, names for times, and short ways to make things and to ask. */
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

/* One policy an algorithm, in the order of the TOLLBAR_ALGORITHM_ numbers, each with a burst of 5. */
extern const char *const every_algorithm[8];

/* A limiter, a compiled policy and a plain policy of a text, or the test fails naming the text. */
tollbar_limiter *limiter_of(const char *text);
tollbar_policy *policy_of(const char *text);
tollbar_policy_spec spec_of(const char *text);

/* A limiter of a text on a clock and with a bound on sleepers. */
tollbar_limiter *limiter_with(const char *text, uint32_t clock, uint32_t waiters);
/* A limiter of a text whose threads take permits in advance. */
tollbar_limiter *limiter_with_credit(const char *text);

/* Answers of a fresh limiter of `text` to requests for one permit at these times, as 'T' and 'F'. */
void assert_answers(const char *text, const uint64_t *times, size_t count, const char *want);

/* What a table is asked to be: one or two policies (the second may be NULL), and a known seed, so that the same
 * keys meet in every run. It points into itself and is not to be copied. */
struct asked {
    tollbar_table_options options;
    tollbar_policy_spec specs[2];
    const tollbar_policy_spec *policies[2];
    size_t count;
};
void ask(struct asked *asked, uint64_t capacity, const char *first, const char *second);

/* A table of this process's own, as asked, or with everything else as is usual; or the test fails. */
tollbar_table *table_asked(const struct asked *asked);
tollbar_table *table_of(uint64_t capacity, const char *first, const char *second);

/* What a table counts. */
tollbar_table_stats stats_of(const tollbar_table *table);

/* CLOCK_MONOTONIC. */
uint64_t monotonic(void);

#endif
