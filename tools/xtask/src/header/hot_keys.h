/* For a few keys of a table that several threads check at once, such as large tenants among many small ones. Each check of
 * such a key writes its slot, so the slot's cache line moves from core to core. A thread with a tollbar_hot_keys takes some
 * permits of such a key in advance, its credit. The thread's next requests read the clock and are decided on its own
 * cache line.
 *
 *     tollbar_hot_keys *hot;                              (one a thread)
 *     tollbar_hot_keys_new(table, 1000, &hot);
 *
 *     if (tollbar_hot_keys_check(hot, TENANTS, tenant, strlen(tenant), 1) != TOLLBAR_ALLOWED)
 *         return too_many_requests();
 *
 * A thread that decides on many requests at once reads the clock once, by tollbar_table_now, and calls
 * tollbar_hot_keys_check_at for each. A single thread gains too if there is room for most of its keys. Keys that are
 * checked seldom gain nothing.
 *
 * The bound of a key stays burst + rate * t in every interval t, whatever threads and processes do. The credit of a key is
 * at most a sixteenth of its remaining permits, and at most 1,024. Near the limit, or with a burst below 32, there is no
 * credit, and tollbar_table_check decides.
 * Credit expires when the key's bucket would be full without it. A full bucket therefore gives up some permits: the refill
 * of an eighth of a second, and at most an eighth of the burst. The permits that a thread has not spent by then are lost.
 * A forked child starts without credit. Resetting a key leaves the credit that threads have of it.
 * Only gcra has credit, and only while the table has no exempt keys. The table decides on all other requests. */

