/* A request of a batch. */
#define TOLLBAR_REQUEST_INIT { NULL, 0, 1, 0, 0 }

/* An entry to be filled in. */
#define TOLLBAR_TABLE_ENTRY_INIT { (uint32_t)sizeof(tollbar_table_entry), 0, 0, 0, 0, 0, 0 }

/* A sweep's result to be filled in. */
#define TOLLBAR_TABLE_SWEEP_RESULT_INIT                                                              \
    { (uint32_t)sizeof(tollbar_table_sweep_result), 0, 0, 0, 0 }

