/* The cost of a request is often an estimate: the tokens of a model, the bytes of an answer, a second of computing. Whoever charges the
 * highest cost wastes most of the limit; whoever charges afterwards finds out too late. A receipt joins the two: the estimate is charged
 * before the work, and what it was too high or too low by is settled after it:
 *
 *     tollbar_receipt receipt;
 *     if (tollbar_table_take(table, TOKENS, user, user_length, 2000, &receipt, NULL) != TOLLBAR_ALLOWED)
 *         return try_later();
 *     tokens = answer(request);
 *     tollbar_table_settle(table, &receipt, tokens, NULL);
 *
 * Less than the estimate: the difference comes back, less what time has brought back since the charge. So over any interval t at most
 * burst + rate * t is admitted, net of what came back; a refund without regard to time (tollbar_table_settle_in_full) breaks that.
 * More than the estimate: the difference is a debt, of one burst at most, and later requests wait until it is paid. Beside the bound
 * above, an interval may hold what the receipts that were open at one time cost above their estimates.
 *
 * A receipt is settled once, whoever has copies of it. A second call gives nothing back, and charges a cost above the estimate again.
 * A receipt that is never settled stays charged at its estimate. Of the receipts of a table the last 8,184 can be settled; an older one,
 * and one whose policy has been changed meanwhile, counts as settled. Algorithms other than gcra, and gcra with `borrow` or `ban`, give
 * nothing back; neither do keys of which a thread has had credit (tollbar_table_options.hot_keys), nor a few rates (docs/table.md).
 * A key that was reset or evicted after the charge, and that has come back, may get that charge back from what it owes now. So settle
 * before you reset a key. A receipt of an exempt key charges and gives back nothing.
 *
 * A damaged receipt, and one of another table, gets TOLLBAR_E_RECEIPT, as far as a check of 32 bits can tell. Tables of one seed
 * (tollbar_table_copy) cannot tell their receipts apart: there a receipt of the other table counts as too old.
 */

