/* A limiter refuses requests above its rate. A queue keeps them as items, up to a bound, and gives them out later in the order of their offers: for
 * example text messages to a gateway that takes ten a second.
 *
 *     tollbar_queue *outbox;
 *     if (tollbar_queue_from_text("10/s algo pacer", 1000, &outbox, NULL) != 0)        // up to 1,000 messages wait
 *         return 1;
 *     ...
 *     tollbar_queue_run(outbox, send_message, gateway);          // in a thread of the caller's: calls send_message(gateway, message) for each
 *     ...
 *     if (tollbar_queue_offer(outbox, message, NULL) != TOLLBAR_ALLOWED)
 *         return try_later();
 *
 * A loop of the caller's can take the items instead. tollbar_queue_take never sleeps,
 * tollbar_queue_next_departure says when it will next return an item, and tollbar_queue_take_within
 * sleeps.
 *
 * The policy charges an item when it leaves, not when it is offered. So a worker that was late gets
 * no burst to catch up, unless the policy has one: `slack` of a pacer, `burst` of a token bucket.
 * Two offers that overlap in time may enter in either order.
 *
 * No call takes a lock. Only _new and _from_text allocate, and _free frees. Only _run,
 * _offer_within and _take_within sleep. An offer, a take, a cancellation, a close or a stop makes a
 * system call only to wake such a sleeper.
 *
 * A queue may have a spare (tollbar_queue_options), which holds up to `spare` items that overflow
 * the capacity. When an item leaves the first queue, the oldest item of the spare moves up into it.
 * Items leave in the order in which they were offered. `spare` of a ticket is above 0 if the item
 * went into the spare. A producer that sees this can slow down before the queue refuses an offer.
 * The spare has no rate of its own: its items leave at the rate of the first queue.
 */

