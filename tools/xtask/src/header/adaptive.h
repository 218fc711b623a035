/* How many requests may a server have at one time? Too few leave it idle, too many wait in its queue, and the right number changes when a
 * machine is lost. An adaptive limit learns it from how long the requests take:
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
 * TOLLBAR_ADAPTIVE_OPTIONS_INIT has windows of 100 ms: the releases of a window are one sample. With a sample for each of thousands of
 * releases a second (`window_ns` 0), an overload of seconds becomes Gradient2's long-term latency, and the limit rises until it limits nothing.
 *
 * The calls take no lock and never wait. The limit stays from `least` to `most`, and never drops to probe the latency.
 *
 * tollbar_adaptive_acquire counts in these 128 bytes, so a process that is killed leaves its permits in flight there. Where processes share a
 * limit, put it into shared memory and let an in-flight table count: tollbar_adaptive_acquire_key and tollbar_adaptive_release_key.
 */

