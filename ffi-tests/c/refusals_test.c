/* The keys that a table refuses most: recording, order, cut keys, arrays of other sizes, and
 * arguments that are wrong. */
#include "test.h"

static const uint64_t NOW = UINT64_C(1000000000000);

static void refuse(tollbar_table *table, uint32_t policy, const char *key, size_t length, int times) {
    while (tollbar_table_check_at(table, policy, key, length, 1, NOW, NULL) == TOLLBAR_ALLOWED)
        ;
    for (; times > 1; times--)
        assert_int_equal(tollbar_table_check_at(table, policy, key, length, 1, NOW, NULL), TOLLBAR_DENIED);
}

static void the_most_refused_first(void **state) {
    tollbar_table *table = table_of(100, "5/day", "7/day");
    tollbar_table_refused top[3] = {TOLLBAR_TABLE_REFUSED_INIT};
    char longer[100];
    size_t count = 9;
    (void)state;
    memset(longer, 'x', sizeof longer);
    refuse(table, 0, "before", 6, 50);
    assert_int_equal(tollbar_table_records_refusals(table), TOLLBAR_NO);
    assert_int_equal(tollbar_table_record_refusals(table, 1), 0);
    assert_int_equal(tollbar_table_records_refusals(table), TOLLBAR_YES);
    assert_int_equal(tollbar_table_top_refused(table, NOW, top, 3, &count), 0);
    assert_int_equal(count, 0);
    refuse(table, 0, "alice", 5, 3);
    refuse(table, 1, longer, sizeof longer, 9);
    refuse(table, 1, "bob", 3, 7);
    refuse(table, 0, "carol", 5, 2);
    assert_int_equal(tollbar_table_top_refused(table, NOW, top, 3, &count), 0);
    assert_int_equal(count, 3);
    assert_true(top[0].count == 9 && top[0].policy == 1 && top[0].is_cut == TOLLBAR_YES);
    assert_int_equal(top[0].length, TOLLBAR_REFUSED_KEY);
    assert_memory_equal(top[0].key, longer, TOLLBAR_REFUSED_KEY);
    assert_true(top[1].count == 7 && top[1].policy == 1 && top[1].is_cut == TOLLBAR_NO && top[1].length == 3);
    assert_memory_equal(top[1].key, "bob", 3);
    assert_true(top[2].count == 3 && top[2].policy == 0);
    assert_memory_equal(top[2].key, "alice", 5);
    /* Two minutes later the counts are a quarter. */
    assert_int_equal(tollbar_table_top_refused(table, NOW + (UINT64_C(2) << 36), top, 3, &count), 0);
    assert_true(count == 2 && top[0].count == 2 && top[1].count == 1);
    assert_int_equal(tollbar_table_record_refusals(table, 0), 0);
    assert_int_equal(tollbar_table_records_refusals(table), TOLLBAR_NO);
    tollbar_table_close(table);
}

/* A caller that refuses because of a peek reports the key. The call counts it, and the table
 * records it if it records refusals. */
static void a_refusal_of_the_callers(void **state) {
    tollbar_table *table = table_of(100, "5/day", "7/day");
    tollbar_table_refused top[3] = {TOLLBAR_TABLE_REFUSED_INIT};
    tollbar_counts counts = TOLLBAR_COUNTS_INIT;
    uint64_t now = 0;
    size_t count = 9, n;
    (void)state;
    assert_int_equal(tollbar_table_count_refusal(table, 1, "eve", 3, TOLLBAR_DENIED, TOLLBAR_REASON_RATE), 0);
    assert_int_equal(tollbar_table_record_refusals(table, 1), 0);
    for (n = 0; n < 5; n++)
        assert_int_equal(tollbar_table_count_refusal(table, 1, "bob", 3, n < 4 ? TOLLBAR_DENIED : TOLLBAR_NEVER, TOLLBAR_REASON_RATE), 0);
    /* A request without a key is counted alone. */
    assert_int_equal(tollbar_table_count_refusal(table, 1, NULL, 0, TOLLBAR_DENIED, TOLLBAR_REASON_RATE), 0);
    assert_int_equal(tollbar_table_get_counts(table, 1, &counts), 0);
    assert_true(counts.allowed == 0 && counts.denied == 6 && counts.never == 1);
    assert_int_equal(tollbar_table_now(table, &now), 0);
    assert_int_equal(tollbar_table_top_refused(table, now, top, 3, &count), 0);
    /* The counts are halved every 68.7 s, and this may be such a time. */
    assert_true(count == 1 && top[0].policy == 1 && top[0].length == 3 && (top[0].count == 5 || top[0].count == 2));
    assert_memory_equal(top[0].key, "bob", 3);
    assert_int_equal(tollbar_table_count_refusal(table, 1, "k", 1, TOLLBAR_ALLOWED, TOLLBAR_REASON_RATE), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_table_count_refusal(table, 1, "k", 1, -1, TOLLBAR_REASON_RATE), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_table_count_refusal(table, 2, "k", 1, TOLLBAR_DENIED, TOLLBAR_REASON_RATE), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_count_refusal(table, 1, NULL, 1, TOLLBAR_DENIED, TOLLBAR_REASON_RATE), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_table_count_refusal(NULL, 1, "k", 1, TOLLBAR_DENIED, TOLLBAR_REASON_RATE), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_table_get_counts(table, 1, &counts), 0);
    assert_true(counts.denied == 6 && counts.never == 1);
    tollbar_table_close(table);
}

static void arguments(void **state) {
    tollbar_table *table = table_of(10, "1/h", NULL);
    struct newer {
        tollbar_table_refused known;
        uint64_t unknown;
    } newer[2];
    tollbar_table_refused one = TOLLBAR_TABLE_REFUSED_INIT;
    size_t count = 9;
    (void)state;
    assert_int_equal(tollbar_table_record_refusals(NULL, 1), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_table_records_refusals(NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_table_top_refused(NULL, NOW, &one, 1, &count), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_table_top_refused(table, NOW, NULL, 1, &count), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_table_top_refused(table, NOW, &one, 1, NULL), TOLLBAR_E_NULL);
    assert_int_equal(count, 9);
    assert_int_equal(tollbar_table_top_refused(table, NOW, NULL, 0, &count), 0);
    assert_int_equal(count, 0);
    one.struct_size = 8;
    assert_int_equal(tollbar_table_top_refused(table, NOW, &one, 1, &count), TOLLBAR_E_STRUCT_SIZE);
    /* The structs of a newer program are longer. */
    memset(newer, 0xff, sizeof newer);
    newer[0].known.struct_size = sizeof newer[0];
    assert_int_equal(tollbar_table_record_refusals(table, 7), 0);
    refuse(table, 0, "a", 1, 5);
    refuse(table, 0, "b", 1, 4);
    assert_int_equal(tollbar_table_top_refused(table, NOW, &newer[0].known, 2, &count), 0);
    assert_int_equal(count, 2);
    assert_true(newer[1].known.count == 4 && newer[1].known.key[0] == 'b' && newer[1].unknown == 0);
    tollbar_table_close(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_refused_first),
        cmocka_unit_test(a_refusal_of_the_callers),
        cmocka_unit_test(arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
