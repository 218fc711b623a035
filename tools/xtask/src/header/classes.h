/* Classes of requests share one limit, and the lower ones leave head-room for the higher ones. The highest class calls the plain check, and each
 * other class gives the number of permits that it leaves:
 *
 *     result = urgent ? tollbar_limiter_check(limiter, 1, NULL)
 *                     : tollbar_limiter_check_leaving(limiter, 1, 20, NULL);
 *
 * Under "100/s" the other requests stop exactly when 20 permits are left. A refusal's `retry_after` is the earliest time at which the cost and
 * the reserve are there. A reserve is of the burst, and not of the rate: while higher classes take all that is refilled, lower ones get nothing.
 * A request that is refused for the reserve counts as a refusal for a ban.
 *
 * Policies that lend (`borrow`, pacer, warm-up), sliding windows and logs, and limiters with credit keep no reserve. Credit that threads have of a
 * hot key counts as taken, so such a key may keep back more than the reserve. */
