/* Policies as structs: every reason to refuse one, the second bucket of a list, the last time, and
 * structs of other versions. */
#include "policy_spec.h"

static void each_reason_has_its_code(void **state) {
    tollbar_policy_spec spec;
    (void)state;
    spec = plain(10, 0, 10);
    assert_refused(&spec, TOLLBAR_E_PERIOD_ZERO);
    spec = plain(10, SEC, 0);
    assert_refused(&spec, TOLLBAR_E_BURST_ZERO);
    spec = plain(10, SEC, 5);
    spec.init = 6;
    spec.flags = TOLLBAR_POLICY_HAS_INIT;
    assert_refused(&spec, TOLLBAR_E_INIT_ABOVE_BURST);
    spec = of_algorithm(TOLLBAR_ALGORITHM_SLIDING_WINDOW);
    spec.segments = 0;
    assert_refused(&spec, TOLLBAR_E_SEGMENTS);
    spec.segments = 1025;
    assert_refused(&spec, TOLLBAR_E_SEGMENTS);
    spec.segments = 1024;
    spec.period_ns = 1023;
    assert_refused(&spec, TOLLBAR_E_SEGMENTS);
    spec.segments = 3;
    spec.period_ns = SEC;
    assert_refused(&spec, TOLLBAR_E_SEGMENTS);
    spec = of_algorithm(TOLLBAR_ALGORITHM_WARM_UP);
    spec.warm_up_ns = 0;
    assert_refused(&spec, TOLLBAR_E_WARM_UP);
    spec.warm_up_ns = SEC;
    spec.cold = 0;
    assert_refused(&spec, TOLLBAR_E_WARM_UP);
    spec.cold = 1001;
    assert_refused(&spec, TOLLBAR_E_WARM_UP);
    spec = plain(5, MIN, 5);
    spec.ban_after = 1;
    assert_refused(&spec, TOLLBAR_E_BAN);
    spec.ban_ns = HOUR;
    spec.ban_after = 1001;
    assert_refused(&spec, TOLLBAR_E_BAN);
    spec.ban_after = 1000;
    assert_int_equal(tollbar_policy_spec_validate(&spec), 0);
    spec.from = 1;
    assert_refused(&spec, TOLLBAR_E_OPTION_MISMATCH);
    spec.from = 0;
    spec.flags = TOLLBAR_POLICY_BORROW;
    assert_refused(&spec, TOLLBAR_E_OPTION_MISMATCH);
    spec = of_algorithm(TOLLBAR_ALGORITHM_SLIDING_LOG);
    spec.limit = spec.burst = (1u << 24) + 1;
    assert_refused(&spec, TOLLBAR_E_LOG_TOO_LARGE);
    spec.limit = spec.burst = 1u << 24;
    assert_int_equal(tollbar_policy_spec_validate(&spec), 0);
}

static void what_no_word_can_hold_is_refused(void **state) {
    static const char *const text = "18446744073709551615/ns burst 18446744073709551615";
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    tollbar_limiter *limiter = NULL;
    tollbar_policy *policy = NULL;
    tollbar_policy_spec spec;
    uint32_t algorithm;
    (void)state;
    assert_int_equal(tollbar_limiter_from_text(text, &limiter, &error), TOLLBAR_E_RATE_TOO_HIGH);
    assert_int_equal(error.code, TOLLBAR_E_RATE_TOO_HIGH);
    assert_int_equal(error.column, 1);
    assert_string_equal(error.expected, tollbar_strerror(TOLLBAR_E_RATE_TOO_HIGH));
    assert_int_equal(tollbar_policy_from_text(text, &policy, &error), TOLLBAR_E_RATE_TOO_HIGH);
    assert_null(limiter);
    assert_null(policy);
    for (algorithm = 0; algorithm < 11; algorithm++) {
        spec = of_algorithm(algorithm);
        spec.limit = spec.burst = UINT64_MAX;
        if (algorithm != TOLLBAR_ALGORITHM_QUOTA)
            spec.period_ns = spec.segments ? spec.segments : 1;
        assert_refused(&spec, algorithm == TOLLBAR_ALGORITHM_SLIDING_LOG ? TOLLBAR_E_LOG_TOO_LARGE
                                                                         : TOLLBAR_E_RATE_TOO_HIGH);
    }
    spec = plain(1, HOUR, UINT64_MAX);
    assert_refused(&spec, TOLLBAR_E_BURST_TOO_LARGE);
    spec.algorithm = TOLLBAR_ALGORITHM_INTERVAL;
    assert_refused(&spec, TOLLBAR_E_BURST_TOO_LARGE);
}

