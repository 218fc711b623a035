/* A limiter has one state of any algorithm, on a cache line of its own, and a clock.
 *
 *     tollbar_decision decision = TOLLBAR_DECISION_INIT;
 *     if (tollbar_limiter_check(limiter, 1, &decision) == TOLLBAR_DENIED)
 *         reply(429, "Retry-After: %llu",
 *               (unsigned long long)((decision.retry_after_ns + 999999999) / 1000000000));
 */

