/* [C4] A NULL or misaligned argument is an error, and [C2] then nothing is written or charged. */
#include "arguments.h"

static double even(double time, void *context) {
    (void)context;
    return time;
}

static void c4_policy_arguments(void **state) {
    tollbar_policy_spec spec = spec_of("10/s");
    tollbar_policy *policy = NULL;
    char line[TOLLBAR_POLICY_TEXT_MAX] = "untouched";
    size_t length = 7;
    uint64_t last = 7;
    static const double shares[] = {0, 1};
    (void)state;
    NULL_IS(tollbar_policy_spec_parse(NULL, 3, &spec, NULL));
    NULL_IS(tollbar_policy_spec_parse("7/s", 3, NULL, NULL));
    ODD_IS(tollbar_policy_spec_parse("7/s", 3, ODD(tollbar_policy_spec), NULL));
    ODD_IS(tollbar_policy_spec_parse("7/s", 3, &spec, ODD(tollbar_policy_error)));
    assert_int_equal(spec.limit, 10);
    /* NULL with a length of 0 is the empty text. */
    assert_int_equal(tollbar_policy_spec_parse(NULL, 0, &spec, NULL), TOLLBAR_E_SYNTAX);

    NULL_IS(tollbar_policy_spec_print(NULL, line, sizeof line, &length));
    NULL_IS(tollbar_policy_spec_print(&spec, NULL, sizeof line, &length));
    NULL_IS(tollbar_policy_spec_print(&spec, NULL, 0, &length));
    ODD_IS(tollbar_policy_spec_print(ODD(tollbar_policy_spec), line, sizeof line, &length));
    ODD_IS(tollbar_policy_spec_print(&spec, line, sizeof line, ODD(size_t)));
    assert_int_equal(length, 7);
    assert_string_equal(line, "untouched");

    NULL_IS(tollbar_policy_spec_validate(NULL));
    ODD_IS(tollbar_policy_spec_validate(ODD(tollbar_policy_spec)));
    NULL_IS(tollbar_policy_spec_last_time(NULL, &last));
    NULL_IS(tollbar_policy_spec_last_time(&spec, NULL));
    ODD_IS(tollbar_policy_spec_last_time(ODD(tollbar_policy_spec), &last));
    ODD_IS(tollbar_policy_spec_last_time(&spec, ODD(uint64_t)));
    NULL_IS(tollbar_policy_spec_refill(NULL, &last));
    NULL_IS(tollbar_policy_spec_refill(&spec, NULL));
    ODD_IS(tollbar_policy_spec_refill(ODD(tollbar_policy_spec), &last));
    ODD_IS(tollbar_policy_spec_refill(&spec, ODD(uint64_t)));
    NULL_IS(tollbar_policy_spec_curve(1, 1, NULL, NULL, &spec, NULL));
    NULL_IS(tollbar_policy_spec_curve(1, 1, even, NULL, NULL, NULL));
    ODD_IS(tollbar_policy_spec_curve(1, 1, even, NULL, ODD(tollbar_policy_spec), NULL));
    ODD_IS(tollbar_policy_spec_curve(1, 1, even, NULL, &spec, ODD(tollbar_curve_fit)));
    NULL_IS(tollbar_policy_spec_samples(1, 1, NULL, 2, &spec, NULL));
    NULL_IS(tollbar_policy_spec_samples(1, 1, shares, 2, NULL, NULL));
    ODD_IS(tollbar_policy_spec_samples(1, 1, ODD(double), 2, &spec, NULL));
    ODD_IS(tollbar_policy_spec_samples(1, 1, shares, 2, ODD(tollbar_policy_spec), NULL));
    ODD_IS(tollbar_policy_spec_samples(1, 1, shares, 2, &spec, ODD(tollbar_curve_fit)));
    assert_int_equal(tollbar_policy_spec_samples(1, 1, shares, 1, &spec, NULL), TOLLBAR_E_OUT_OF_RANGE);
    assert_int_equal(tollbar_policy_spec_samples(1, 1, shares, 0, &spec, NULL), TOLLBAR_E_OUT_OF_RANGE);
    NULL_IS(tollbar_policy_spec_worst_case(NULL, 1, &last));
    NULL_IS(tollbar_policy_spec_worst_case(&spec, 1, NULL));
    ODD_IS(tollbar_policy_spec_worst_case(ODD(tollbar_policy_spec), 1, &last));
    ODD_IS(tollbar_policy_spec_worst_case(&spec, 1, ODD(uint64_t)));
    assert_int_equal(last, 7);
    NULL_IS(tollbar_policy_new(NULL, &policy));
    NULL_IS(tollbar_policy_new(&spec, NULL));
    ODD_IS(tollbar_policy_new(ODD(tollbar_policy_spec), &policy));
    ODD_IS(tollbar_policy_new(&spec, ODD(tollbar_policy *)));
    NULL_IS(tollbar_policy_from_text(NULL, &policy, NULL));
    NULL_IS(tollbar_policy_from_text("1/s", NULL, NULL));
    ODD_IS(tollbar_policy_from_text("1/s", ODD(tollbar_policy *), NULL));
    ODD_IS(tollbar_policy_from_text("1/s", &policy, ODD(tollbar_policy_error)));
    NULL_IS(tollbar_policy_init_in(room.words, sizeof room, NULL, &policy));
    NULL_IS(tollbar_policy_init_in(room.words, sizeof room, &spec, NULL));
    ODD_IS(tollbar_policy_init_in(room.words, sizeof room, &spec, ODD(tollbar_policy *)));
    assert_null(policy);
    tollbar_policy_free(NULL);
}

