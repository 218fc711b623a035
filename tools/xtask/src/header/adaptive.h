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
 * tollbar_adaptive_acquire counts permits in the limit's own 128 bytes, so the permits of a killed
 * process stay in flight there. If processes share a limit, put it into shared memory and let an
 * in-flight table count: tollbar_adaptive_acquire_key and tollbar_adaptive_release_key.
 */

