/* Policies as text: parse, print, and the errors of a text that does not parse. */
#include "test.h"

#include <stdio.h>

static void reads_the_parts(void **state) {
    tollbar_policy_spec spec = spec_of("10/100ms burst 20 init 0");
    (void)state;
    assert_int_equal(spec.struct_size, sizeof spec);
    assert_int_equal(spec.algorithm, TOLLBAR_ALGORITHM_GCRA);
    assert_int_equal(spec.limit, 10);
    assert_int_equal(spec.period_ns, 100 * MS);
    assert_int_equal(spec.burst, 20);
    assert_int_equal(spec.init, 0);
    assert_int_equal(spec.flags, TOLLBAR_POLICY_HAS_INIT);

    spec = spec_of("120/60s algo sliding-window segments 6 mode strict");
    assert_int_equal(spec.algorithm, TOLLBAR_ALGORITHM_SLIDING_WINDOW);
    assert_int_equal(spec.burst, 120);
    assert_int_equal(spec.segments, 6);
    assert_int_equal(spec.mode, TOLLBAR_MODE_STRICT);

    spec = spec_of("3/min burst 3 algo interval anchor first");
    assert_int_equal(spec.algorithm, TOLLBAR_ALGORITHM_INTERVAL);
    assert_int_equal(spec.anchor, TOLLBAR_ANCHOR_FIRST);

    spec = spec_of("250000000/s burst 1mb unit bytes");
    assert_int_equal(spec.burst, 1000000);
    assert_int_equal(spec.unit, TOLLBAR_UNIT_BYTES);

    spec = spec_of("100/s algo warm-up warm 2s cold 4");
    assert_int_equal(spec.warm_up_ns, 2 * SEC);
    assert_int_equal(spec.cold, 4);

    spec = spec_of("100/s algo pacer slack 7");
    assert_int_equal(spec.slack, 7);

    spec = spec_of("5/s borrow");
    assert_int_equal(spec.flags, TOLLBAR_POLICY_BORROW);

    spec = spec_of("5/s algo sliding-log count rejected");
    assert_int_equal(spec.flags, TOLLBAR_POLICY_COUNT_REJECTED);
}

static void assert_prints(const char *text, const char *want) {
    tollbar_policy_spec spec = spec_of(text), again;
    char line[TOLLBAR_POLICY_TEXT_MAX];
    size_t length = 0;
    assert_int_equal(tollbar_policy_spec_print(&spec, line, sizeof line, &length), 0);
    assert_string_equal(line, want);
    assert_int_equal(length, strlen(want));
    again = spec_of(line);
    assert_memory_equal(&spec, &again, sizeof spec);
}

static void prints_canonically_and_reads_back_the_same(void **state) {
    static const char *const same[] = {
        "100/s",
        "1000/day",
        "0/s",
        "10/100ms burst 20 init 0",
        "5/s borrow",
        "5/s init 3 borrow",
        "3/min algo interval anchor first",
        "120/min algo fixed-window count rejected",
        "120/min algo weighted-window",
        "120/min algo sliding-window segments 6 mode strict",
        "120/min algo sliding-window segments 60 mode interpolated",
        "2/min algo sliding-log count rejected",
        "100/s algo pacer slack 10",
        "100/s burst 400 algo warm-up warm 2s cold 5",
        "250000000/s burst 1000000 unit bytes",
    };
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(same); i++)
        assert_prints(same[i], same[i]);
    assert_prints("  100 / 1000ms\tburst 100 algo token-bucket ", "100/s");
    assert_prints("120/60s algo sliding-window mode n segments 10", "120/min algo sliding-window");
    assert_prints("250000000/s burst 1mb unit bytes", "250000000/s burst 1000000 unit bytes");
    assert_prints("2/s algo leaky-bucket", "2/s");
}

static void the_longest_text_fits(void **state) {
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    char line[TOLLBAR_POLICY_TEXT_MAX];
    size_t length = 0;
    (void)state;
    spec.limit = UINT64_MAX;
    spec.period_ns = UINT64_MAX;
    spec.burst = UINT64_MAX - 1;
    spec.init = UINT64_MAX - 2;
    spec.flags = TOLLBAR_POLICY_HAS_INIT | TOLLBAR_POLICY_BORROW;
    spec.unit = TOLLBAR_UNIT_BYTES;
    assert_int_equal(tollbar_policy_spec_print(&spec, line, sizeof line, &length), 0);
    assert_int_equal(length, strlen(line));
    /* No valid policy has a longer text. */
    spec.algorithm = TOLLBAR_ALGORITHM_WARM_UP;
    spec.init = 0;
    spec.flags = 0;
    spec.warm_up_ns = UINT64_MAX;
    spec.cold = 1000;
    assert_int_equal(tollbar_policy_spec_print(&spec, line, sizeof line, &length), 0);
}

