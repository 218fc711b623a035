/* Machines that share a limit keep it in a store (Redis, Valkey). None of them waits for it: a machine takes permits from the
 * store some at a time, a lease, and spends them by itself for a short life; what is granted has been charged. One client
 * for each machine asks, from an event loop or from a thread of its own.
 *
 *     const char *name = "logins", *url = "redis://127.0.0.1";
 *     tollbar_lease_options options = TOLLBAR_LEASE_OPTIONS_INIT(4);
 *     tollbar_lease *lease;
 *     tollbar_lease_client *client;
 *     int error = tollbar_lease_new(name, strlen(name), &policy, &options, &lease);
 *     if (!error)
 *         error = tollbar_lease_client_new(lease, url, strlen(url), NULL, &client);
 *
 *     (one thread)
 *     tollbar_lease_client_run(client);
 *
 *     (all others)
 *     if (tollbar_lease_check(lease, address, address_length, 1, NULL) != TOLLBAR_ALLOWED)
 *         return try_later();
 *
 * As long as the store answers, all machines together admit at most the burst and the rate's permits in every window of
 * time. What that rests on, and what happens when the store or the network fails, is in docs/distributed.md.
 */

