/* For keys that several threads ask a table for at once, such as a few large tenants among many: each request for one
 * writes its slot, whose cache line then goes from core to core. A thread that has a tollbar_hot_keys takes some permits
 * of such keys more in advance, its credit, and the next requests are decided on a cache line of its own, with a look at
 * the clock. With room for most of the keys that are asked for, one thread alone is faster by it, too; keys that are asked
 * for seldom gain nothing.
 *
 *     tollbar_hot_keys *hot;                              (one a thread)
 *     tollbar_hot_keys_new(table, 1000, &hot);
 *
 *     if (tollbar_hot_keys_check(hot, TENANTS, tenant, strlen(tenant), 1) != TOLLBAR_ALLOWED)
 *         return too_many_requests();
 *
 * Many requests at once read the clock once, by tollbar_table_now, and ask for each with tollbar_hot_keys_check_at.
 *
 * Still at most burst + rate * t of a key in every interval t, whatever threads and processes do. Credit is a sixteenth
 * of what remains at most, 1,024 permits at most, and none near the limit or if the burst is below 32; there each request is decided
 * as by tollbar_table_check. It is good until the key's bucket would be full without it, for which some of a full bucket
 * is given up: what comes back in an eighth of a second, an eighth of the burst at most. What a thread does not spend until
 * then is lost. A child that is forked has no credit. A key that is reset keeps what threads have for it. Only gcra
 * has credit, and only while the table has no exempt keys: everything else is asked of the table each time. */

