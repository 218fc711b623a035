/* A table has a state for each of millions of keys, in one block of memory that never grows. A key is bytes: an address, a
 * user, a token. The first charge of a key takes a slot. The key keeps the slot until its debt is paid. Then another key may
 * take it. Threads and processes use a table at once, without locks. A process that is killed blocks no other.
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
 * A table may have several policies. The policy is part of a key's identity, so one address has a separate state under
 * each policy. docs/table.md describes the layout and proves it right.
 */

