/* A request often has several limits: its user's and its address's, so many a second and so many a day, its own share and everybody's.
 * Whoever checks them one after the other has charged the first when the second refuses. tollbar_take_many charges all of them or none:
 *
 *     const tollbar_limit limits[] = {
 *         TOLLBAR_LIMIT_OF_KEY(table, PER_SECOND, user, user_length, 1),
 *         TOLLBAR_LIMIT_OF_KEY(table, PER_DAY, user, user_length, 1),
 *         TOLLBAR_LIMIT_OF_LIMITER(everybody, 1),
 *     };
 *     tollbar_taken taken = TOLLBAR_TAKEN_INIT;
 *     if (tollbar_take_many(limits, 3, NULL, &taken) != TOLLBAR_ALLOWED)
 *         return try_later(names[taken.bound], taken.retry_after_ns);
 *
 * Either all limits are charged or none, and no limit ever admits more than its bound; a call that loses a race may hold, until it
 * has given it back (a process that is killed meanwhile: until it has refilled), its costs on the limits before the one that refused,
 * so that others may be refused that much earlier, and leaves charged at most what those limits refilled meanwhile.
 *
 * A request that a limit refuses when the call looks at them charges nothing: only the limit that refuses learns of it, as by a check
 * (`ban` and `count rejected` count it, and with `init` the bucket begins to fill). Limits are charged in one order for all callers, those
 * that refill a permit fastest first, so a limit of a few permits a day is charged last, and never by a request that is refused.
 * Limits that cannot give permits back are charged after all others: every algorithm but gcra without `borrow` and `ban`, limiters with
 * credit, and keys of which a thread has had credit. If a request has two of them, the one that is charged first may stay charged by a
 * call that loses a race. In tables gcra at a few rates, such as 7/s, is one of them, too: docs/table.md names those rates.
 *
 * A limit that is named twice is charged for both at once. Each limit counts an admission; a refusal counts where it bound.
 */

