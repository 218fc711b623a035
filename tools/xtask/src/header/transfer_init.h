/* A copy's result to be filled in. */
#define TOLLBAR_TABLE_COPIED_INIT { (uint32_t)sizeof(tollbar_table_copied), 0, 0, 0 }

