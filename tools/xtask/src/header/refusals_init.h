/* A refused key to be filled in. Of an array the first is initialised so. */
#define TOLLBAR_TABLE_REFUSED_INIT { (uint32_t)sizeof(tollbar_table_refused), 0, 0, 0, 0, { 0 } }

