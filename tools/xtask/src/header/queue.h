/* A limiter refuses what is above its rate. A queue keeps it, up to a bound, and hands it out later, in the order in which it came: text
 * messages to a gateway that takes ten a second, jobs for workers that may not be flooded.
 *
 *     tollbar_queue *outbox;
 *     if (tollbar_queue_from_text("10/s algo pacer", 1000, &outbox, NULL) != 0)        // up to 1,000 messages wait
 *         return 1;
 *     ...
 *     tollbar_queue_run(outbox, send_message, gateway);          // in a thread of yours: calls send_message(gateway, message) for each
 *     ...
 *     if (tollbar_queue_offer(outbox, message, NULL) != TOLLBAR_ALLOWED)
 *         return try_later();
 *
 * A loop of the caller's can take the items instead. tollbar_queue_take never sleeps, tollbar_queue_next_departure says when it will next
 * return an item, and tollbar_queue_take_within sleeps.
 *
 * The policy admits items when they leave, not when they come. So a worker that was late does not catch up by a burst, unless the policy
 * has one: `slack` of a pacer, `burst` of a token bucket. Items leave in the order of their offers. Offers that overlap in time may come in
 * either order.
 *
 * No call locks. Only _new, _from_text and _free allocate. Only _run, _offer_within and _take_within sleep. An offer, a take, a cancellation,
 * a close or a stop enters the kernel if it has such a caller to wake.
 *
 * A spare bucket, which keeps what overflows and feeds it back when there is room, is a larger `capacity`: `ahead` of the ticket says whether the
 * item waits behind more items than the first bucket would hold.
 */

