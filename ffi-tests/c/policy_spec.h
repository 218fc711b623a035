/* Common parts of the tests of policies as structs. */
#ifndef TOLLBAR_POLICY_SPEC_TEST_H
#define TOLLBAR_POLICY_SPEC_TEST_H

#include "test.h"

static inline tollbar_policy_spec plain(uint64_t limit, uint64_t period_ns, uint64_t burst) {
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    spec.limit = limit;
    spec.period_ns = period_ns;
    spec.burst = burst;
    return spec;
}

static inline tollbar_policy_spec of_algorithm(uint32_t algorithm) {
    tollbar_policy_spec spec = plain(10, SEC, 10);
    spec.algorithm = algorithm;
    if (algorithm == TOLLBAR_ALGORITHM_SLIDING_WINDOW)
        spec.segments = 10;
    if (algorithm == TOLLBAR_ALGORITHM_WARM_UP) {
        spec.warm_up_ns = SEC;
        spec.cold = 3;
    }
    if (algorithm == TOLLBAR_ALGORITHM_QUOTA)
        spec.period_ns = TOLLBAR_FOREVER;
    return spec;
}

/* tollbar_policy_spec_validate and the call that makes a limiter return the same error. */
static inline void assert_refused(const tollbar_policy_spec *spec, int32_t want) {
    tollbar_limiter *limiter = NULL;
    uint64_t last = 7;
    int32_t code = tollbar_policy_spec_validate(spec);
    if (code != want)
        fail_msg("%s, not %s", tollbar_errname(code), tollbar_errname(want));
    assert_int_equal(tollbar_limiter_new(spec, NULL, &limiter), want);
    assert_null(limiter);
    assert_int_equal(tollbar_policy_spec_last_time(spec, &last), want);
    assert_int_equal(tollbar_policy_spec_refill(spec, &last), want);
    assert_int_equal(last, 7);
}

static inline void assert_taken(const tollbar_policy_spec *spec) {
    tollbar_limiter *limiter = NULL;
    assert_int_equal(tollbar_policy_spec_validate(spec), 0);
    assert_int_equal(tollbar_limiter_new(spec, NULL, &limiter), 0);
    tollbar_limiter_free(limiter);
}

#endif
