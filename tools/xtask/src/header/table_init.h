/* Options for a table of `keys` keys, everything else as is usual. */
#define TOLLBAR_TABLE_OPTIONS_INIT(keys)                                                             \
    { (uint32_t)sizeof(tollbar_table_options), 0, (keys), 0, 0, 0, 0, 0 }

