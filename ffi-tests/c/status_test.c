/* Results, their names, and the version. */
#include "test.h"

#include <stdio.h>

struct code {
    int32_t code;
    int32_t promised;
    const char *name;
};

#define CODE(name, number) { name, number, #name }

/* The test has the numbers as literals, because the library promises not to change them. */
static const struct code codes[] = {
    CODE(TOLLBAR_ALLOWED, 0),
    CODE(TOLLBAR_DENIED, 1),
    CODE(TOLLBAR_NEVER, 2),
    CODE(TOLLBAR_E_NULL, -1),
    CODE(TOLLBAR_E_MISALIGNED, -2),
    CODE(TOLLBAR_E_STRUCT_SIZE, -3),
    CODE(TOLLBAR_E_RESERVED, -4),
    CODE(TOLLBAR_E_OUT_OF_RANGE, -5),
    CODE(TOLLBAR_E_LIMITS, -6),
    CODE(TOLLBAR_E_CLOSED, -7),
    CODE(TOLLBAR_E_SYNTAX, -10),
    CODE(TOLLBAR_E_NUMBER_TOO_LARGE, -11),
    CODE(TOLLBAR_E_ALGORITHM, -12),
    CODE(TOLLBAR_E_DUPLICATE_OPTION, -13),
    CODE(TOLLBAR_E_PERIOD_ZERO, -20),
    CODE(TOLLBAR_E_BURST_ZERO, -21),
    CODE(TOLLBAR_E_RATE_TOO_HIGH, -22),
    CODE(TOLLBAR_E_BURST_TOO_LARGE, -23),
    CODE(TOLLBAR_E_INIT_ABOVE_BURST, -24),
    CODE(TOLLBAR_E_OPTION_MISMATCH, -25),
    CODE(TOLLBAR_E_SEGMENTS, -26),
    CODE(TOLLBAR_E_WARM_UP, -27),
    CODE(TOLLBAR_E_LOG_TOO_LARGE, -28),
    CODE(TOLLBAR_E_NOT_ONE_WORD, -29),
    CODE(TOLLBAR_E_BAN, -30),
    CODE(TOLLBAR_E_QUOTA, -32),
    CODE(TOLLBAR_E_KNOTS, -35),
    CODE(TOLLBAR_E_CALENDAR, -36),
    CODE(TOLLBAR_E_WALL_CLOCK, -37),
    CODE(TOLLBAR_E_LIST, -31),
    CODE(TOLLBAR_E_CLASSES, -33),
    CODE(TOLLBAR_E_NO_SUCH_CLASS, -34),
    CODE(TOLLBAR_E_NO_MEMORY, -40),
    CODE(TOLLBAR_E_BUFFER_TOO_SMALL, -41),
    CODE(TOLLBAR_E_POLICY_CHANGES, -42),
    CODE(TOLLBAR_E_CLASS_NUMBER, -44),
    CODE(TOLLBAR_E_CLASS_RATE, -45),
    CODE(TOLLBAR_E_GUARANTEE, -46),
    CODE(TOLLBAR_E_CLASS_TREE, -47),
    CODE(TOLLBAR_E_CAPACITY, -50),
    CODE(TOLLBAR_E_POLICY_COUNT, -51),
    CODE(TOLLBAR_E_NO_SUCH_POLICY, -52),
    CODE(TOLLBAR_E_MIXED_POLICIES, -53),
    CODE(TOLLBAR_E_POLICY_VERSIONS, -54),
    CODE(TOLLBAR_E_EXEMPTIONS_FULL, -55),
    CODE(TOLLBAR_E_MISSING_KEY, -56),
    CODE(TOLLBAR_E_UNSUPPORTED, -57),
    CODE(TOLLBAR_E_ADDRESS, -58),
    CODE(TOLLBAR_E_RECEIPT, -59),
    CODE(TOLLBAR_E_NOT_A_TABLE, -60),
    CODE(TOLLBAR_E_TABLE_VERSION, -61),
    CODE(TOLLBAR_E_TRUNCATED, -62),
    CODE(TOLLBAR_E_CORRUPT, -63),
    CODE(TOLLBAR_E_OTHER_CAPACITY, -64),
    CODE(TOLLBAR_E_OTHER_POLICIES, -65),
    CODE(TOLLBAR_E_OTHER_OPTIONS, -66),
    CODE(TOLLBAR_E_BOOT_ID, -67),
    CODE(TOLLBAR_E_SLOTS_INVALID, -68),
    CODE(TOLLBAR_E_OVERRIDES_FULL, -69),
    CODE(TOLLBAR_E_OPEN, -70),
    CODE(TOLLBAR_E_READ, -71),
    CODE(TOLLBAR_E_NO_SPACE, -72),
    CODE(TOLLBAR_E_MAP, -73),
    CODE(TOLLBAR_E_LINK, -74),
    CODE(TOLLBAR_E_LOCK, -75),
    CODE(TOLLBAR_E_RANDOM, -76),
    CODE(TOLLBAR_E_SYNC, -77),
    CODE(TOLLBAR_E_OWNER, -78),
    CODE(TOLLBAR_E_UNSEALED, -79),
    CODE(TOLLBAR_E_LEASE_ALGORITHM, -80),
    CODE(TOLLBAR_E_LEASE_NODES, -81),
    CODE(TOLLBAR_E_LEASE_LIFE, -82),
    CODE(TOLLBAR_E_LEASE_BURST, -83),
    CODE(TOLLBAR_E_LEASE_TOO_LARGE, -84),
    CODE(TOLLBAR_E_LEASE_NAME, -85),
    CODE(TOLLBAR_E_NOT_A_LEASE, -86),
    CODE(TOLLBAR_E_URL, -87),
    CODE(TOLLBAR_E_RUNNING, -88),
    CODE(TOLLBAR_E_UNREPORTED, -89),
    CODE(TOLLBAR_E_CLIENT_LEASES, -91),
    CODE(TOLLBAR_E_STORE_ALGORITHM, -92),
    CODE(TOLLBAR_E_STORE_NUMBERS, -93),
    CODE(TOLLBAR_E_STORE_VALUE, -94),
    CODE(TOLLBAR_E_STORE_REPLY, -95),
    CODE(TOLLBAR_E_STORE_KEY, -96),
    CODE(TOLLBAR_E_INTERNAL, -90),
    CODE(TOLLBAR_E_TICKET, -100),
    CODE(TOLLBAR_E_IN_FLIGHT_FULL, -101),
    CODE(TOLLBAR_E_OWNERS_FULL, -102),
    CODE(TOLLBAR_E_PID_NAMESPACE, -103),
    CODE(TOLLBAR_E_TIME_NAMESPACE, -104),
    CODE(TOLLBAR_E_OTHER_BOOT, -105),
    CODE(TOLLBAR_E_SLOT_ROOM, -106),
};

