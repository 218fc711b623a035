/* A client that calls limited servers keeps one pace for each host:
 *
 *     tollbar_pacing_options options = TOLLBAR_PACING_OPTIONS_INIT;
 *     tollbar_pacing *pace;
 *     tollbar_pacing_new(&options, 256, &pace);
 *     ...
 *     tollbar_pacing_ticket ticket;
 *     uint64_t now, wait;
 *     tollbar_clock_now(TOLLBAR_CLOCK_MONOTONIC, &now);
 *     tollbar_pacing_acquire_at(pace, host, strlen(host), now, &ticket);
 *     while (tollbar_pacing_wait_at(pace, &ticket, now, &wait) == TOLLBAR_DENIED) {
 *         sleep_ns(wait);
 *         tollbar_clock_now(TOLLBAR_CLOCK_MONOTONIC, &now);
 *     }
 *     answer = request(host);
 *     tollbar_clock_now(TOLLBAR_CLOCK_MONOTONIC, &now);
 *     tollbar_pacing_respond_at(pace, &ticket, answer.status, answer.header, answer.header_length, unix_ns, now);
 *
 * 429, 503 with Retry-After, and 403 with no permit left count as throttled: the rate falls. Other
 * answers raise it. After Retry-After, or an answer that says that no permit is left, no caller
 * sends to the host until that time, or for `pause_most_ns` if that is less. The library delays
 * requests. It repeats none.
 *
 * A host's rate begins at the ceiling. It stays between `least` and `most`, whatever the host says.
 * Rates are in millionths of a request per second.
 *
 * Threads: one call at a time. Callers in several threads hold a mutex of their own around each
 * call, and release it before they sleep. Processes cannot share a pace. Only tollbar_pacing_new
 * allocates.
 */