static void a_small_buffer_gets_nothing_but_the_length(void **state) {
    tollbar_policy_spec spec = spec_of("100/s burst 20");
    char line[] = "..............";
    size_t length = 0;
    (void)state;
    assert_int_equal(tollbar_policy_spec_print(&spec, line, 14, &length), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(length, 14);
    assert_string_equal(line, "..............");
    assert_int_equal(tollbar_policy_spec_print(&spec, line, 0, NULL), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_policy_spec_print(&spec, line, 15, NULL), 0);
    assert_string_equal(line, "100/s burst 20");
}

struct wrong {
    const char *text;
    int32_t code;
    uint64_t column;
    /* A part of the text that names what is expected. */
    const char *expected;
};

static const struct wrong wrongs[] = {
    {"", TOLLBAR_E_SYNTAX, 1, "a limit"},
    {"ten/s", TOLLBAR_E_SYNTAX, 1, "a limit"},
    {"100", TOLLBAR_E_SYNTAX, 4, "`/`"},
    {"100/", TOLLBAR_E_SYNTAX, 5, "a period"},
    {"100/fortnight", TOLLBAR_E_SYNTAX, 5, "a period"},
    {"100/s burst", TOLLBAR_E_SYNTAX, 12, "a burst"},
    {"100/s burst x", TOLLBAR_E_SYNTAX, 13, "a burst"},
    {"100/s bursts 20", TOLLBAR_E_SYNTAX, 7, "`burst`"},
    {"100/s 5", TOLLBAR_E_SYNTAX, 7, "`burst`"},
    {"100/s; 5/min; 1/h", TOLLBAR_E_SYNTAX, 13, "a list has two"},
    {"100/s; 5/min borrow", TOLLBAR_E_LIST, 8, "list"},
    {"100/s algo interval anchor middle", TOLLBAR_E_SYNTAX, 28, "`first`"},
    {"100/s algo sliding-window mode odd", TOLLBAR_E_SYNTAX, 32, "`strict`"},
    {"100/s algo fixed-window count all", TOLLBAR_E_SYNTAX, 31, "`rejected`"},
    {"100/s unit words", TOLLBAR_E_SYNTAX, 12, "`bytes`"},
    {"100/s burst 1mb", TOLLBAR_E_SYNTAX, 14, "`unit bytes`"},
    {"100/s algo warm-up warm x", TOLLBAR_E_SYNTAX, 25, "a time"},
    {"18446744073709551616/s", TOLLBAR_E_NUMBER_TOO_LARGE, 1, "a limit"},
    {"1/18446744073709551615s", TOLLBAR_E_NUMBER_TOO_LARGE, 3, "a period"},
    {"100/s burst 99999999999999999999", TOLLBAR_E_NUMBER_TOO_LARGE, 13, "a burst"},
    {"100/s algo sliding-window segments 4294967296", TOLLBAR_E_NUMBER_TOO_LARGE, 36, "segments"},
    {"100/s algo tokens", TOLLBAR_E_ALGORITHM, 12, "`gcra`"},
    {"100/s burst 5 burst 5", TOLLBAR_E_DUPLICATE_OPTION, 15, "once"},
    {"100/s algo gcra algo gcra", TOLLBAR_E_DUPLICATE_OPTION, 17, "once"},
    {"100/0s", TOLLBAR_E_PERIOD_ZERO, 5, "period"},
    {"100/s burst 0", TOLLBAR_E_BURST_ZERO, 7, "burst"},
    {"100/s burst 5 init 6", TOLLBAR_E_INIT_ABOVE_BURST, 15, "init"},
    {"100/s slack 5", TOLLBAR_E_OPTION_MISMATCH, 7, "option"},
    {"100/s algo pacer borrow", TOLLBAR_E_OPTION_MISMATCH, 18, "option"},
    {"100/s algo sliding-window segments 0", TOLLBAR_E_SEGMENTS, 27, "segments"},
    {"100/s algo sliding-window segments 1025", TOLLBAR_E_SEGMENTS, 27, "segments"},
    {"100/s algo warm-up", TOLLBAR_E_WARM_UP, 7, "warm-up"},
    {"100/s algo warm-up warm 2s cold 1001", TOLLBAR_E_WARM_UP, 28, "cold"},
    {"16777217/s algo sliding-log", TOLLBAR_E_LOG_TOO_LARGE, 1, "16777216"},
    /* The text parses and its numbers are in range, but the algorithm cannot count them. The error is found when the policy is compiled. */
    {"100/s algo warm-up warm 2s burst 18446744073709551615", TOLLBAR_E_BURST_TOO_LARGE, 28, "burst"},
    {"18446744073709551615/ns burst 18446744073709551615", TOLLBAR_E_RATE_TOO_HIGH, 1, "rate"},
};

static void errors_name_the_column_and_what_was_expected(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(wrongs); i++) {
        const struct wrong *wrong = &wrongs[i];
        tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
        tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT, before = spec;
        tollbar_limiter *limiter = NULL;
        tollbar_policy *policy = NULL;
        int32_t code = tollbar_policy_spec_parse(wrong->text, strlen(wrong->text), &spec, &error);
        if (code != wrong->code || error.code != code || error.column != wrong->column ||
            strstr(error.expected, wrong->expected) == NULL)
            fail_msg("\"%s\": %s (%d) at column %u: %s", wrong->text, tollbar_errname(code), (int)error.code,
                     (unsigned)error.column, error.expected);
        assert_int_equal(error.struct_size, sizeof error);
        assert_memory_equal(&spec, &before, sizeof spec);
        assert_int_equal(tollbar_policy_spec_parse(wrong->text, strlen(wrong->text), &spec, NULL), code);
        assert_int_equal(tollbar_limiter_from_text(wrong->text, &limiter, NULL), code);
        assert_int_equal(tollbar_policy_from_text(wrong->text, &policy, NULL), code);
        assert_null(limiter);
        assert_null(policy);
    }
}

