/* Options for a limit that `machines` share, with the defaults for everything else. */
#define TOLLBAR_LEASE_OPTIONS_INIT(machines)                                                         \
    { (uint32_t)sizeof(tollbar_lease_options), (machines), 4096, 0, 0, 0, 0 }

/* Statistics to be filled in. */
#define TOLLBAR_LEASE_STATS_INIT                                                                     \
    { (uint32_t)sizeof(tollbar_lease_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