static void c4_clock_arguments(void **state) {
    (void)state;
    NULL_IS(tollbar_clock_now(TOLLBAR_CLOCK_TSC, NULL));
    ODD_IS(tollbar_clock_now(TOLLBAR_CLOCK_TSC, ODD(uint64_t)));
}

static void c4_cell_arguments(void **state) {
    tollbar_policy *policy = policy_of("10/s burst 3");
    tollbar_cell cell = TOLLBAR_CELL_INIT;
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    uint64_t taken = 7;
    int32_t results[2] = {7, 7};
    (void)state;
    NULL_IS(tollbar_cell_check(NULL, policy, 1, &decision));
    NULL_IS(tollbar_cell_check(&cell, NULL, 1, &decision));
    ODD_IS(tollbar_cell_check(ODD(tollbar_cell), policy, 1, &decision));
    ODD_IS(tollbar_cell_check(&cell, ODD(tollbar_policy), 1, &decision));
    ODD_IS(tollbar_cell_check(&cell, policy, 1, ODD(tollbar_decision)));
    NULL_IS(tollbar_cell_check_at(NULL, policy, 1, 0, &decision));
    NULL_IS(tollbar_cell_check_at(&cell, NULL, 1, 0, &decision));
    ODD_IS(tollbar_cell_check_at(ODD(tollbar_cell), policy, 1, 0, NULL));
    ODD_IS(tollbar_cell_check_at(&cell, policy, 1, 0, ODD(tollbar_decision)));
    NULL_IS(tollbar_cell_peek_at(NULL, policy, 1, 0, &decision));
    NULL_IS(tollbar_cell_peek_at(&cell, NULL, 1, 0, &decision));
    ODD_IS(tollbar_cell_peek_at(ODD(tollbar_cell), policy, 1, 0, &decision));
    ODD_IS(tollbar_cell_peek_at(&cell, policy, 1, 0, ODD(tollbar_decision)));
    NULL_IS(tollbar_cell_take_up_to_at(NULL, policy, 1, 0, &taken));
    NULL_IS(tollbar_cell_take_up_to_at(&cell, NULL, 1, 0, &taken));
    NULL_IS(tollbar_cell_take_up_to_at(&cell, policy, 1, 0, NULL));
    ODD_IS(tollbar_cell_take_up_to_at(&cell, policy, 1, 0, ODD(uint64_t)));
    NULL_IS(tollbar_cell_check_many_at(NULL, 1, policy, 1, 0, results));
    NULL_IS(tollbar_cell_check_many_at(&cell, 1, NULL, 1, 0, results));
    NULL_IS(tollbar_cell_check_many_at(&cell, 1, policy, 1, 0, NULL));
    ODD_IS(tollbar_cell_check_many_at(ODD(tollbar_cell), 1, policy, 1, 0, results));
    ODD_IS(tollbar_cell_check_many_at(&cell, 1, policy, 1, 0, ODD(int32_t)));
    NULL_IS(tollbar_cell_reset(NULL));
    ODD_IS(tollbar_cell_reset(ODD(tollbar_cell)));
    assert_int_equal(cell.word, 0);
    assert_int_equal(taken, 7);
    assert_int_equal(results[0], 7);
    assert_int_equal(decision.remaining, 0);
    assert_int_equal(tollbar_cell_check_many_at(NULL, 0, policy, 1, 0, NULL), 0);
    tollbar_policy_free(policy);
}

