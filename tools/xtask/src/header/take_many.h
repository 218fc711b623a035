/* A request often has several limits: one for its user and one for its address, one a second and one a day. A program that checks them one
 * after the other has already charged the first when the second refuses. tollbar_take_many charges
 * all of them or none:
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
 * The guarantee: a call charges all of its limits or none, and no limit ever admits more than its
 * bound. The last two points below are the exceptions to "none".
 *
 *   - The call first peeks at all limits. If one refuses, the call charges none. Each limit that refuses records the
 *     refusal, as a check would: `ban` and `count rejected` count it, and a bucket with `init` begins to fill. Limits
 *     that admit the request record nothing.
 *   - If all limits admit the request, the call charges them in an order that is the same for all callers: the limit
 *     that refills a permit fastest comes first. So calls that race meet at the first limit that they share, and one
 *     of them passes.
 *   - If another call takes the last permits of a limit between the peek and the charge, the call returns the permits
 *     that it has charged to the limits before that one. Until then these limits may refuse other requests. Permits
 *     that they have refilled meanwhile stay charged.
 *   - If a process is killed between two charges, the charges that it made stay until the limits have refilled them.
 *
 * Some limits cannot take permits back, and the call charges these after all others:
 *
 *   - gcra with `borrow` or `ban`, sliding windows, logs, pacer, warm-up, level-refill, and interval with
 *     `anchor epoch`;
 *   - limiters with credit, and keys of which a thread has had credit;
 *   - in tables lists, and gcra at a few rates such as 7/s (docs/table.md names them).
 *
 * The limit that is charged last is never charged for a request that another limit refuses. If a
 * request has two such limits, the one that is charged first stays charged when the call loses a
 * race for the second.
 *
 * A limit may also be a permit in flight, such as "10 a second, and at most 4 open at one time":
 *
 *     tollbar_ticket ticket;
 *     const tollbar_limit limits[] = {
 *         TOLLBAR_LIMIT_OF_KEY(table, PER_SECOND, user, user_length, 1),
 *         TOLLBAR_LIMIT_OF_PERMIT(uploads, user, user_length, 4, &ticket),
 *     };
 *     if (tollbar_take_many(limits, 2, NULL, NULL) != TOLLBAR_ALLOWED)
 *         return too_many();
 *     receive(upload);
 *     tollbar_in_flight_release(uploads, ticket);
 *
 * The call acquires permits in flight before it charges a rate. If a rate refuses, the call
 * releases the permit and leaves `ticket` as it was. If the in-flight limit refuses
 * (TOLLBAR_REASON_IN_FLIGHT), no rate is charged. `retry_after_ns` is then TOLLBAR_NO_TIME, because
 * nobody knows when a holder releases its permit. A permit in flight adds nothing to
 * `reset_after_ns`. A key that is named twice takes two permits, each with its own ticket.
 *
 * A limiter or a table's key that is named twice is charged once, for both costs together. Two
 * views of one file are one table. If the two requests are of different classes, they pass if they
 * pass one after the other in some order. Every limit counts an admission in its statistics. Only
 * the binding limit (`bound` of tollbar_taken) counts a refusal there.
 */

