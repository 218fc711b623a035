/* Options for a table of `keys` keys, with the defaults for everything else. */
#define TOLLBAR_TABLE_OPTIONS_INIT(keys)                                                             \
    { (uint32_t)sizeof(tollbar_table_options), 0, (keys), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

