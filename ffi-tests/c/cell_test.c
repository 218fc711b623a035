/* Cells: state words that the caller owns. */
#include "test.h"

static tollbar_policy *policy;

static int set_up(void **state) {
    (void)state;
    policy = policy_of("10/s burst 3");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    tollbar_policy_free(policy);
    policy = NULL;
    return 0;
}

static void assert_decision(const tollbar_decision *got, uint32_t verdict, uint64_t remaining,
                            uint64_t retry_after_ns, uint64_t reset_after_ns) {
    assert_int_equal(got->struct_size, sizeof *got);
    assert_int_equal(got->verdict, verdict);
    assert_int_equal(got->reason, verdict);
    assert_int_equal(got->bound, 0);
    assert_int_equal(got->remaining, remaining);
    assert_int_equal(got->retry_after_ns, retry_after_ns);
    assert_int_equal(got->reset_after_ns, reset_after_ns);
}

static void all_zero_is_fresh(void **state) {
    static tollbar_cell in_bss;
    tollbar_cell initialised = TOLLBAR_CELL_INIT, *allocated = calloc(1, sizeof *allocated);
    tollbar_cell *cells[3];
    size_t i;
    (void)state;
    cells[0] = &in_bss;
    cells[1] = &initialised;
    cells[2] = allocated;
    assert_int_equal(sizeof(tollbar_cell), 8);
    for (i = 0; i < COUNT(cells); i++) {
        assert_int_equal(tollbar_cell_check_at(cells[i], policy, 3, 5 * SEC, NULL), TOLLBAR_ALLOWED);
        assert_int_equal(tollbar_cell_check_at(cells[i], policy, 1, 5 * SEC, NULL), TOLLBAR_DENIED);
    }
    free(allocated);
}

/* Every field of an answer, which the golden vectors do not have. */
static void a_decision_has_all_of_its_fields(void **state) {
    tollbar_cell cell = TOLLBAR_CELL_INIT;
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    uint64_t before;
    (void)state;
    assert_int_equal(tollbar_cell_check_at(&cell, policy, 2, SEC, &got), TOLLBAR_ALLOWED);
    assert_decision(&got, TOLLBAR_ALLOWED, 1, 0, 200 * MS);
    before = cell.word;
    assert_int_equal(tollbar_cell_check_at(&cell, policy, 2, SEC, &got), TOLLBAR_DENIED);
    assert_decision(&got, TOLLBAR_DENIED, 1, 100 * MS, 200 * MS);
    assert_int_equal(tollbar_cell_check_at(&cell, policy, 4, SEC, &got), TOLLBAR_NEVER);
    assert_decision(&got, TOLLBAR_NEVER, 1, TOLLBAR_NO_TIME, 200 * MS);
    assert_int_equal(cell.word, before);
}

static void peek_changes_nothing(void **state) {
    tollbar_cell cell = TOLLBAR_CELL_INIT;
    tollbar_decision peeked = TOLLBAR_DECISION_INIT, got = TOLLBAR_DECISION_INIT;
    uint64_t before;
    (void)state;
    assert_int_equal(tollbar_cell_peek_at(&cell, policy, 3, SEC, &peeked), TOLLBAR_ALLOWED);
    assert_int_equal(cell.word, 0);
    tollbar_cell_check_at(&cell, policy, 2, SEC, NULL);
    before = cell.word;
    assert_int_equal(tollbar_cell_peek_at(&cell, policy, 2, SEC, &peeked), TOLLBAR_DENIED);
    assert_int_equal(tollbar_cell_peek_at(&cell, policy, 9, SEC, NULL), TOLLBAR_NEVER);
    assert_int_equal(cell.word, before);
    tollbar_cell_check_at(&cell, policy, 2, SEC, &got);
    assert_memory_equal(&peeked, &got, sizeof got);
}

