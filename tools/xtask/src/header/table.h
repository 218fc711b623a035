/* A table has a state for each of millions of keys, in one block of memory that never grows. A key is bytes: an address, a
 * user, a token. The first charge of a key takes a slot. The key keeps the slot until its debt is
 * paid. Then another key may take it. Threads and processes use a table at once, without locks. A
 * process that is killed blocks no other.
 *
 *     const char *text = "5/min burst 3";
 *     tollbar_policy_spec policy = TOLLBAR_POLICY_SPEC_INIT;
 *     tollbar_policy_spec_parse(text, strlen(text), &policy, NULL);
 *     const tollbar_policy_spec *policies[] = { &policy };
 *
 *     tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(1000000);
 *     tollbar_table *logins;
 *     int error = tollbar_table_open("/run/logins/table", policies, 1, &options, &logins);
 *
 *     if (tollbar_table_check(logins, 0, address, address_length, 1, NULL) != TOLLBAR_ALLOWED)
 *         return try_later();
 *
 * A table may have several policies. The policy is part of a key's identity, so one address has a
 * separate state under each policy. docs/internals/table-inside.md describes the layout and proves
 * the protocol.
 *
 * Hot keys is an option for a few keys that several threads check at once, such as large tenants
 * among many small ones:
 *
 *     options.hot_keys = 1000;
 *
 * Each check of such a key writes its slot, so the slot's cache line moves from core to core. With
 * `hot_keys` each thread takes some permits of the keys that it checks most often in advance, as
 * its credit. The thread's next checks of these keys read the clock and are decided on a cache line
 * of its own. A single thread gains too if there is room for most of its keys. Keys that are
 * checked seldom gain nothing.
 *
 *   - The bound of a key stays burst + rate * t in every interval t, whatever threads and processes do.
 *   - A key's credit is at most a sixteenth of its remaining permits, and at most 1,024. Near the limit, and with a
 *     burst below 32, there is no credit, and every request is decided as without the option. So is every request of
 *     an algorithm other than gcra.
 *   - Credit expires when the key's bucket would be full without it. A full bucket therefore gives up some permits:
 *     the refill of an eighth of a second, and at most an eighth of the burst. The permits that a thread has not
 *     spent by then are lost: they are charged, and no request passes for them. A thread that ends leaves its credit
 *     to expire.
 *   - A thread whose time goes back spends no credit until its time is that of its latest credit again.
 *   - 128 threads of a process can have credit in a table, each 34 bytes a key; others decide without. A forked child
 *     starts without credit.
 *
 * What other calls do with the calling thread's credit of a key:
 *
 *     a full decision, tollbar_table_peek       count it in `remaining`
 *     tollbar_table_take_up_to                  spends it first
 *     tollbar_table_reserve, tollbar_table_wait book what it does not pay at once
 *     tollbar_table_check_many                  asks the table and leaves it alone
 *     tollbar_table_charge                      charges the table
 *     tollbar_table_reset                       voids it; other threads keep theirs
 *     a change of the policy                    voids all credit under it
 *
 * A policy under which a thread has had credit gives nothing back (tollbar_table_cancel, tollbar_table_settle). */

