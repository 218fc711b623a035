/* A unit that includes the header before all others, and uses each of its macros.
 *
 * With TWICE it includes the header twice. With SECOND it is the second unit of a program. */
#include "tollbar.h"
#ifdef TWICE
#include "tollbar.h"
#endif

#if TOLLBAR_VERSION < 1 || TOLLBAR_VERSION_MAJOR < 0 || TOLLBAR_E_NULL >= 0 || TOLLBAR_CLOCK_COARSE != 2
#error "macros of the header cannot be used by the preprocessor"
#endif

#ifdef __cplusplus
extern "C" {
#endif
int32_t other_unit(void);
#ifdef __cplusplus
}
#endif

#ifdef SECOND

int32_t other_unit(void) {
    tollbar_policy_spec spec = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    tollbar_limiter_options options = TOLLBAR_LIMITER_OPTIONS_INIT;
    tollbar_limiter_state state = TOLLBAR_LIMITER_STATE_INIT;
    tollbar_table_options table = TOLLBAR_TABLE_OPTIONS_INIT(1000);
    tollbar_table_stats stats = TOLLBAR_TABLE_STATS_INIT;
    tollbar_request request = TOLLBAR_REQUEST_INIT;
    tollbar_table_entry entry = TOLLBAR_TABLE_ENTRY_INIT;
    tollbar_table_sweep_result swept = TOLLBAR_TABLE_SWEEP_RESULT_INIT;
    tollbar_table_health health = TOLLBAR_TABLE_HEALTH_INIT;
    tollbar_prefix prefix = TOLLBAR_PREFIX_INIT;
    table.on_full = TOLLBAR_ON_FULL_INHERIT;
    table.missing_key = TOLLBAR_MISSING_REPORT;
    table.flags = TOLLBAR_TABLE_HAS_SEED | TOLLBAR_TABLE_SMALL_PAGES;
    if (table.capacity != 1000 || request.cost != 1 || stats.struct_size != sizeof stats ||
        entry.struct_size != sizeof entry || swept.struct_size != sizeof swept ||
        health.struct_size != sizeof health || prefix.length != 0)
        return 1;
    spec.limit = spec.burst = spec.period_ns = 1;
    spec.algorithm = TOLLBAR_ALGORITHM_SLIDING_WINDOW;
    spec.mode = TOLLBAR_MODE_INTERPOLATED;
    spec.flags = TOLLBAR_POLICY_BORROW | TOLLBAR_POLICY_COUNT_REJECTED;
    options.clock = TOLLBAR_CLOCK_MONOTONIC;
    return error.code + (state.reset_after_ns == TOLLBAR_NO_TIME) + (options.clock == TOLLBAR_CLOCK_COARSE) +
           tollbar_policy_spec_validate(&spec);
}

#else

int main(void) {
    static tollbar_cell cell = TOLLBAR_CELL_INIT;
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    char line[TOLLBAR_POLICY_TEXT_MAX];
    tollbar_policy *policy = NULL;
    int32_t code = tollbar_policy_from_text("2/s", &policy, NULL);
    if (code == TOLLBAR_ALLOWED)
        code = tollbar_cell_check_at(&cell, policy, 2, 1, &decision);
    tollbar_policy_free(policy);
    line[0] = *tollbar_version_string();
#ifdef LINKED
    /* The other unit's invalid policy is refused, and header and library have one version. */
    if (other_unit() != TOLLBAR_E_OPTION_MISMATCH || tollbar_version() != TOLLBAR_VERSION || tollbar_abi_1 != 1)
        code = TOLLBAR_DENIED;
#endif
    return code != TOLLBAR_ALLOWED || line[0] != TOLLBAR_VERSION_STRING[0];
}

#endif