static void take_up_to(void **state) {
    tollbar_cell cell = TOLLBAR_CELL_INIT;
    uint64_t taken = 77;
    (void)state;
    assert_int_equal(tollbar_cell_take_up_to_at(&cell, policy, UINT64_MAX, SEC, &taken), TOLLBAR_ALLOWED);
    assert_int_equal(taken, 3);
    assert_int_equal(tollbar_cell_take_up_to_at(&cell, policy, 5, SEC, &taken), TOLLBAR_DENIED);
    assert_int_equal(taken, 0);
}

static void check_many_is_check_for_each(void **state) {
    tollbar_cell cells[4] = {TOLLBAR_CELL_INIT, TOLLBAR_CELL_INIT, TOLLBAR_CELL_INIT, TOLLBAR_CELL_INIT};
    int32_t results[5] = {77, 77, 77, 77, 77};
    (void)state;
    tollbar_cell_check_at(&cells[1], policy, 2, SEC, NULL);
    assert_int_equal(tollbar_cell_check_many_at(cells, 4, policy, 2, SEC, results), 0);
    assert_int_equal(results[0], TOLLBAR_ALLOWED);
    assert_int_equal(results[1], TOLLBAR_DENIED);
    assert_int_equal(results[2], TOLLBAR_ALLOWED);
    assert_int_equal(results[3], TOLLBAR_ALLOWED);
    assert_int_equal(results[4], 77);
    assert_int_equal(cells[0].word, cells[1].word);
    assert_int_equal(tollbar_cell_check_many_at(cells, 2, policy, 9, SEC, results), 0);
    assert_int_equal(results[0], TOLLBAR_NEVER);
    assert_int_equal(results[1], TOLLBAR_NEVER);
    assert_int_equal(results[2], TOLLBAR_ALLOWED);
}

static void reset_is_fresh(void **state) {
    tollbar_cell cell = TOLLBAR_CELL_INIT;
    (void)state;
    tollbar_cell_check_at(&cell, policy, 3, SEC, NULL);
    assert_int_not_equal(cell.word, 0);
    assert_int_equal(tollbar_cell_reset(&cell), 0);
    assert_int_equal(cell.word, 0);
    assert_int_equal(tollbar_cell_check_at(&cell, policy, 3, SEC, NULL), TOLLBAR_ALLOWED);
}

static void by_the_librarys_clock(void **state) {
    tollbar_policy *slow = policy_of("1/h burst 2");
    tollbar_cell cell = TOLLBAR_CELL_INIT;
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    uint64_t now = 0;
    (void)state;
    assert_int_equal(tollbar_cell_check(&cell, slow, 1, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_cell_check(&cell, slow, 1, &got), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_cell_check(&cell, slow, 1, &got), TOLLBAR_DENIED);
    assert_in_range(got.retry_after_ns, HOUR - 10 * SEC, HOUR);
    /* The cell's clock is the one that tollbar_clock_now reads. */
    assert_int_equal(tollbar_clock_now(TOLLBAR_CLOCK_TSC, &now), 0);
    assert_int_equal(tollbar_cell_check_at(&cell, slow, 1, now + got.retry_after_ns, NULL), TOLLBAR_ALLOWED);
    tollbar_policy_free(slow);
}

static void c2_nothing_is_charged_or_written_on_an_error(void **state) {
    static const uint32_t garbage[] = {0, 1, 31, 4097, UINT32_MAX};
    tollbar_cell cell = TOLLBAR_CELL_INIT;
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(garbage); i++) {
        tollbar_decision got, before;
        memset(&got, 0x55, sizeof got);
        got.struct_size = garbage[i];
        before = got;
        assert_int_equal(tollbar_cell_check_at(&cell, policy, 1, SEC, &got), TOLLBAR_E_STRUCT_SIZE);
        assert_int_equal(tollbar_cell_check(&cell, policy, 1, &got), TOLLBAR_E_STRUCT_SIZE);
        assert_int_equal(tollbar_cell_peek_at(&cell, policy, 1, SEC, &got), TOLLBAR_E_STRUCT_SIZE);
        assert_memory_equal(&got, &before, sizeof got);
        assert_int_equal(cell.word, 0);
    }
}

