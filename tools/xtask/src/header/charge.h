/* A check asks before the work. Some costs are known only after it: the bytes of an answer, the tokens of a model, and whether
 * a login has failed. Such a caller peeks before the work, and charges after it:
 *
 *     if (tollbar_table_peek(table, LOGINS, address, length, 1, NULL) != TOLLBAR_ALLOWED)
 *         return too_many_requests();
 *     if (!password_is_right(request))
 *         tollbar_table_charge(table, LOGINS, address, length, 1, NULL);
 *
 * A charge does not ask: it may leave the key in debt, and later requests are refused until the
 * debt is paid. Several requests may peek before the first of them charges, so only the debt keeps
 * the average within the limit. How much a charge can take:
 *
 *   - Token buckets (gcra, interval) hold a debt of one burst below empty: at most 2 * burst + rate * t is admitted
 *     and charged in any interval t.
 *   - A pacer: one largest cost more than checks could take. Gcra with `borrow`: as much as the word can hold.
 *   - A warm-up: the largest cost in one call, unless the state already owes more than that costs.
 *   - A level-refill: as many permits as its lowest band refills while the bucket fills from empty.
 *   - Fixed windows, weighted windows, calendars, quotas and curves hold no debt: they count up to their limit. A
 *     sliding window and a sliding log give the permits that they have.
 *
 * The call returns the rest and does not charge it. The counts of decisions leave out charges.
 *
 * With `ban` in its policy, as in "5/min ban 1h after 3", a key that has been refused 3 times is
 * banned for an hour: its requests are denied with TOLLBAR_REASON_BANNED. `retry_after` is then the
 * exact end of the ban, for a cost of 1. The bucket is empty at that time and refills.
 *
 *   - A denied check counts as a refusal, and so does a wait that cannot get its permits in time. A peek,
 *     TOLLBAR_NEVER, and a take_up_to or reserve that takes nothing do not count. To count a refused peek, call the
 *     check at the time of that peek: tollbar_table_peek_at and tollbar_table_check_at with one `now_ns` decide
 *     alike. Of several limits in one call the first that refuses counts the refusal.
 *   - A charge that leaves no permit counts as a refusal: with "5/min ban 1h" the fifth failed login of the example
 *     above bans.
 *   - Refusals are forgotten when the bucket is full again, and at the end of a ban. Refusals during a ban do not
 *     prolong it.
 *   - tollbar_table_reset and tollbar_limiter_reset end a ban.
 *   - Bans are part of the key's state: they are in the table's file, and a changed policy with `ban` takes them
 *     over. After such a change a ban may last longer, by at most the refill of the new burst.
 *   - A full table that evicts (TOLLBAR_ON_FULL_EVICT_NEAREST) lets a new key take a banned key's slot. The new key
 *     is admitted and then owes until the ban would have ended, as with any slot that it takes. */

