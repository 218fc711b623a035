/* The policy of a table's nodes, in which a permit is a nanosecond. */
#define TOLLBAR_HIERARCHY_POLICY "1000000000/s burst 1099511627776"
/* An answer to be written. */
#define TOLLBAR_SHARE_INIT { (uint32_t)sizeof(tollbar_share), 0, 0, 0, 0, 0, 0, 0 }
