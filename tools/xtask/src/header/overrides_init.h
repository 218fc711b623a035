/* An override to be filled in. */
#define TOLLBAR_TABLE_OVERRIDE_INIT { (uint32_t)sizeof(tollbar_table_override), 0, 0, 0 }

