/* Machines that share a limit keep it in a store (Redis, Valkey). A machine takes some permits at a
 * time from the store, a lease, and spends them by itself for a short time. The store charges a lease
 * when it grants it. One client on each machine asks the store, from an event loop or from a thread
 * of its own. Only tollbar_lease_wait waits for the store.
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
 *     tollbar_lease_client_run(client);          (until a thread calls tollbar_lease_client_stop)
 *
 *     (all others)
 *     if (tollbar_lease_check(lease, address, address_length, 1, NULL) != TOLLBAR_ALLOWED)
 *         return try_later();
 *
 *     (at the end, when that thread has returned)
 *     tollbar_lease_client_close(client, 1000);  (for at most 1,000 ms)
 *     tollbar_lease_close(lease);
 *
 * While the store answers, all machines together admit at most burst + rate * t in every window of
 * length t. docs/distributed.md has the proof, its assumptions, and the behaviour when the store or
 * the network fails.
 */