static void c7_numbers_of_results_are_as_promised(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(codes); i++)
        assert_int_equal(codes[i].code, codes[i].promised);
    assert_true(TOLLBAR_NO_TIME == UINT64_MAX);
}

static void c7_numbers_of_choices_are_as_promised(void **state) {
    (void)state;
    assert_int_equal(TOLLBAR_ALGORITHM_GCRA, 0);
    assert_int_equal(TOLLBAR_ALGORITHM_INTERVAL, 1);
    assert_int_equal(TOLLBAR_ALGORITHM_FIXED_WINDOW, 2);
    assert_int_equal(TOLLBAR_ALGORITHM_WEIGHTED_WINDOW, 3);
    assert_int_equal(TOLLBAR_ALGORITHM_SLIDING_WINDOW, 4);
    assert_int_equal(TOLLBAR_ALGORITHM_SLIDING_LOG, 5);
    assert_int_equal(TOLLBAR_ALGORITHM_PACER, 6);
    assert_int_equal(TOLLBAR_ALGORITHM_WARM_UP, 7);
    assert_int_equal(TOLLBAR_ALGORITHM_QUOTA, 8);
    assert_int_equal(TOLLBAR_ALGORITHM_CURVE, 9);
    assert_int_equal(TOLLBAR_ALGORITHM_LEVEL_REFILL, 10);
    assert_int_equal(TOLLBAR_ALGORITHM_CALENDAR, 11);
    assert_int_equal(TOLLBAR_ANCHOR_EPOCH, 0);
    assert_int_equal(TOLLBAR_ANCHOR_FIRST, 1);
    assert_int_equal(TOLLBAR_MODE_N, 0);
    assert_int_equal(TOLLBAR_MODE_STRICT, 1);
    assert_int_equal(TOLLBAR_MODE_INTERPOLATED, 2);
    assert_int_equal(TOLLBAR_UNIT_PERMITS, 0);
    assert_int_equal(TOLLBAR_UNIT_BYTES, 1);
    assert_int_equal(TOLLBAR_POLICY_BORROW, 1);
    assert_int_equal(TOLLBAR_POLICY_COUNT_REJECTED, 2);
    assert_int_equal(TOLLBAR_POLICY_HAS_INIT, 4);
    assert_int_equal(TOLLBAR_CLOCK_TSC, 0);
    assert_int_equal(TOLLBAR_CLOCK_MONOTONIC, 1);
    assert_int_equal(TOLLBAR_CLOCK_WALL, 3);
    assert_true(TOLLBAR_TIME_ZERO == UINT64_C(1741824000000000000));
    assert_int_equal(TOLLBAR_CLOCK_COARSE, 2);
    assert_int_equal(TOLLBAR_ON_FULL_DENY, 3);
    assert_int_equal(TOLLBAR_ON_FULL_INHERIT, 1);
    assert_int_equal(TOLLBAR_ON_FULL_ALLOW, 2);
    assert_int_equal(TOLLBAR_ON_FULL_EVICT_NEAREST, 0);
    assert_int_equal(TOLLBAR_MISSING_DENY, 0);
    assert_int_equal(TOLLBAR_MISSING_ALLOW, 1);
    assert_int_equal(TOLLBAR_MISSING_REPORT, 2);
    assert_int_equal(TOLLBAR_TABLE_HAS_SEED, 1);
    assert_int_equal(TOLLBAR_TABLE_SMALL_PAGES, 2);
}

