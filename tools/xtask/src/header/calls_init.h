/* A call to be filled in. */
#define TOLLBAR_LEASE_CALL_INIT                                                                      \
    { (uint32_t)sizeof(tollbar_lease_call), 0, NULL, 0, 0 }
