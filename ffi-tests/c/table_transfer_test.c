/* Copies from one table into another, by which a program changes the size of a table while it is in use. */
#include "test.h"

/* A table with the options of `asked`, but for `capacity` keys. */
static tollbar_table *sized(struct asked *asked, uint64_t capacity) {
    asked->options.capacity = capacity;
    return table_asked(asked);
}

static int32_t take(const tollbar_table *table, uint64_t key, uint64_t now) {
    return tollbar_table_check_at(table, 0, &key, sizeof key, 1, now, NULL);
}

static tollbar_decision peek(const tollbar_table *table, uint64_t key, uint64_t now) {
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    assert_true(tollbar_table_peek_at(table, 0, &key, sizeof key, 1, now, &got) >= 0);
    return got;
}

static void every_key_goes_on_with_its_debt(void **state) {
    enum { KEYS = 3000 };
    const uint64_t capacities[] = { 1000, 4000, 100000 };
    struct asked asked;
    tollbar_table *from;
    size_t n;
    uint64_t key;
    (void)state;
    ask(&asked, 4000, "1/h burst 3", NULL);
    from = table_asked(&asked);
    for (key = 0; key < KEYS; key++)
        for (n = 0; n < key % 4; n++)
            assert_int_equal(take(from, key, SEC), TOLLBAR_ALLOWED);
    for (n = 0; n < COUNT(capacities); n++) {
        tollbar_table *to = sized(&asked, capacities[n]);
        tollbar_table_copy_result copied = TOLLBAR_TABLE_COPY_RESULT_INIT;
        assert_int_equal(tollbar_table_copy(to, from, 2 * SEC, &copied), TOLLBAR_ALLOWED);
        assert_int_equal(copied.struct_size, sizeof copied);
        assert_int_equal(copied.copied, KEYS - KEYS / 4);
        assert_int_equal(copied.lost, 0);
        assert_int_equal(stats_of(to).keys, KEYS - KEYS / 4);
        for (key = 0; key < KEYS; key++) {
            tollbar_decision got = peek(to, key, 2 * SEC), want = peek(from, key, 2 * SEC);
            assert_memory_equal(&got, &want, sizeof got);
        }
        tollbar_table_close(to);
    }
    tollbar_table_close(from);
}

static void who_finds_no_place_is_counted(void **state) {
    enum { KEYS = 20000 };
    struct asked asked;
    tollbar_table *from, *to;
    tollbar_table_copy_result copied = TOLLBAR_TABLE_COPY_RESULT_INIT;
    uint64_t key;
    (void)state;
    ask(&asked, KEYS, "1/day", NULL);
    asked.options.on_full = TOLLBAR_ON_FULL_EVICT_NEAREST;
    from = table_asked(&asked);
    to = sized(&asked, 1000);
    for (key = 0; key < KEYS; key++)
        (void)take(from, key, SEC);
    assert_int_equal(tollbar_table_copy(to, from, SEC, &copied), TOLLBAR_ALLOWED);
    assert_true(copied.copied <= stats_of(to).slots);
    assert_int_equal(copied.copied, stats_of(to).keys);
    assert_int_equal(copied.copied + copied.lost, stats_of(from).keys);
    assert_true(copied.lost > 0);
    tollbar_table_close(from);
    tollbar_table_close(to);
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
        cmocka_unit_test(every_key_goes_on_with_its_debt),
        cmocka_unit_test(who_finds_no_place_is_counted),
        cmocka_unit_test(arguments),
    };
    return cmocka_run_group_tests_name("transfers", tests, NULL, NULL);
}
