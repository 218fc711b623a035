/* Policies as structs: quotas, curves and calendars. */
#include "policy_spec.h"

#include <math.h>
#include <stdio.h>

/* A quota's only period is TOLLBAR_FOREVER, and its text has that period's name. */
static void a_quota_lasts_for_ever(void **state) {
    tollbar_policy_spec spec = of_algorithm(TOLLBAR_ALGORITHM_QUOTA);
    tollbar_limiter *limiter = NULL;
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    char text[TOLLBAR_POLICY_TEXT_MAX];
    (void)state;
    assert_int_equal(tollbar_policy_spec_print(&spec, text, sizeof text, NULL), 0);
    assert_string_equal(text, "10/forever");
    assert_int_equal(tollbar_limiter_from_text(text, &limiter, NULL), 0);
    assert_int_equal(tollbar_limiter_check_at(limiter, 10, 1, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_limiter_check_at(limiter, 1, UINT64_C(1) << 60, &decision), TOLLBAR_DENIED);
    assert_true(decision.retry_after_ns == TOLLBAR_NO_TIME);
    tollbar_limiter_free(limiter);
    spec.period_ns = SEC;
    assert_refused(&spec, TOLLBAR_E_QUOTA);
}

static double square(double time, void *context) {
    uint64_t *calls = context;
    ++*calls;
    return time * time;
}

static double half(double time, void *context) {
    (void)context;
    return time / 2;
}

/* S54 in C: tollbar_policy_spec_curve makes a curve that follows a function. It refuses a function
 * that falls or does not end at 1, and tells the time and the value of the fault. */
static void s54_a_curve_follows_a_function(void **state) {
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT, sampled = TOLLBAR_POLICY_SPEC_INIT, parsed = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_curve_fit fit = TOLLBAR_CURVE_FIT_INIT;
    tollbar_limiter *limiter = NULL;
    char text[TOLLBAR_POLICY_TEXT_MAX];
    size_t length = 0, n;
    uint64_t calls = 0, taken = 0, sum = 0;
    static double shares[TOLLBAR_CURVE_TIMES];
    (void)state;
    assert_int_equal(tollbar_policy_spec_curve(1000000, 60 * SEC, square, &calls, &spec, &fit), 0);
    assert_int_equal(calls, TOLLBAR_CURVE_TIMES);
    assert_int_equal(fit.code, 0);
    assert_string_equal(fit.expected, "");
    assert_true(fit.error > 0 && fit.error < 0.001 && fabs(fit.value - fit.time * fit.time) < 1e-6);
    assert_int_equal(tollbar_limiter_new(&spec, NULL, &limiter), 0);
    for (n = 1; n <= 1000; n++) {
        const uint64_t offset = n == 1000 ? 60 * SEC - 1 : n * 60 * SEC / 1000;
        assert_int_equal(tollbar_limiter_take_up_to_at(limiter, UINT64_MAX, HOUR + offset, &taken), 0);
        sum += taken;
        assert_true(sum + 1000 >= n * n && sum <= n * n + 1000);
    }
    assert_true(sum == 1000000);
    tollbar_limiter_free(limiter);
    assert_int_equal(tollbar_policy_spec_print(&spec, text, sizeof text, &length), 0);
    assert_int_equal(tollbar_policy_spec_parse(text, length, &parsed, NULL), 0);
    assert_memory_equal(&parsed, &spec, sizeof spec);
    for (n = 0; n < TOLLBAR_CURVE_TIMES; n++)
        shares[n] = square((double)n / (TOLLBAR_CURVE_TIMES - 1), &calls);
    assert_int_equal(tollbar_policy_spec_samples(1000000, 60 * SEC, shares, TOLLBAR_CURVE_TIMES, &sampled, NULL), 0);
    assert_memory_equal(&sampled, &spec, sizeof spec);

    assert_int_equal(tollbar_policy_spec_curve(100, 60 * SEC, half, NULL, &sampled, &fit), TOLLBAR_E_KNOTS);
    assert_true(fit.code == TOLLBAR_E_KNOTS && fit.time == 1 && fit.value == 0.5);
    assert_string_equal(fit.expected, "1: a slice gets its whole limit");
    assert_memory_equal(&sampled, &spec, sizeof spec);
    shares[20000] = NAN;
    assert_int_equal(tollbar_policy_spec_samples(100, 60 * SEC, shares, TOLLBAR_CURVE_TIMES, &sampled, &fit), TOLLBAR_E_OUT_OF_RANGE);
    assert_true(fit.time == 0.5 && isnan(fit.value));
    shares[20000] = 0.1;
    assert_int_equal(tollbar_policy_spec_samples(100, 60 * SEC, shares, TOLLBAR_CURVE_TIMES, &sampled, &fit), TOLLBAR_E_KNOTS);
    assert_true(fit.time == 0.5 && fit.value == 0.1);
    shares[20000] = 0.25;
    assert_int_equal(tollbar_policy_spec_samples(100, 0, shares, TOLLBAR_CURVE_TIMES, &sampled, &fit), TOLLBAR_E_PERIOD_ZERO);
}

/* S12 in C: the permits that have come at half a slice, and exactly the limit at its end. */
static void curves_by_numbers_and_by_name(void **state) {
    static const struct {
        const char *name;
        uint64_t half;
        uint16_t knots[4];
    } curves[] = {
        {"linear", 50, {0}},
        {"ln", 62, {0}},
        {"log2", 58, {0}},
        {"front", 75, {0, 5000, 10000, 10000}},
        {"0:0 50%:80% 100%:100%", 80, {5000, 8000, 10000, 10000}},
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof curves / sizeof *curves; i++) {
        tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT, made = of_algorithm(TOLLBAR_ALGORITHM_CURVE);
        tollbar_limiter *limiter = NULL;
        uint64_t taken = 0;
        char text[TOLLBAR_POLICY_TEXT_MAX], printed[TOLLBAR_POLICY_TEXT_MAX];
        const int length = snprintf(text, sizeof text, "100/min curve %s", curves[i].name);
        assert_int_equal(tollbar_policy_spec_parse(text, (size_t)length, &spec, NULL), 0);
        assert_int_equal(spec.algorithm, TOLLBAR_ALGORITHM_CURVE);
        assert_int_equal(tollbar_policy_spec_print(&spec, printed, sizeof printed, NULL), 0);
        assert_string_equal(printed, text);
        if (i == 0 || curves[i].knots[2] != 0) {
            made.limit = made.burst = 100;
            made.period_ns = 60 * SEC;
            memcpy(made.knots, curves[i].knots, sizeof curves[i].knots);
            assert_memory_equal(&made, &spec, sizeof spec);
        }
        assert_int_equal(tollbar_limiter_new(&spec, NULL, &limiter), 0);
        assert_int_equal(tollbar_limiter_take_up_to_at(limiter, UINT64_MAX, HOUR + 30 * SEC, &taken), 0);
        assert_true(taken == curves[i].half);
        assert_int_equal(tollbar_limiter_take_up_to_at(limiter, UINT64_MAX, HOUR + 60 * SEC - 1, &taken), 0);
        assert_true(taken == 100 - curves[i].half);
        tollbar_limiter_free(limiter);
    }
}

/* The windows are those of the calendar, and only on the wall clock. */
static void a_calendar_needs_the_wall_clock(void **state) {
    /* 2026-03-28 23:00 UTC: midnight of the Sunday on which Berlin loses an hour. */
    const uint64_t sunday = UINT64_C(1774738800) * SEC, hours = 23 * 3600 * SEC;
    tollbar_policy_spec spec = plain(10, TOLLBAR_MONTH, 10);
    tollbar_limiter_options options = TOLLBAR_LIMITER_OPTIONS_INIT;
    tollbar_limiter *limiter = NULL;
    tollbar_policy *policy = NULL;
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    char text[TOLLBAR_POLICY_TEXT_MAX];
    (void)state;
    spec.algorithm = TOLLBAR_ALGORITHM_CALENDAR;
    spec.from = 30;
    assert_int_equal(tollbar_policy_spec_print(&spec, text, sizeof text, NULL), 0);
    assert_string_equal(text, "10/month from 31");
    assert_int_equal(tollbar_limiter_new(&spec, NULL, &limiter), TOLLBAR_E_WALL_CLOCK);
    assert_int_equal(tollbar_policy_new(&spec, &policy), TOLLBAR_E_WALL_CLOCK);
    options.clock = TOLLBAR_CLOCK_WALL;
    spec = spec_of("10/day zone CET-1CEST,M3.5.0,M10.5.0/3");
    assert_true(spec.period_ns == TOLLBAR_DAY);
    assert_int_equal(tollbar_limiter_new(&spec, &options, &limiter), 0);
    assert_int_equal(tollbar_limiter_check_at(limiter, 10, sunday, NULL), TOLLBAR_ALLOWED);
    assert_int_equal(tollbar_limiter_check_at(limiter, 1, sunday + 1, &decision), TOLLBAR_DENIED);
    assert_true(decision.retry_after_ns == hours - 1);
    assert_int_equal(tollbar_limiter_check_at(limiter, 1, sunday + hours, NULL), TOLLBAR_ALLOWED);
    tollbar_limiter_free(limiter);
    limiter = limiter_of("10/s");
    assert_int_equal(tollbar_limiter_set_policy(limiter, &spec, TOLLBAR_KEEP_COUNT), TOLLBAR_E_WALL_CLOCK);
    tollbar_limiter_free(limiter);
    spec.zone[1] = UINT64_MAX;
    assert_int_equal(tollbar_policy_spec_validate(&spec), TOLLBAR_E_CALENDAR);
    spec = spec_of("10/year from 02-29");
    assert_true(spec.period_ns == TOLLBAR_YEAR && spec.from == 32 + 28);
    spec.from = 32 + 29;
    assert_int_equal(tollbar_policy_spec_validate(&spec), TOLLBAR_E_CALENDAR);
    assert_true(spec_of("10/week from sun").period_ns == TOLLBAR_WEEK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quota_lasts_for_ever),
        cmocka_unit_test(s54_a_curve_follows_a_function),
        cmocka_unit_test(curves_by_numbers_and_by_name),
        cmocka_unit_test(a_calendar_needs_the_wall_clock),
    };
    return cmocka_run_group_tests_name("policies with windows", tests, NULL, NULL);
}
