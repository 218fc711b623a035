/* Schedules: the policy in force, the next change, texts and arguments that are wrong. */
#include "test.h"

static const char hours[] = "1000/min, mon-fri 09:00-18:00 100/min, zone CET-1CEST,M3.5.0,M10.5.0/3";

/* 2026-03-27, a Friday, at 09:00 in Berlin. On Sunday clocks are set forward by an hour. */
static const uint64_t friday = 1774598400 * SEC;

static uint64_t limit_at(const char *text, uint64_t unix_ns, uint64_t *until) {
    tollbar_policy_spec policy = TOLLBAR_POLICY_SPEC_INIT;
    assert_int_equal(tollbar_schedule_at(text, strlen(text), unix_ns, &policy, until, NULL), 0);
    return policy.limit;
}

static void business_hours(void **state) {
    uint64_t until = 0;
    (void)state;
    assert_int_equal(limit_at(hours, friday - 1, &until), 1000);
    assert_true(until == friday);
    assert_int_equal(limit_at(hours, friday, &until), 100);
    assert_true(until == friday + 9 * HOUR);
    /* Monday at 09:00 is an hour earlier than three days of 24 hours. */
    assert_int_equal(limit_at(hours, until, &until), 1000);
    assert_true(until == friday + 71 * HOUR);
    assert_int_equal(limit_at("5/s", friday, &until), 5);
    assert_true(until == TOLLBAR_NO_TIME);
    assert_int_equal(limit_at(hours, friday, NULL), 100);
}

static void texts(void **state) {
    static const char list[] = "10/s; 1000/day, sat sun 22:00-06:00 1/s burst 5, zone UTC";
    char buffer[TOLLBAR_SCHEDULE_TEXT_MAX];
    size_t length = 0;
    (void)state;
    assert_int_equal(tollbar_schedule_print(list, strlen(list), buffer, sizeof buffer, &length, NULL), 0);
    assert_string_equal(buffer, "10/s; 1000/day, sat sun 22:00-06:00 1/s burst 5");
    assert_int_equal(length, strlen(buffer));
    assert_int_equal(tollbar_schedule_print(list, strlen(list), buffer, length, &length, NULL), TOLLBAR_E_BUFFER_TOO_SMALL);
    assert_int_equal(tollbar_schedule_print(list, strlen(list), buffer, length + 1, NULL, NULL), 0);
}

static void arguments(void **state) {
    static const struct {
        const char *text;
        int32_t code;
        uint64_t column;
    } wrong[] = {
        {"", TOLLBAR_E_SYNTAX, 1},
        {"1/s, moon 2/s", TOLLBAR_E_SYNTAX, 6},
        {"1/s, mon mon 2/s", TOLLBAR_E_DUPLICATE_OPTION, 10},
        {"1/s, mon 2/s, mon-tue 3/s", TOLLBAR_E_SYNTAX, 15},
        {"1/s, mon 2/s burst 0", TOLLBAR_E_BURST_ZERO, 14},
        {"1/s, mon 100000000/s algo warm-up warm 1s", TOLLBAR_E_RATE_TOO_HIGH, 10},
    };
    tollbar_policy_spec policy = TOLLBAR_POLICY_SPEC_INIT, none = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    uint64_t until = 99;
    char buffer[8] = "";
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(wrong); i++) {
        const size_t length = strlen(wrong[i].text);
        assert_int_equal(tollbar_schedule_at(wrong[i].text, length, 0, &policy, &until, &error), wrong[i].code);
        assert_int_equal(error.column, wrong[i].column);
        assert_non_null(error.expected);
        assert_int_equal(tollbar_schedule_print(wrong[i].text, length, buffer, sizeof buffer, NULL, NULL), wrong[i].code);
    }
    assert_int_equal(until, 99);
    assert_int_equal(policy.limit, 0);
    none.struct_size = 3;
    assert_int_equal(tollbar_schedule_at(NULL, 3, 0, &policy, NULL, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_schedule_at("1/s", 3, 0, NULL, NULL, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_schedule_at("1/s", 3, 0, &none, NULL, NULL), TOLLBAR_E_STRUCT_SIZE);
    assert_int_equal(tollbar_schedule_print("1/s", 3, NULL, 9, NULL, NULL), TOLLBAR_E_NULL);
    assert_int_equal(tollbar_schedule_print(NULL, 3, buffer, 9, NULL, NULL), TOLLBAR_E_NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(business_hours),
        cmocka_unit_test(texts),
        cmocka_unit_test(arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