/* The fields of a second bucket, for a list such as "10/s; 25/day". A table tells them, and a
 * decision says which bucket binds. */
static void a_list_has_two_buckets(void **state) {
    static const uint64_t day = 24 * HOUR;
    const struct {
        uint64_t limit, period, burst;
        int32_t code;
    } seconds[] = {
        {0, 0, 0, 0},
        {25, day, 25, 0},
        {0, day, 25, TOLLBAR_E_LIST},
        {25, 0, 25, TOLLBAR_E_LIST},
        {25, day, 0, TOLLBAR_E_LIST},
        {UINT64_MAX, 1, UINT64_MAX, TOLLBAR_E_LIST},
        {1, UINT64_MAX, UINT64_MAX, TOLLBAR_E_LIST},
    };
    tollbar_policy_spec spec;
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    tollbar_table *table;
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(seconds); i++) {
        spec = plain(10, SEC, 10);
        spec.second_limit = seconds[i].limit;
        spec.second_period_ns = seconds[i].period;
        spec.second_burst = seconds[i].burst;
        assert_int_equal(tollbar_policy_spec_validate(&spec), seconds[i].code);
        spec.ban_ns = SEC;
        assert_int_equal(tollbar_policy_spec_validate(&spec), i == 0 ? 0 : TOLLBAR_E_LIST);
    }
    table = table_of(100, "10/s; 25/day", NULL);
    assert_int_equal(tollbar_table_get_policy(table, 0, &spec), 0);
    assert_true(spec.second_limit == 25 && spec.second_period_ns == day && spec.second_burst == 25);
    for (i = 0; i < 2; i++)
        assert_int_equal(tollbar_table_check_at(table, 0, "a", 1, 10, day + i * SEC, &got), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_table_check_at(table, 0, "a", 1, 11, day + 2 * SEC, &got), TOLLBAR_NEVER);
    assert_int_equal(got.bound, 0);
    assert_int_equal(tollbar_table_check_at(table, 0, "a", 1, 10, day + 2 * SEC, &got), TOLLBAR_DENIED);
    assert_int_equal(got.bound, 1);
    tollbar_table_close(table);
}

