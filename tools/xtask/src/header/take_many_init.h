/* A limit that is a limiter. */
#define TOLLBAR_LIMIT_OF_LIMITER(limiter, cost) { (limiter), NULL, NULL, 0, (cost), 0, 0, NULL, NULL, NULL }

/* A limit that is a key of a table. */
#define TOLLBAR_LIMIT_OF_KEY(table, policy, key, length, cost)                                       \
    { NULL, (table), (key), (length), (cost), (policy), 0, NULL, NULL, NULL }

/* A limit that is a permit of a key of an in-flight table, of which at most `most` are in flight.
 * `*ticket` gets the permit's ticket. */
#define TOLLBAR_LIMIT_OF_PERMIT(in_flight, key, length, most, ticket)                                \
    { NULL, NULL, (key), (length), 1, 0, (most), (in_flight), (ticket), NULL }

/* TOLLBAR_LIMIT_OF_PERMIT whose most permits are the present value of a tollbar_adaptive (TOLLBAR_EXPERIMENTAL). When the
 * request ends, give `*ticket` to tollbar_adaptive_release_key with the request's latency. */
#define TOLLBAR_LIMIT_OF_ADAPTIVE(adaptive, in_flight, key, length, ticket)                          \
    { NULL, NULL, (key), (length), 1, 0, tollbar_adaptive_limit(adaptive), (in_flight), (ticket), NULL }

/* An outcome to be filled in. */
#define TOLLBAR_TAKEN_INIT { (uint32_t)sizeof(tollbar_taken), 0, 0, 0, 0, 0, 0 }

