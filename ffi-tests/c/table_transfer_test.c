/* Copies from one table into another, by which a program changes the size of a table while it is in
 * use. */
#include "test.h"

static int32_t take(const tollbar_table *table, uint64_t key, uint64_t now) {
    return tollbar_table_check_at(table, 0, &key, sizeof key, 1, now, NULL);
}

static void arguments(void **state) {
    struct asked asked;
    tollbar_table *from, *to;
    tollbar_table_copy_result copied = TOLLBAR_TABLE_COPY_RESULT_INIT;
    (void)state;
    ask(&asked, 1000, "1/h", "2/h");
    from = table_asked(&asked);
    to = table_asked(&asked);
    assert_int_equal(take(from, 1, SEC), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_copy(NULL, from, SEC, &copied), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_table_copy(to, NULL, SEC, &copied), TOLLBAR_E_NULL);
    copied.struct_size = 8;
    assert_int_equal(tollbar_table_copy(to, from, SEC, &copied), TOLLBAR_E_STRUCT_SIZE);
    /* The refused calls have copied nothing. */
    assert_int_equal(stats_of(to).keys, 0);
    copied.struct_size = (uint32_t)sizeof copied;
    assert_int_equal(tollbar_table_copy(to, from, SEC, &copied), TOLLBAR_ALLOWED);
    assert_true(copied.struct_size == sizeof copied && copied.copied == 1 && copied.lost == 0);
    assert_int_equal(take(to, 1, SEC), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_copy(to, from, SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(stats_of(to).keys, 1);
    tollbar_table_close(to);

    asked.options.seed++;
    to = table_asked(&asked);
    assert_int_equal(tollbar_table_copy(to, from, SEC, NULL), TOLLBAR_E_OTHER_OPTIONS);
    tollbar_table_close(to);

    ask(&asked, 1000, "1/h", NULL);
    to = table_asked(&asked);
    assert_int_equal(tollbar_table_copy(to, from, SEC, NULL), TOLLBAR_E_OTHER_POLICIES);
    assert_int_equal(tollbar_table_copy(from, to, SEC, NULL), TOLLBAR_ALLOWED);
    tollbar_table_close(to);

    ask(&asked, 10, "3/s algo sliding-log", NULL);
    to = table_asked(&asked);
    assert_int_equal(tollbar_table_copy(to, from, SEC, NULL), TOLLBAR_E_MIXED_POLICIES);
    tollbar_table_close(to);
    tollbar_table_close(from);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments),
    };
    return cmocka_run_group_tests_name("transfers", tests, NULL, NULL);
}
