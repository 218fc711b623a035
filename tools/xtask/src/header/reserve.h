/* tollbar_table_check refuses a request and says when to try again. A job that would rather wait than fail has two calls.
 * tollbar_table_wait sleeps. tollbar_table_reserve returns at once and leaves the waiting to the caller, who may have an event loop. Both
 * take the permits first, for the earliest instant at which they may be used. So the callers of a key depart one after the other, however
 * many there are, and no caller wakes in vain.
 *
 *     tollbar_reservation mail;
 *     if (tollbar_table_reserve(table, MAILS, tenant, strlen(tenant), 1, patience_ns, &mail) != TOLLBAR_ALLOWED)
 *         return try_later();
 *     run_after(mail.wait_ns, send_mail, tenant);
 *
 *     tollbar_table_cancel(table, MAILS, tenant, strlen(tenant), &mail, NULL);        // the user has changed her mind
 *
 * tollbar_table_cancel gives back the permits that no later reservation waits behind.
 *
 * Gcra, lists of two, pacer, warm-up, and interval aligned to time 0 book ahead. All other algorithms cannot: there a reserve is denied,
 * and a wait sleeps until a permit could be free and tries again. The same calls exist for a limiter.
 */

