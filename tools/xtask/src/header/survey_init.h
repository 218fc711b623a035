/* An entry to be filled in. */
#define TOLLBAR_TABLE_ENTRY_INIT { (uint32_t)sizeof(tollbar_table_entry), 0, 0, 0, 0, 0, 0 }

/* A sweep's result to be filled in. */
#define TOLLBAR_TABLE_SWEEP_RESULT_INIT                                                              \
    { (uint32_t)sizeof(tollbar_table_sweep_result), 0, 0, 0, 0 }

/* Health to be filled in. */
#define TOLLBAR_TABLE_HEALTH_INIT                                                                    \
    { (uint32_t)sizeof(tollbar_table_health), 0, 0, 0, 0, 0, 0, 0 }

/* Statistics to be filled in. */
#define TOLLBAR_TABLE_STATS_INIT                                                                     \
    { (uint32_t)sizeof(tollbar_table_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

