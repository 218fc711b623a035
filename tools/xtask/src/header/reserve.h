/* tollbar_table_check refuses a request and says when to try again. A job that would rather wait than fail has two calls.
 * tollbar_table_wait sleeps. tollbar_table_reserve returns at once and leaves the waiting to the
 * caller, who may have an event loop: it takes the permits first, for the earliest instant at which
 * they may be used. So reservations depart one after the other, however many there are.
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
 * Callers of tollbar_table_wait wait in a queue for each key, in the order in which they came. A
 * caller that comes while others wait joins the queue, also if a permit is there. Only the first of
 * a queue holds a reservation, so callers that give up, and a process that is killed, leave no more
 * than one behind. Each process (each tollbar_table object) has its own queues. Between them turns
 * go by their first callers: a later caller of another queue may depart before this one, at most
 * one of each other queue for each caller before this one in its own.
 *
 * Gcra, lists of two, pacer, warm-up, and interval aligned to time 0 book ahead. All other
 * algorithms cannot: there a reserve is denied, and the first of a queue sleeps until a permit
 * could be free and tries again. A caller that checks in a loop may take every such permit; past a
 * reservation it gets none. The same calls exist for a limiter.
 */

