/* A table has a state for each of millions of keys, in one block of memory that is taken when it is made
 * and never grows. A key is bytes: an address, a user, a token. It takes a slot with its first charge and
 * keeps it until it owes nothing any more; then the slot may go to another key. Threads and processes use
 * a table at once, without locks; one that is killed leaves nothing that another has to wait for.
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
 * A table may have several policies; the policy is part of a key's identity, so the same address has a state
 * of its own under each. How a table is laid out, and why it is right, is in docs/table.md.
 */

