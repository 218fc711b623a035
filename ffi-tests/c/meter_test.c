/* Meters: green, yellow and red packets. */
#include "test.h"

static tollbar_meter single_rate(void) {
    tollbar_meter meter = TOLLBAR_METER_INIT;
    meter.committed_bytes = 1000;
    meter.committed_burst = 3000;
    meter.second_burst = 1500;
    return meter;
}

static int32_t color(const tollbar_meter *meter, tollbar_meter_state *state, uint64_t bytes, uint64_t now) {
    return tollbar_meter_color_at(meter, state, bytes, TOLLBAR_COLOR_GREEN, now);
}

/* RFC 2697: tokens fill the committed bucket first, and then the excess bucket. At both alignments
 * of a state. */
static void one_rate_and_two_bursts(void **state) {
    const tollbar_meter meter = single_rate();
    size_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        static uint64_t memory[2][4];
        tollbar_meter_state *of = (tollbar_meter_state *)(void *)(memory[i] + i);
        assert_int_equal(color(&meter, of, 3000, HOUR), TOLLBAR_COLOR_GREEN);
        assert_int_equal(color(&meter, of, 1500, HOUR), TOLLBAR_COLOR_YELLOW);
        assert_int_equal(color(&meter, of, 1, HOUR), TOLLBAR_COLOR_RED);
        assert_int_equal(color(&meter, of, 3000, HOUR + 4 * SEC), TOLLBAR_COLOR_GREEN);
        assert_int_equal(color(&meter, of, 1001, HOUR + 4 * SEC), TOLLBAR_COLOR_RED);
        assert_int_equal(color(&meter, of, 1000, HOUR + 4 * SEC), TOLLBAR_COLOR_YELLOW);
        assert_int_equal(memory[i][3 * (1 - i)], 0);
    }
}

/* A packet that an earlier meter has coloured does not get a better colour. */
static void colors_of_an_earlier_meter(void **state) {
    const tollbar_meter meter = single_rate();
    tollbar_meter_state of = {{0, 0, 0}};
    (void)state;
    assert_int_equal(tollbar_meter_color_at(&meter, &of, 1000, TOLLBAR_COLOR_RED, HOUR), TOLLBAR_COLOR_RED);
    assert_int_equal(tollbar_meter_color_at(&meter, &of, 1000, TOLLBAR_COLOR_YELLOW, HOUR), TOLLBAR_COLOR_YELLOW);
    assert_int_equal(tollbar_meter_color_at(&meter, &of, 1000, TOLLBAR_COLOR_YELLOW, HOUR), TOLLBAR_COLOR_RED);
    /* By the library's clock. Its state is fresh: on a machine that has just started, HOUR is in
     * the future. */
    of = (tollbar_meter_state){{0, 0, 0}};
    assert_int_equal(tollbar_meter_color(&meter, &of, 3000, TOLLBAR_COLOR_GREEN), TOLLBAR_COLOR_GREEN);
}

static void wrong_arguments(void **state) {
    tollbar_meter meter = single_rate();
    tollbar_meter_state of = {{0, 0, 0}};
    (void)state;
    assert_int_equal(tollbar_meter_validate(&meter), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_meter_validate(NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_meter_color(NULL, &of, 1, TOLLBAR_COLOR_GREEN), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_meter_color(&meter, NULL, 1, TOLLBAR_COLOR_GREEN), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_meter_color_at(&meter, NULL, 1, TOLLBAR_COLOR_GREEN, 0), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_meter_color_at(NULL, &of, 1, TOLLBAR_COLOR_GREEN, 0), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_meter_color(&meter, &of, 1, 3), TOLLBAR_E_OUT_OF_RANGE);
    meter.struct_size = 4;
    assert_int_equal(tollbar_meter_validate(&meter), TOLLBAR_E_STRUCT_SIZE);
    meter = single_rate();
    meter.reserved = 1;
    assert_int_equal(tollbar_meter_validate(&meter), TOLLBAR_E_RESERVED);
    meter = single_rate();
    meter.period_ns = 0;
    assert_int_equal(color(&meter, &of, 1, 0), TOLLBAR_E_PERIOD_ZERO);
    meter = single_rate();
    meter.committed_bytes = 16 * SEC;
    assert_int_equal(tollbar_meter_validate(&meter), TOLLBAR_E_RATE_TOO_HIGH);
    meter = single_rate();
    meter.peak_bytes = 999;
    assert_int_equal(tollbar_meter_validate(&meter), TOLLBAR_E_RATE_TOO_HIGH);
    meter = single_rate();
    meter.committed_burst = meter.second_burst = 0;
    assert_int_equal(tollbar_meter_validate(&meter), TOLLBAR_E_BURST_ZERO);
    meter.second_burst = UINT64_MAX;
    assert_int_equal(tollbar_meter_validate(&meter), TOLLBAR_E_BURST_TOO_LARGE);
    assert_int_equal(of.words[0] | of.words[1] | of.words[2], 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rate_and_two_bursts),
        cmocka_unit_test(colors_of_an_earlier_meter),
        cmocka_unit_test(wrong_arguments),
    };
    return cmocka_run_group_tests_name("meters", tests, NULL, NULL);
}
