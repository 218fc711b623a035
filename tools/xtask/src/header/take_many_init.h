/* A limit that is a limiter. */
#define TOLLBAR_LIMIT_OF_LIMITER(limiter, cost) { (limiter), NULL, NULL, 0, (cost), 0, 0 }

/* A limit that is a key of a table. */
#define TOLLBAR_LIMIT_OF_KEY(table, policy, key, length, cost)                                       \
    { NULL, (table), (key), (length), (cost), (policy), 0 }

/* An answer to be filled in. */
#define TOLLBAR_TAKEN_INIT { (uint32_t)sizeof(tollbar_taken), 0, 0, 0, 0, 0, 0 }

