/* How much stack each exported function takes. calls.h, which ffi-tests/c/sh/stack.sh makes from
 * the lists of symbols in abi, has a line CALL(name) for each function. For each of them there must
 * be a function CASE(name), or the program does not link. */
#ifndef TOLLBAR_TEST_STACK_H
#define TOLLBAR_TEST_STACK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TOLLBAR_EXPERIMENTAL
#include "tollbar.h"

#define SEC UINT64_C(1000000000)
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* Objects of one policy in one state, of which each case uses what it needs. */
struct world {
    const char *text;
    /* The first of the worlds: for cases that need only one. */
    int is_first;
    /* TOLLBAR_CLOCK_WALL for calendars. */
    uint32_t clock;
    tollbar_policy_spec spec;
    tollbar_limiter *limiter;
    /* NULL for a policy that a cell cannot have. */
    tollbar_policy *policy;
    tollbar_cell cell;
    tollbar_table_options options;
    /* The policy of the table, and as many more as it may have. */
    const tollbar_policy_spec *policies[128];
    size_t count;
    tollbar_table *table;
    /* A table with the same policies and keys in a file. */
    char path[64];
    const char *key;
    size_t length;
    uint64_t now;
};

extern char buffer[1 << 16];
/* Memory of the caller for tables and limiters. */
extern union memory {
    uint64_t words[1 << 18];
    char bytes[8 << 18];
} *memory;

/* Paints the calling thread's unused stack, and returns how much of it is no longer painted after a
 * call. */
void paint(void);
void measure(int32_t result);

/* Makes a call, measures it, and notes whether it succeeded in any world. */
#define RUN(call)                                                                                                                              \
    do {                                                                                                                                       \
        paint();                                                                                                                               \
        measure((int32_t)(call));                                                                                                              \
    } while (0)

#define CASE(name)                                                                                                                             \
    void case_##name(struct world *w);                                                                                                         \
    void case_##name(struct world *w)

#define KEY w->key, w->length

#endif
