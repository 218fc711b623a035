/* A spec to start from: gcra, all options unset; set limit, period_ns and burst. */
#define TOLLBAR_POLICY_SPEC_INIT                                                                     \
    { (uint32_t)sizeof(tollbar_policy_spec), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  \
      { { "", 0 }, { "", 0 }, { "", 0 }, { "", 0 } }, \
      { 0 }, \
      { 0, 0, 0, 0, 0 } }

/* An error report to start from. */
#define TOLLBAR_POLICY_ERROR_INIT { (uint32_t)sizeof(tollbar_policy_error), 0, 0, NULL }

/* A report of a fit to start from. */
#define TOLLBAR_CURVE_FIT_INIT { (uint32_t)sizeof(tollbar_curve_fit), 0, 0, 0, 0, NULL }
