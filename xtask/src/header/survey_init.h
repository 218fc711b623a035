/* Health to be filled in. */
#define TOLLBAR_TABLE_HEALTH_INIT                                                                    \
    { (uint32_t)sizeof(tollbar_table_health), 0, 0, 0, 0, 0, 0, 0 }

/* Statistics to be filled in. */
#define TOLLBAR_TABLE_STATS_INIT                                                                     \
    { (uint32_t)sizeof(tollbar_table_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

