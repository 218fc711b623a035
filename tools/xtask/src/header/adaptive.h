/* How many requests should a server have at one time? With too few it is idle, with too many they wait in its queue, and the best number changes
 * when the server's capacity does. An adaptive limit learns this number from the latencies of the
 * requests:
 *
 *     tollbar_adaptive_options options = TOLLBAR_ADAPTIVE_OPTIONS_INIT;
 *     static tollbar_adaptive server;
 *     options.initial = 20;
 *     options.least = 5;
 *     options.most = 1000;
 *     tollbar_adaptive_init(&server, &options);
 *     ...
 *     tollbar_ticket ticket;
 *     if (tollbar_adaptive_acquire(&server, &ticket) != TOLLBAR_ALLOWED)
 *         return overloaded();
 *     begin = now();
 *     answer = ask(server_address);
 *     tollbar_adaptive_release(&server, ticket, answer ? TOLLBAR_OUTCOME_ANSWERED : TOLLBAR_OUTCOME_DROPPED, now() - begin);
 *
 * TOLLBAR_ADAPTIVE_OPTIONS_INIT has windows of 100 ms. All releases of a window are one sample.
 * Gradient2's long-term latency is a mean over about 600 samples. So if each release is a sample
 * (`window_ns` 0) and there are thousands a second, this mean follows an overload within a second,
 * and Gradient2 raises the limit instead of lowering it. With windows an overload of any length stays one: the mean does
 * not learn from a window in which more permits than before were in flight and the server did hardly more work.
 *
 * The calls take no lock and never wait. The limit stays between `least` and `most`. The library
 * never lowers it only to measure the latency of an idle server.
 *
 * A rate, what is open and a limit that follows the latency are one decision of tollbar_take_many. The call takes from
 * the rate and opens a request at the server, or does neither:
 *
 *     const tollbar_limit limits[] = {
 *         TOLLBAR_LIMIT_OF_KEY(table, PER_SECOND, user, user_length, 1),
 *         TOLLBAR_LIMIT_OF_ADAPTIVE(&server, open, "server", 6, &ticket),
 *     };
 *     if (tollbar_take_many(limits, 2, NULL, NULL) != TOLLBAR_ALLOWED)
 *         return try_later();
 *     answer = ask(server_address);
 *     tollbar_adaptive_release_key(&server, open, "server", 6, ticket, TOLLBAR_OUTCOME_ANSWERED, now() - begin);
 *
 * tollbar_adaptive_acquire counts permits in the limit's own 128 bytes, so the permits of a killed
 * process stay in flight there. If processes share a limit, put it into shared memory and let an
 * in-flight table count: tollbar_adaptive_acquire_key and tollbar_adaptive_release_key.
 */

