/* [C5] The first calls of a process that use the clock read the system's clock a few times each.
 * None waits for the calibration of the counter. This program defines clock_gettime, which the
 * library calls instead of the system's. */
#define _DEFAULT_SOURCE /* clock_gettime, syscall */
#include "test.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static unsigned readings;

int clock_gettime(clockid_t clock, struct timespec *now) {
    readings++;
    return (int)syscall(SYS_clock_gettime, clock, now);
}

/* Two comparisons of the counter with the clock take eight readings each. */
enum { MOST = 20 };

static void c5_the_first_calls_read_the_clock_a_few_times(void **state) {
    tollbar_policy *policy = policy_of("5/s burst 3");
    tollbar_cell cell = TOLLBAR_CELL_INIT;
    uint64_t from = monotonic();
    unsigned most = 0;
    (void)state;
    /* The first millisecond, and the second comparison, which ends it. */
    do {
        readings = 0;
        assert_in_range(tollbar_cell_check(&cell, policy, 1, NULL), TOLLBAR_ALLOWED, TOLLBAR_DENIED);
        most = readings > most ? readings : most;
    } while (monotonic() - from < 5 * MS);
    assert_in_range(most, 1, MOST);
    /* Then calls read the counter, and the system's clock once in ten milliseconds or more. */
    if (tollbar_clock_is_counter()) {
        int asked;
        readings = 0;
        for (asked = 0; asked < 1000; asked++)
            assert_in_range(tollbar_cell_check(&cell, policy, 1, NULL), TOLLBAR_ALLOWED, TOLLBAR_DENIED);
        assert_in_range(readings, 0, 500);
    }
    tollbar_policy_free(policy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c5_the_first_calls_read_the_clock_a_few_times),
    };
    return cmocka_run_group_tests_name("first calls", tests, NULL, NULL);
}
