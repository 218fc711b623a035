/* Counts to be filled in. */
#define TOLLBAR_COUNTS_INIT { (uint32_t)sizeof(tollbar_counts), 0, 0, 0, 0 }