static void c2_a_good_text_leaves_the_error_alone(void **state) {
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    (void)state;
    error.code = 77;
    error.column = 78;
    assert_int_equal(tollbar_policy_spec_parse("1/s", 3, &spec, &error), 0);
    assert_int_equal(error.code, 77);
    assert_int_equal(error.column, 78);
    assert_null(error.expected);
}

static void the_text_needs_no_nul(void **state) {
    static const char text[] = {'7', '/', 's', ' ', 'b'};
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    (void)state;
    assert_int_equal(tollbar_policy_spec_parse(text, 3, &spec, NULL), 0);
    assert_int_equal(spec.limit, 7);
    assert_int_equal(tollbar_policy_spec_parse(text, 5, &spec, NULL), TOLLBAR_E_SYNTAX);
    assert_int_equal(tollbar_policy_spec_parse(text, 2, &spec, NULL), TOLLBAR_E_SYNTAX);
    /* A NUL inside the text is a wrong byte like others. */
    assert_int_equal(tollbar_policy_spec_parse("7/s\0 burst 9", 12, &spec, NULL), TOLLBAR_E_SYNTAX);
}

static void any_bytes_are_refused_with_a_code(void **state) {
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    uint64_t seed = 1;
    char text[40];
    int round;
    (void)state;
    for (round = 0; round < 20000; round++) {
        size_t i, length = (size_t)(seed >> 33) % sizeof text;
        for (i = 0; i < length; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            /* Half of the bytes are letters of the grammar, so that some texts get past the first words. */
            text[i] = (char)((seed >> 60) & 1 ? "0123/ smburstalgoinit"[(seed >> 33) % 21] : (char)(seed >> 33));
        }
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        if (tollbar_policy_spec_parse(text, length, &spec, &error) != 0)
            assert_in_range(error.column, 1, length + 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_parts),
        cmocka_unit_test(prints_canonically_and_reads_back_the_same),
        cmocka_unit_test(the_longest_text_fits),
        cmocka_unit_test(a_small_buffer_gets_nothing_but_the_length),
        cmocka_unit_test(errors_name_the_column_and_what_was_expected),
        cmocka_unit_test(c2_a_good_text_leaves_the_error_alone),
        cmocka_unit_test(the_text_needs_no_nul),
        cmocka_unit_test(any_bytes_are_refused_with_a_code),
    };
    return cmocka_run_group_tests_name("policy text", tests, NULL, NULL);
}