static void errname_is_the_macro(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(codes); i++)
        assert_string_equal(tollbar_errname(codes[i].code), codes[i].name);
}

static void strerror_says_something_of_its_own_for_each(void **state) {
    size_t i, j;
    (void)state;
    for (i = 0; i < COUNT(codes); i++) {
        const char *text = tollbar_strerror(codes[i].code);
        assert_non_null(text);
        assert_true(strlen(text) > 0);
        assert_null(strchr(text, '\n'));
        /* Every call returns the same static text. */
        assert_ptr_equal(text, tollbar_strerror(codes[i].code));
        for (j = 0; j < i; j++)
            assert_string_not_equal(text, tollbar_strerror(codes[j].code));
    }
}

static void unknown_codes_have_a_text_and_a_name(void **state) {
    static const int32_t unknown[] = {3, 4, -8, -9, -14, -19, -38, -43, -49,
                                      -97, INT32_MAX, INT32_MIN};
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(unknown); i++) {
        assert_string_equal(tollbar_errname(unknown[i]), "TOLLBAR_E_UNKNOWN");
        assert_string_equal(tollbar_strerror(unknown[i]), "unknown result");
    }
}

static void version_macros_are_the_library(void **state) {
    char text[64];
    (void)state;
    assert_int_equal(tollbar_version(), TOLLBAR_VERSION);
    assert_string_equal(tollbar_version_string(), TOLLBAR_VERSION_STRING);
    snprintf(text, sizeof text, "%d.%d.%d", TOLLBAR_VERSION_MAJOR, TOLLBAR_VERSION_MINOR, TOLLBAR_VERSION_PATCH);
    assert_string_equal(text, TOLLBAR_VERSION_STRING);
}

static void abi_symbol_is_1(void **state) {
    (void)state;
    assert_int_equal(tollbar_abi_1, 1);
}

static void c1_refusals_and_errors_are_true_in_an_if(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(codes); i++)
        assert_true((codes[i].code == 0) == (i == 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c7_numbers_of_results_are_as_promised),
        cmocka_unit_test(c7_numbers_of_choices_are_as_promised),
        cmocka_unit_test(c1_refusals_and_errors_are_true_in_an_if),
        cmocka_unit_test(errname_is_the_macro),
        cmocka_unit_test(strerror_says_something_of_its_own_for_each),
        cmocka_unit_test(unknown_codes_have_a_text_and_a_name),
        cmocka_unit_test(version_macros_are_the_library),
        cmocka_unit_test(abi_symbol_is_1),
    };
    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
