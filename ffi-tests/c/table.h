/* Common parts of the tests of tables. */
#ifndef TOLLBAR_TABLE_TEST_H
#define TOLLBAR_TABLE_TEST_H

#include "test.h"

/* The number of slots of the smallest table. */
#define LEAST 5120

static inline int32_t take(const tollbar_table *table, uint32_t policy, uint64_t key, uint64_t now, uint64_t cost) {
    return tollbar_table_check_at(table, policy, &key, sizeof key, cost, now, NULL);
}

static inline void assert_decision(tollbar_decision got, int32_t verdict, uint64_t remaining, uint64_t retry, uint64_t reset) {
    assert_int_equal(got.struct_size, sizeof got);
    assert_int_equal(got.verdict, verdict);
    assert_int_equal(got.remaining, remaining);
    assert_int_equal(got.retry_after_ns, retry);
    assert_int_equal(got.reset_after_ns, reset);
}

/* Both tables hold the same keys in the same states, in the same slots. */
static inline void assert_same_content(const tollbar_table *a, const tollbar_table *b, uint64_t now) {
    tollbar_table_entry of_a = TOLLBAR_TABLE_ENTRY_INIT, of_b = TOLLBAR_TABLE_ENTRY_INIT;
    int32_t more;
    do {
        more = tollbar_table_next(a, of_a.next, now, &of_a);
        assert_int_equal(tollbar_table_next(b, of_b.next, now, &of_b), more);
        assert_memory_equal(&of_a, &of_b, sizeof of_a);
    } while (more == TOLLBAR_YES);
}

#endif
