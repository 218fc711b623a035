/* A request for `permits` that waits for the store until `time_ns`. */
#define TOLLBAR_LEASE_REQUEST_INIT(permits, time_ns)                                                 \
    { (uint32_t)sizeof(tollbar_lease_request), 0, (permits), (time_ns) }
