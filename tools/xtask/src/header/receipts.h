/* The cost of a request is often an estimate: the tokens of a model, the bytes of an answer, a second of computing. A program that charges
 * the highest cost wastes most of the limit. A program that charges after the work learns too late
 * that the limit is used up. With a receipt the caller charges an estimate before the work, and
 * corrects the charge after it:
 *
 *     tollbar_receipt receipt;
 *     if (tollbar_table_take(table, TOKENS, user, user_length, 2000, &receipt, NULL) != TOLLBAR_ALLOWED)
 *         return try_later();
 *     tokens = answer(request);
 *     tollbar_table_settle(table, &receipt, tokens, NULL);
 *
 * If the cost is below the estimate, the unused permits go back to the key, without those that the
 * key has regained by refill since the charge. So in any interval t the permits that requests
 * really use are at most burst + rate * t. tollbar_table_settle_in_full also returns the regained
 * permits, and breaks that bound. If the cost is above the estimate, the difference is charged as a
 * debt, which is one burst at most, and later requests of the key wait until it is paid. An
 * interval may then exceed the bound by the sum of these differences over the receipts that were
 * open at one time.
 *
 * Only the first call for a receipt settles it, even if there are copies. A second call returns
 * nothing to the key, and charges a cost above the estimate again. Without such a call the estimate
 * stays charged. The table remembers its last 8,184 receipts. An older receipt counts as settled,
 * and so does one whose policy has changed since the charge.
 *
 * Which policies return permits:
 *
 *     gcra, quota                                       always
 *     fixed-window, curve, calendar,
 *     interval with `anchor first`                      until the window or slice of the charge ends
 *     weighted-window                                   until the next window ends, as far as the permits have not faded
 *     a list                                            only the policy that refills faster
 *     all others; gcra with `borrow` or `ban`;
 *     gcra at a few rates such as 7/s (docs/table.md)   never
 *
 * A key of which a thread has had credit (tollbar_table_options.hot_keys) gets none back either. A
 * receipt of an exempt key charges and returns nothing. If a key is reset or evicted between the
 * charge and the call, the call may lower a debt that the key has made since. So settle before you
 * reset.
 *
 * The calls return TOLLBAR_E_RECEIPT for a damaged receipt and for a receipt of another table. The
 * check has 32 bits. Two tables of one seed (tollbar_table_copy needs that) accept each other's
 * receipts. Such a receipt counts as too old.
 */