/* M6: the library tells the most permits that a policy admits in some window of a given length. */
static void m6_the_worst_case_is_told(void **state) {
    static const struct {
        const char *policy;
        uint64_t window, most;
    } cases[] = {
        {"120/min", 60 * SEC, 239},
        {"120/min", 3600 * SEC, 7319},
        {"120/min", 1, 120},
        {"120/min", 0, 0},
        {"120/min algo sliding-window mode strict", 60 * SEC, 120},
        {"10/day algo calendar", 25 * 3600 * SEC, 30},
        {"0/s", SEC, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tollbar_policy_spec spec = spec_of(cases[i].policy);
        uint64_t most = UINT64_MAX;
        assert_int_equal(tollbar_policy_spec_worst_case(&spec, cases[i].window, &most), 0);
        assert_int_equal(most, cases[i].most);
    }
    tollbar_policy_spec wrong = spec_of("5/min");
    uint64_t untouched = 7;
    wrong.period_ns = 0;
    assert_int_equal(tollbar_policy_spec_worst_case(&wrong, SEC, &untouched), TOLLBAR_E_PERIOD_ZERO);
    assert_int_equal(untouched, 7);
}

/* At the policy's last time it admits, and a nanosecond later it denies without an end. */
static void c3_the_last_time_is_told(void **state) {
    tollbar_policy_spec spec = spec_of("5/min");
    tollbar_limiter *limiter = limiter_of("5/min");
    tollbar_decision got = TOLLBAR_DECISION_INIT;
    uint64_t last = 0;
    (void)state;
    assert_int_equal(tollbar_policy_spec_last_time(&spec, &last), 0);
    assert_int_equal(last, (UINT64_C(1) << 61) - 2);
    assert_int_equal(tollbar_limiter_check_at(limiter, 1, last, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_limiter_check_at(limiter, 1, last + 1, &got), TOLLBAR_DENIED);
    assert_true(got.retry_after_ns == TOLLBAR_NO_TIME);
    tollbar_limiter_free(limiter);
}

/* The refill time of one permit, where a table's key gets permits back. */
static void a_refill_is_told(void **state) {
    tollbar_policy_spec spec = spec_of("3/s"), none = spec_of("10/s borrow");
    uint64_t refill = 0;
    (void)state;
    assert_int_equal(tollbar_policy_spec_refill(&spec, &refill), 0);
    assert_int_equal(refill, SEC / 3 + 1);
    assert_int_equal(tollbar_policy_spec_refill(&none, &refill), 0);
    assert_true(refill == TOLLBAR_NO_TIME);
}

static void options_of_other_algorithms_are_refused(void **state) {
    uint32_t algorithm;
    (void)state;
    for (algorithm = 0; algorithm < 11; algorithm++) {
        const int gcra = algorithm == TOLLBAR_ALGORITHM_GCRA;
        const int windows = algorithm >= TOLLBAR_ALGORITHM_FIXED_WINDOW && algorithm <= TOLLBAR_ALGORITHM_SLIDING_LOG;
        tollbar_policy_spec spec = of_algorithm(algorithm);
        assert_taken(&spec);
        if (windows || algorithm == TOLLBAR_ALGORITHM_QUOTA || algorithm == TOLLBAR_ALGORITHM_CURVE) {
            spec.burst = 9;
            assert_refused(&spec, TOLLBAR_E_OPTION_MISMATCH);
        }
        if (algorithm != TOLLBAR_ALGORITHM_CURVE && algorithm != TOLLBAR_ALGORITHM_LEVEL_REFILL) {
            spec = of_algorithm(algorithm);
            spec.knots[1] = 100;
            assert_refused(&spec, TOLLBAR_E_OPTION_MISMATCH);
        }
        if (!gcra) {
            spec = of_algorithm(algorithm);
            spec.flags = TOLLBAR_POLICY_BORROW;
            assert_refused(&spec, TOLLBAR_E_OPTION_MISMATCH);
            spec = of_algorithm(algorithm);
            spec.flags = TOLLBAR_POLICY_HAS_INIT;
            spec.init = 3;
            assert_refused(&spec, TOLLBAR_E_OPTION_MISMATCH);
            spec = of_algorithm(algorithm);
            spec.ban_ns = HOUR;
            assert_refused(&spec, TOLLBAR_E_OPTION_MISMATCH);
        }
        spec = of_algorithm(algorithm);
        spec.slack = 1;
        if (algorithm != TOLLBAR_ALGORITHM_PACER)
            assert_refused(&spec, TOLLBAR_E_OPTION_MISMATCH);
        if (algorithm != TOLLBAR_ALGORITHM_WARM_UP) {
            spec = of_algorithm(algorithm);
            spec.cold = 2;
            assert_refused(&spec, TOLLBAR_E_OPTION_MISMATCH);
            spec = of_algorithm(algorithm);
            spec.warm_up_ns = 2;
            assert_refused(&spec, TOLLBAR_E_OPTION_MISMATCH);
        }
        if (algorithm != TOLLBAR_ALGORITHM_SLIDING_WINDOW) {
            spec = of_algorithm(algorithm);
            spec.segments = 2;
            assert_refused(&spec, TOLLBAR_E_OPTION_MISMATCH);
            spec = of_algorithm(algorithm);
            spec.mode = TOLLBAR_MODE_STRICT;
            assert_refused(&spec, TOLLBAR_E_OPTION_MISMATCH);
        }
        if (algorithm != TOLLBAR_ALGORITHM_FIXED_WINDOW && algorithm != TOLLBAR_ALGORITHM_SLIDING_LOG) {
            spec = of_algorithm(algorithm);
            spec.flags = TOLLBAR_POLICY_COUNT_REJECTED;
            assert_refused(&spec, TOLLBAR_E_OPTION_MISMATCH);
        }
    }
}

static void choices_out_of_range_are_refused(void **state) {
    static const uint32_t beyond[] = {12, 13, 255, 65536, UINT32_MAX};
    tollbar_limiter_options options = TOLLBAR_LIMITER_OPTIONS_INIT;
    tollbar_policy_spec spec = plain(10, SEC, 10);
    tollbar_limiter *limiter = NULL;
    uint64_t now = 7;
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(beyond); i++) {
        spec = plain(10, SEC, 10);
        spec.algorithm = beyond[i];
        assert_refused(&spec, TOLLBAR_E_OUT_OF_RANGE);
        spec = of_algorithm(TOLLBAR_ALGORITHM_SLIDING_WINDOW);
        spec.mode = beyond[i];
        assert_refused(&spec, TOLLBAR_E_OUT_OF_RANGE);
        spec.mode = 3;
        assert_refused(&spec, TOLLBAR_E_OUT_OF_RANGE);
        spec.mode = 0;
        spec.anchor = beyond[i];
        assert_refused(&spec, TOLLBAR_E_OUT_OF_RANGE);
        spec.anchor = 2;
        assert_refused(&spec, TOLLBAR_E_OUT_OF_RANGE);
        spec = plain(10, SEC, 10);
        spec.unit = beyond[i];
        assert_refused(&spec, TOLLBAR_E_OUT_OF_RANGE);
        spec.unit = 2;
        assert_refused(&spec, TOLLBAR_E_OUT_OF_RANGE);
        spec.unit = 0;
        options.clock = i ? beyond[i] : 4;
        assert_int_equal(tollbar_limiter_new(&spec, &options, &limiter), TOLLBAR_E_OUT_OF_RANGE);
        assert_int_equal(tollbar_clock_now(options.clock, &now), TOLLBAR_E_OUT_OF_RANGE);
    }
    assert_null(limiter);
    assert_int_equal(now, 7);
}

static void c6_what_is_not_known_is_refused(void **state) {
    tollbar_limiter_options options = TOLLBAR_LIMITER_OPTIONS_INIT;
    tollbar_policy_spec spec = plain(10, SEC, 10);
    tollbar_limiter *limiter = NULL;
    uint32_t bit;
    (void)state;
    for (bit = 3; bit < 32; bit++) {
        spec.flags = UINT32_C(1) << bit;
        assert_refused(&spec, TOLLBAR_E_RESERVED);
    }
    spec.flags = 0;
    /* `init` without its flag, which the library would ignore. */
    spec.init = 1;
    assert_refused(&spec, TOLLBAR_E_RESERVED);
    spec.init = 0;
    options.credit = TOLLBAR_CREDIT_ON + 1;
    assert_int_equal(tollbar_limiter_new(&spec, &options, &limiter), TOLLBAR_E_OUT_OF_RANGE);
    assert_null(limiter);
}

/* A policy of a caller that was compiled with a later header. */
struct newer_spec {
    tollbar_policy_spec known;
    uint64_t later[4];
};

static void c6_a_newer_struct_is_read_if_its_tail_is_zero(void **state) {
    struct newer_spec newer;
    unsigned char *tail = (unsigned char *)newer.later;
    size_t i;
    (void)state;
    memset(&newer, 0, sizeof newer);
    newer.known = plain(10, SEC, 10);
    newer.known.struct_size = (uint32_t)sizeof newer;
    assert_taken(&newer.known);
    for (i = 0; i < sizeof newer.later; i++) {
        tail[i] = 1;
        assert_refused(&newer.known, TOLLBAR_E_RESERVED);
        tail[i] = 0;
    }
}

static void c6_a_newer_struct_is_written_with_a_zero_tail(void **state) {
    struct newer_spec newer;
    (void)state;
    memset(&newer, 0xee, sizeof newer);
    newer.known.struct_size = (uint32_t)sizeof newer;
    assert_int_equal(tollbar_policy_spec_parse("7/s", 3, &newer.known, NULL), 0);
    assert_int_equal(newer.known.struct_size, sizeof newer);
    assert_int_equal(newer.known.limit, 7);
    assert_true((newer.later[0] | newer.later[1] | newer.later[2] | newer.later[3]) == 0);
    assert_taken(&newer.known);
}

static void c6_sizes_that_no_version_has_are_refused(void **state) {
    static const uint32_t garbage[] = {0, 1, 4, 79, 4097, 65536, 0x80000000u, UINT32_MAX};
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(garbage); i++) {
        tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
        tollbar_policy_spec spec = plain(10, SEC, 10), before;
        char line[TOLLBAR_POLICY_TEXT_MAX] = "untouched";
        tollbar_policy *policy = NULL;
        spec.struct_size = garbage[i];
        before = spec;
        assert_refused(&spec, TOLLBAR_E_STRUCT_SIZE);
        assert_int_equal(tollbar_policy_new(&spec, &policy), TOLLBAR_E_STRUCT_SIZE);
        assert_int_equal(tollbar_policy_spec_print(&spec, line, sizeof line, NULL), TOLLBAR_E_STRUCT_SIZE);
        assert_int_equal(tollbar_policy_spec_parse("7/s", 3, &spec, NULL), TOLLBAR_E_STRUCT_SIZE);
        assert_memory_equal(&spec, &before, sizeof spec);
        assert_string_equal(line, "untouched");
        assert_null(policy);

        spec.struct_size = (uint32_t)sizeof spec;
        if (garbage[i] == 79) /* too large for a spec only */
            continue;
        error.struct_size = garbage[i];
        assert_int_equal(tollbar_policy_spec_parse("7/s", 3, &spec, &error), TOLLBAR_E_STRUCT_SIZE);
        assert_int_equal(tollbar_policy_spec_parse("wrong", 5, &spec, &error), TOLLBAR_E_STRUCT_SIZE);
        assert_null(error.expected);
    }
}

