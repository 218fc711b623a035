/* For one key that many threads check at once, such as a global limit on all requests or a limit on one backend. With a
 * plain limiter these threads wait for one cache line. Here a thread that is admitted is charged for more permits than its request
 * costs. It keeps the rest as credit on a cache line of its own, and spends it on its next requests without reading the clock.
 *
 *     tollbar_striped *all;
 *     tollbar_striped_from_text("5000000/s burst 100000", &all, NULL);
 *
 *     if (tollbar_striped_check(all, 1, NULL) != TOLLBAR_ALLOWED)
 *         return too_many_requests();
 *
 * The bound stays burst + rate * t in every interval t, whatever the threads do. It costs part of the burst: the credit of
 * all threads together is at most C, an eighth of the burst and at most 65,536 permits, or 0 if the burst is below 32. One
 * call can take at most burst - C.
 * A thread keeps at most a sixteenth of the remaining permits. Near the limit a thread keeps none, and each request is
 * decided as by a limiter of burst - C.
 * A thread that ends or stops asking leaves its credit. That credit is lost when another thread takes credit, 16 refills of
 * the bucket or one second later. Less than one permit in a hundred is lost this way, and none while the bucket is nearly
 * empty. Threads have nothing to set up or to end. */

