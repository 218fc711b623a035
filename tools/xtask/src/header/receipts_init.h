/* Details to be filled in. */
#define TOLLBAR_SETTLED_INIT { (uint32_t)sizeof(tollbar_settled), 0, 0, 0 }

