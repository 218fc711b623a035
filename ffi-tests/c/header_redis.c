/* The same for tollbar_redis.h as header.c for tollbar.h, with the same TWICE and SECOND. */
#include "tollbar_redis.h"
#ifdef TWICE
#include "tollbar.h"
#include "tollbar_redis.h"
#endif

#if TOLLBAR_VERSION < 1 || TOLLBAR_FALLBACK_ALLOW != 2 || TOLLBAR_CIRCUIT_OPEN != 2 || TOLLBAR_EVENT_WRITE != 2
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
    tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(0);
    tollbar_lease_stats stats = TOLLBAR_LEASE_STATS_INIT;
    tollbar_lease *lease = NULL;
    spec.limit = spec.burst = 100;
    spec.period_ns = 1000000000;
    options.flags = TOLLBAR_LEASE_INEXACT | TOLLBAR_LEASE_HAS_OVERDRAFT;
    options.fallback = TOLLBAR_FALLBACK_DENY;
    if (stats.struct_size != sizeof stats || options.struct_size != sizeof options || options.capacity == 0)
        return 1;
    return tollbar_lease_new("limit", 5, &spec, &options, &lease);
}

#else

int main(void) {
#ifdef LINKED
    /* The other unit's lease for no machines is refused, and header and library have one
     * version. */
    if (other_unit() != TOLLBAR_E_LEASE_NODES || tollbar_redis_version() != TOLLBAR_VERSION || tollbar_redis_abi_1 != 1)
        return 1;
#endif
    return tollbar_lease_client_close(NULL, 0) != TOLLBAR_ALLOWED || tollbar_lease_client_circuit(NULL) != TOLLBAR_CIRCUIT_UNKNOWN;
}

#endif
