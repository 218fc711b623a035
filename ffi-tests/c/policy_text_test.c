/* Policies as text: the struct's fields, buffers and lengths. The texts and their errors are in
 * vectors_test.c. */
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
            /* Half of the bytes are letters of the grammar, so that some texts get past the first
             * words. */
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
        cmocka_unit_test(the_longest_text_fits),
        cmocka_unit_test(a_small_buffer_gets_nothing_but_the_length),
        cmocka_unit_test(c2_a_good_text_leaves_the_error_alone),
        cmocka_unit_test(the_text_needs_no_nul),
        cmocka_unit_test(any_bytes_are_refused_with_a_code),
    };
    return cmocka_run_group_tests_name("policy text", tests, NULL, NULL);
}
