/* For one key that threads ask for so often that they stand in line for its cache line: a global limit on all
 * requests, or on what goes to one backend. A thread that is admitted takes some permits more in advance, its
 * credit, and the next requests are decided on its own cache line, without the clock.
 *
 *     tollbar_striped *all;
 *     tollbar_striped_from_text("5000000/s burst 100000", &all, NULL);
 *
 *     if (tollbar_striped_check(all, 1, NULL) != TOLLBAR_ALLOWED)
 *         return too_many_requests();
 *
 * Still at most burst + rate * t in every interval t, whatever threads do. For that, all credit together is at
 * most C = an eighth of the burst, 65,536 at most, and none if the burst is below 32; and burst - C is the most
 * that can be had at once or asked for in one call. A thread keeps at most a sixteenth of what remains, none near the
 * limit; there each request is decided as by a limiter of burst - C. Credit that a thread leaves (it ends, or has no
 * more to ask) is lost when another takes credit 16 refills of the bucket later, or a second; so is less than one
 * permit in a hundred, and none while the bucket is nearly empty. Threads have nothing to set up or to end. */

