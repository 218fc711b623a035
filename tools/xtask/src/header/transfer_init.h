/* A copy's result to be filled in. */
#define TOLLBAR_TABLE_COPY_RESULT_INIT { (uint32_t)sizeof(tollbar_table_copy_result), 0, 0, 0 }