static void c4_limiter_arguments(void **state) {
    tollbar_policy_spec spec = spec_of("10/s burst 3");
    tollbar_limiter *limiter = NULL;
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    tollbar_limiter_state view = TOLLBAR_LIMITER_STATE_INIT;
    tollbar_reservation booked = {7, 7, 7};
    uint64_t number = 7;
    int32_t results[2] = {7, 7};
    (void)state;
    NULL_IS(tollbar_limiter_new(NULL, NULL, &limiter));
    NULL_IS(tollbar_limiter_new(&spec, NULL, NULL));
    ODD_IS(tollbar_limiter_new(&spec, ODD(tollbar_limiter_options), &limiter));
    ODD_IS(tollbar_limiter_new(&spec, NULL, ODD(tollbar_limiter *)));
    NULL_IS(tollbar_limiter_from_text(NULL, &limiter, NULL));
    NULL_IS(tollbar_limiter_from_text("1/s", NULL, NULL));
    ODD_IS(tollbar_limiter_from_text("1/s", &limiter, ODD(tollbar_policy_error)));
    assert_null(limiter);
    limiter = limiter_of("10/s burst 3");

    NULL_IS(tollbar_limiter_check(NULL, 1, &decision));
    NULL_IS(tollbar_limiter_check_at(NULL, 1, 0, &decision));
    NULL_IS(tollbar_limiter_peek(NULL, 1, &decision));
    NULL_IS(tollbar_limiter_peek_at(NULL, 1, 0, &decision));
    NULL_IS(tollbar_limiter_check_many(NULL, NULL, 2, results));
    NULL_IS(tollbar_limiter_check_many_at(NULL, NULL, 2, 0, results));
    NULL_IS(tollbar_limiter_check_many_at(limiter, NULL, 2, 0, NULL));
    NULL_IS(tollbar_limiter_take_up_to(NULL, 1, &number));
    NULL_IS(tollbar_limiter_take_up_to(limiter, 1, NULL));
    NULL_IS(tollbar_limiter_take_up_to_at(NULL, 1, 0, &number));
    NULL_IS(tollbar_limiter_take_up_to_at(limiter, 1, 0, NULL));
    NULL_IS(tollbar_limiter_check_leaving(NULL, 1, 2, &decision));
    NULL_IS(tollbar_limiter_check_leaving_at(NULL, 1, 2, 0, &decision));
    NULL_IS(tollbar_limiter_charge(NULL, 1, &number));
    NULL_IS(tollbar_limiter_charge_at(NULL, 1, 0, &number));
    NULL_IS(tollbar_limiter_wait(NULL, 1, 0, &decision));
    NULL_IS(tollbar_limiter_reserve(NULL, 1, 0, &booked));
    NULL_IS(tollbar_limiter_reserve(limiter, 1, 0, NULL));
    NULL_IS(tollbar_limiter_reserve_at(NULL, 1, 0, 0, &booked));
    NULL_IS(tollbar_limiter_reserve_at(limiter, 1, 0, 0, NULL));
    NULL_IS(tollbar_limiter_cancel(NULL, &booked, NULL));
    NULL_IS(tollbar_limiter_cancel(limiter, NULL, NULL));
    NULL_IS(tollbar_limiter_cancel_at(NULL, &booked, 0, NULL));
    NULL_IS(tollbar_limiter_cancel_at(limiter, NULL, 0, NULL));
    NULL_IS(tollbar_limiter_reset(NULL));
    NULL_IS(tollbar_limiter_get_state(NULL, &view));
    NULL_IS(tollbar_limiter_get_state(limiter, NULL));
    NULL_IS(tollbar_limiter_set_policy(NULL, &spec, 0));
    NULL_IS(tollbar_limiter_set_policy(limiter, NULL, 0));
    NULL_IS(tollbar_limiter_set_policy_at(NULL, &spec, 0, 0));
    NULL_IS(tollbar_limiter_set_policy_at(limiter, NULL, 0, 0));
    NULL_IS(tollbar_limiter_get_policy(NULL, &spec));
    NULL_IS(tollbar_limiter_get_policy(limiter, NULL));

    ODD_IS(tollbar_limiter_check(ODD(tollbar_limiter), 1, &decision));
    ODD_IS(tollbar_limiter_check(limiter, 1, ODD(tollbar_decision)));
    ODD_IS(tollbar_limiter_check_at(limiter, 1, 0, ODD(tollbar_decision)));
    ODD_IS(tollbar_limiter_peek(limiter, 1, ODD(tollbar_decision)));
    ODD_IS(tollbar_limiter_peek_at(limiter, 1, 0, ODD(tollbar_decision)));
    ODD_IS(tollbar_limiter_check_many(limiter, NULL, 2, ODD(int32_t)));
    ODD_IS(tollbar_limiter_check_many_at(limiter, ODD(uint64_t), 2, 0, results));
    ODD_IS(tollbar_limiter_take_up_to(limiter, 1, ODD(uint64_t)));
    ODD_IS(tollbar_limiter_take_up_to_at(limiter, 1, 0, ODD(uint64_t)));
    ODD_IS(tollbar_limiter_check_leaving(limiter, 1, 2, ODD(tollbar_decision)));
    ODD_IS(tollbar_limiter_check_leaving_at(limiter, 1, 2, 0, ODD(tollbar_decision)));
    ODD_IS(tollbar_limiter_charge(limiter, 1, ODD(uint64_t)));
    ODD_IS(tollbar_limiter_charge_at(limiter, 1, 0, ODD(uint64_t)));
    ODD_IS(tollbar_limiter_wait(limiter, 1, 0, ODD(tollbar_decision)));
    ODD_IS(tollbar_limiter_reserve(limiter, 1, 0, ODD(tollbar_reservation)));
    ODD_IS(tollbar_limiter_reserve_at(limiter, 1, 0, 0, ODD(tollbar_reservation)));
    ODD_IS(tollbar_limiter_cancel(limiter, ODD(tollbar_reservation), NULL));
    ODD_IS(tollbar_limiter_cancel_at(limiter, &booked, 0, ODD(uint64_t)));
    ODD_IS(tollbar_limiter_get_state(limiter, ODD(tollbar_limiter_state)));
    ODD_IS(tollbar_limiter_set_policy(limiter, ODD(tollbar_policy_spec), 0));
    ODD_IS(tollbar_limiter_set_policy_at(limiter, ODD(tollbar_policy_spec), 0, 0));
    ODD_IS(tollbar_limiter_get_policy(limiter, ODD(tollbar_policy_spec)));
    ODD_IS(tollbar_limiter_reset(ODD(tollbar_limiter)));

    assert_int_equal(number, 7);
    assert_int_equal(booked.departs_ns, 7);
    assert_int_equal(results[0], 7);
    assert_int_equal(tollbar_limiter_check_many(limiter, NULL, 0, NULL), 0);
    assert_int_equal(tollbar_limiter_peek_at(limiter, 3, 0, &decision), TOLLBAR_ALLOWED);
    assert_int_equal(decision.remaining, 3);
    tollbar_limiter_free(limiter);
    tollbar_limiter_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(c4_policy_arguments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c4_clock_arguments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c4_cell_arguments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c4_limiter_arguments, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("arguments", tests, NULL, NULL);
}