struct newer_decision {
    tollbar_decision known;
    uint64_t later[2];
    uint64_t beyond;
};

static void c6_an_older_decision_gets_no_reason(void **state) {
    tollbar_cell cell = TOLLBAR_CELL_INIT;
    tollbar_decision older;
    (void)state;
    memset(&older, 0x55, sizeof older);
    older.struct_size = (uint32_t)offsetof(tollbar_decision, reason);
    assert_int_equal(older.struct_size, 32);
    assert_int_equal(tollbar_cell_check_at(&cell, policy, 1, SEC, &older), TOLLBAR_ALLOWED);
    assert_int_equal(older.struct_size, 32);
    assert_int_equal(older.remaining, 2);
    assert_int_equal(older.reason, 0x55555555);
    assert_int_equal(older.bound, 0x55555555);
}

static void reasons_have_names(void **state) {
    uint32_t i, j;
    (void)state;
    assert_string_equal(tollbar_strreason(TOLLBAR_REASON_ADMITTED), "admitted");
    assert_string_equal(tollbar_strreason(TOLLBAR_REASON_TABLE_FULL), "table full");
    for (i = 0; i <= TOLLBAR_REASON_RESERVE; i++) {
        assert_string_not_equal(tollbar_strreason(i), "unknown reason");
        for (j = 0; j < i; j++)
            assert_string_not_equal(tollbar_strreason(i), tollbar_strreason(j));
    }
    assert_string_equal(tollbar_strreason(i), "unknown reason");
    assert_string_equal(tollbar_strreason(UINT32_MAX), "unknown reason");
}

static void c6_a_newer_decision_gets_a_zero_tail(void **state) {
    tollbar_cell cell = TOLLBAR_CELL_INIT;
    struct newer_decision newer;
    (void)state;
    memset(&newer, 0x55, sizeof newer);
    newer.known.struct_size = (uint32_t)offsetof(struct newer_decision, beyond);
    assert_int_equal(tollbar_cell_check_at(&cell, policy, 1, SEC, &newer.known), TOLLBAR_ALLOWED);
    assert_int_equal(newer.known.struct_size, offsetof(struct newer_decision, beyond));
    assert_int_equal(newer.known.remaining, 2);
    assert_int_equal(newer.later[0], 0);
    assert_int_equal(newer.later[1], 0);
    assert_true(newer.beyond == UINT64_C(0x5555555555555555));
}

static void cells_outlive_their_policy(void **state) {
    tollbar_policy *first = policy_of("10/s burst 3"), *second;
    tollbar_cell cell = TOLLBAR_CELL_INIT;
    (void)state;
    tollbar_cell_check_at(&cell, first, 3, SEC, NULL);
    tollbar_policy_free(first);
    second = policy_of("10/s burst 3");
    assert_int_equal(tollbar_cell_check_at(&cell, second, 1, SEC, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_cell_check_at(&cell, second, 1, SEC + 100 * MS, NULL), TOLLBAR_ALLOWED);
    tollbar_policy_free(second);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(all_zero_is_fresh),
        TEST(a_decision_has_all_of_its_fields),
        TEST(peek_changes_nothing),
        TEST(take_up_to),
        TEST(check_many_is_check_for_each),
        TEST(reset_is_fresh),
        TEST(by_the_librarys_clock),
        TEST(c2_nothing_is_charged_or_written_on_an_error),
        TEST(c6_an_older_decision_gets_no_reason),
        TEST(reasons_have_names),
        TEST(c6_a_newer_decision_gets_a_zero_tail),
        TEST(cells_outlive_their_policy),
    };
    return cmocka_run_group_tests_name("cells", tests, NULL, NULL);
}
