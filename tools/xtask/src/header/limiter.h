/* A limiter has one state of any algorithm, on a cache line of its own, and a clock.
 *
 *     tollbar_decision decision = TOLLBAR_DECISION_INIT;
 *     if (tollbar_limiter_check(limiter, 1, &decision) == TOLLBAR_DENIED)
 *         reply(429, "Retry-After: %llu",
 *               (unsigned long long)((decision.retry_after_ns + 999999999) / 1000000000));
 *
 * Credit is an option for threads that check one limiter all the time, and so wait for its cache
 * line:
 *
 *     tollbar_limiter_options options = TOLLBAR_LIMITER_OPTIONS_INIT;
 *     options.credit = TOLLBAR_CREDIT_ON;
 *
 * A thread that is admitted is then charged for more permits than its request costs. It keeps the
 * rest as credit on a cache line of its own, and spends it on its next requests without reading the
 * clock, if they ask for no full decision. Threads have nothing to set up or to end.
 *
 *   - The bound stays burst + rate * t in every interval t, whatever the threads do.
 *   - Credit costs part of the burst. The credit of all threads together is at most C, an eighth of the burst and at
 *     most 65,536 permits, or 0 if the burst is below 32. Up to C permits of a burst may be refused that a limiter
 *     without credit admits, and a cost above burst - C is TOLLBAR_NEVER.
 *   - A thread keeps at most a sixteenth of the remaining permits. Near the limit a thread keeps none, and each
 *     request is decided as by a limiter of burst - C.
 *   - The credit of a thread that ends or stops asking is lost when another thread takes credit in a later slice of
 *     time. A slice is at least 16 refills of the bucket and at least one second long. Less than one permit in a
 *     hundred is lost this way.
 *   - `remaining` counts the shared permits and the calling thread's own credit. tollbar_limiter_take_up_to spends
 *     the credit first. tollbar_limiter_reserve_at and tollbar_limiter_wait book on the shared permits what the
 *     credit does not pay at once. tollbar_limiter_reset leaves credit as it is.
 *   - A signal handler must not use such a limiter if it may have interrupted a call with it on its thread. */

