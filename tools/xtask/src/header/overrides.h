/* Most keys of a table are under its policies. A few have a contract of their own, such as a large customer:
 *
 *     tollbar_policy_spec contract = TOLLBAR_POLICY_SPEC_INIT;
 *     tollbar_policy_spec_parse("1000/s burst 50", 15, &contract, NULL);
 *     tollbar_table_set_override(table, CALLS, "acme", 4, &contract, TOLLBAR_KEEP_COUNT);
 *
 *     tollbar_table_clear_override(table, CALLS, "acme", 4);       // the contract has ended
 *
 * Requests for "acme" still name the policy CALLS, and count under it. The override decides them:
 * checks, peeks, batches, several limits, reservations, receipts, charges and hot keys. Overrides
 * are part of the table: all processes that share it have them, its file and tollbar_table_copy
 * keep them, and tollbar_table_set_policy leaves them alone.
 *
 *   - Up to `overrides` keys of a table may have one (tollbar_table_options; 32 bytes each). Equal overrides share
 *     one of the table's 255 versions of policies. So many keys may have one of a few contracts, and some 250
 *     contracts may differ.
 *   - In any interval a key gets at most the sum of the bounds of all policies that it was under in that interval.
 *   - A receipt (tollbar_table_take) gives permits back only while its key is under the policy of the charge. So a
 *     receipt from before an override gives nothing back under it, and does so again when the override has been
 *     cleared. Credit of hot keys is void after any change.
 *   - While a table has no override, overrides cost nothing. While it has some, every request looks its key up in
 *     them. */