static void compiled_policies_may_lie_in_the_callers_memory(void **state) {
    tollbar_policy_spec spec = plain(10, SEC, 3);
    const size_t size = tollbar_policy_size(), align = tollbar_policy_align();
    unsigned char *memory = malloc(size + 2 * align), *place, *copy = malloc(size + align);
    tollbar_policy *policy = NULL;
    tollbar_cell cell = TOLLBAR_CELL_INIT;
    (void)state;
    assert_true(size > 0 && align > 0 && (align & (align - 1)) == 0 && size % align == 0);
    place = memory + (align - (uintptr_t)memory % align) % align;
    assert_int_equal(tollbar_policy_init_in(place, size - 1, &spec, &policy), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_policy_init_in(place + 1, size, &spec, &policy), TOLLBAR_E_MISALIGNED);
    assert_int_equal(tollbar_policy_init_in(NULL, size, &spec, &policy), TOLLBAR_E_NULL);
    spec.period_ns = 0;
    assert_int_equal(tollbar_policy_init_in(place, size, &spec, &policy), TOLLBAR_E_PERIOD_ZERO);
    assert_null(policy);
    spec.period_ns = SEC;
    assert_int_equal(tollbar_policy_init_in(place, size, &spec, &policy), 0);
    assert_ptr_equal(policy, place);
    /* A compiled policy has no pointers, so a copy works after the original is overwritten. */
    memcpy(copy, policy, size);
    memset(place, 0xff, size);
    policy = (tollbar_policy *)(void *)copy;
    assert_int_equal(tollbar_cell_check_at(&cell, policy, 3, 0, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_cell_check_at(&cell, policy, 1, 0, NULL), TOLLBAR_DENIED);
    free(memory);
    free(copy);
}

static void only_one_word_algorithms_compile_for_cells(void **state) {
    uint32_t algorithm;
    (void)state;
    for (algorithm = 0; algorithm < 11; algorithm++) {
        tollbar_policy_spec spec = of_algorithm(algorithm);
        tollbar_policy *policy = NULL;
        const int more =
            algorithm == TOLLBAR_ALGORITHM_SLIDING_WINDOW || algorithm == TOLLBAR_ALGORITHM_SLIDING_LOG;
        assert_int_equal(tollbar_policy_new(&spec, &policy), more ? TOLLBAR_E_NOT_ONE_WORD : 0);
        assert_true(more == (policy == NULL));
        tollbar_policy_free(policy);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_reason_has_its_code),
        cmocka_unit_test(a_list_has_two_buckets),
        cmocka_unit_test(m6_the_worst_case_is_told),
        cmocka_unit_test(c3_the_last_time_is_told),
        cmocka_unit_test(a_refill_is_told),
        cmocka_unit_test(what_no_word_can_hold_is_refused),
        cmocka_unit_test(options_of_other_algorithms_are_refused),
        cmocka_unit_test(choices_out_of_range_are_refused),
        cmocka_unit_test(c6_what_is_not_known_is_refused),
        cmocka_unit_test(c6_a_newer_struct_is_read_if_its_tail_is_zero),
        cmocka_unit_test(c6_a_newer_struct_is_written_with_a_zero_tail),
        cmocka_unit_test(c6_sizes_that_no_version_has_are_refused),
        cmocka_unit_test(compiled_policies_may_lie_in_the_callers_memory),
        cmocka_unit_test(only_one_word_algorithms_compile_for_cells),
    };
    return cmocka_run_group_tests_name("policy struct", tests, NULL, NULL);
}
