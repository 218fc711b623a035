/* Refill curves: how many of a slice's permits have come, and exactly the limit in each slice. */
#include "test.h"

static const struct {
    const char *policy;
    uint64_t half;
} curves[] = {{"100/min curve linear", 50}, {"100/min curve ln", 62}, {"100/min curve log2", 58}};

static void s12_a_curve_says_how_early_the_permits_come(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(curves); i++) {
        tollbar_limiter *limiter = limiter_of(curves[i].policy);
        tollbar_table *table = table_of(10, curves[i].policy, NULL);
        const uint64_t begin = 1000 * MIN;
        uint64_t permits = 0;
        assert_int_equal(tollbar_limiter_take_up_to_at(limiter, 1000, begin + MIN / 2, &permits), TOLLBAR_ALLOWED);
        assert_int_equal(permits, curves[i].half);
        assert_int_equal(tollbar_limiter_take_up_to_at(limiter, 1000, begin + MIN - 1, &permits), TOLLBAR_ALLOWED);
        assert_int_equal(permits, 100 - curves[i].half);
        assert_int_equal(tollbar_table_take_up_to_at(table, 0, "key", 3, 1000, begin + MIN / 2, &permits), TOLLBAR_ALLOWED);
        assert_int_equal(permits, curves[i].half);
        tollbar_limiter_free(limiter);
        tollbar_table_close(table);
    }
}

/* A caller that asks every 7 ms takes each permit soon after it has come. */
static void s12_each_slice_admits_exactly_its_limit(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < COUNT(curves); i++) {
        tollbar_limiter *limiter = limiter_of(curves[i].policy);
        uint64_t slice, now;
        for (slice = 5; slice < 8; slice++) {
            unsigned admitted = 0;
            for (now = slice * MIN; now < (slice + 1) * MIN; now += 7 * MS)
                admitted += tollbar_limiter_check_at(limiter, 1, now, NULL) == TOLLBAR_ALLOWED;
            admitted += tollbar_limiter_check_at(limiter, 1, (slice + 1) * MIN - 1, NULL) == TOLLBAR_ALLOWED;
            assert_int_equal(admitted, 100);
        }
        tollbar_limiter_free(limiter);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s12_a_curve_says_how_early_the_permits_come),
        cmocka_unit_test(s12_each_slice_admits_exactly_its_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
