/* Receipts: an estimate now, the real cost later. */
#include "test.h"

static int32_t take(tollbar_table *table, uint64_t cost, uint64_t now, tollbar_receipt *receipt) {
    return tollbar_table_take_at(table, 0, "k", 1, cost, now, receipt, NULL);
}

/* A key takes five of ten permits, and seven two seconds later. The five are settled at 0. The two
 * that time has brought back do not go back again, so five more do not pass. */
static void time_is_not_given_twice(void **state) {
    tollbar_table *table = table_of(100, "1/s burst 10", NULL);
    tollbar_receipt five, seven, more;
    tollbar_settled settled = TOLLBAR_SETTLED_INIT;
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    (void)state;
    assert_int_equal(tollbar_table_take_at(table, 0, "k", 1, 5, 10 * SEC, &five, &decision), TOLLBAR_ALLOWED);
    assert_int_equal(decision.remaining, 5);
    assert_int_equal(take(table, 7, 12 * SEC, &seven), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_settle_at(table, &five, 0, 12 * SEC, &settled), TOLLBAR_ALLOWED);
    assert_int_equal(settled.first, TOLLBAR_YES);
    assert_int_equal(settled.given_back, 3);
    assert_int_equal(take(table, 5, 12 * SEC, &more), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_settle_at(table, &five, 0, 12 * SEC, &settled), TOLLBAR_ALLOWED);
    assert_int_equal(settled.first, TOLLBAR_NO);
    assert_int_equal(settled.given_back, 0);
    assert_int_equal(take(table, 3, 12 * SEC, &more), TOLLBAR_ALLOWED);
    tollbar_table_close(table);
}

/* A cost above the estimate becomes a debt of one burst at most. */
static void the_rest_is_told(void **state) {
    tollbar_table *table = table_of(100, "1/s burst 10", NULL);
    tollbar_receipt two;
    tollbar_settled settled = TOLLBAR_SETTLED_INIT;
    (void)state;
    assert_int_equal(take(table, 2, 10 * SEC, &two), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_settle_at(table, &two, 25, 10 * SEC, &settled), TOLLBAR_DENIED);
    assert_int_equal(settled.rest, 5);
    assert_int_equal(tollbar_table_peek_at(table, 0, "k", 1, 1, 20 * SEC, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_peek_at(table, 0, "k", 1, 1, 21 * SEC, NULL), TOLLBAR_ALLOWED);
    tollbar_table_close(table);
}

static void by_the_tables_clock(void **state) {
    tollbar_table *table = table_of(100, "10/day", NULL);
    tollbar_receipt receipt;
    (void)state;
    assert_int_equal(tollbar_table_take(table, 0, "k", 1, 10, &receipt, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_settle_in_full(table, &receipt, 4, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_take(table, 0, "k", 1, 6, &receipt, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_settle(table, &receipt, 0, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check(table, 0, "k", 1, 5, NULL), TOLLBAR_ALLOWED);
    tollbar_table_close(table);
}

static void errors_change_nothing(void **state) {
    tollbar_table *table = table_of(100, "1/h burst 10", NULL);
    tollbar_receipt receipt = {{1, 2, 3, 4}};
    tollbar_settled settled = TOLLBAR_SETTLED_INIT;
    (void)state;
    assert_int_equal(take(table, 11, 10 * SEC, &receipt), TOLLBAR_NEVER);
    assert_int_equal(receipt.words[3], 4);
    assert_int_equal(tollbar_table_settle(table, &receipt, 0, NULL), TOLLBAR_E_RECEIPT);
    assert_int_equal(take(table, UINT64_C(1) << 56, 10 * SEC, &receipt), TOLLBAR_E_RECEIPT);
    assert_int_equal(tollbar_table_take(table, 9, "k", 1, 1, &receipt, NULL), TOLLBAR_E_NO_SUCH_POLICY);
    assert_int_equal(tollbar_table_take(table, 0, "k", 1, 1, NULL, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_table_settle(table, NULL, 0, NULL), TOLLBAR_E_NULL);
    assert_int_equal(take(table, 10, 10 * SEC, &receipt), TOLLBAR_ALLOWED);
    settled.struct_size = 1;
    assert_int_equal(tollbar_table_settle_at(table, &receipt, 0, 10 * SEC, &settled), TOLLBAR_E_STRUCT_SIZE);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 1, 10 * SEC, NULL), TOLLBAR_DENIED);
    assert_int_equal(tollbar_table_settle_at(table, &receipt, 0, 10 * SEC, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(table, 0, "k", 1, 10, 10 * SEC, NULL), TOLLBAR_ALLOWED);
    tollbar_table_close(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_is_not_given_twice),
        cmocka_unit_test(the_rest_is_told),
        cmocka_unit_test(by_the_tables_clock),
        cmocka_unit_test(errors_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
