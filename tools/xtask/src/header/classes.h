/* Classes of requests can share one limit. A lower class leaves a number of permits, its *reserve*, to the higher classes. The highest class calls
 * the plain check, and each other class gives its reserve:
 *
 *     result = urgent ? tollbar_limiter_check(limiter, 1, NULL)
 *                     : tollbar_limiter_check_leaving(limiter, 1, 20, NULL);
 *
 * Under "100/s" the library refuses the other requests when 20 or fewer permits are left. A refusal's `retry_after_ns` is the time until the cost
 * and the reserve are there. The reserve is a part of the burst and not of the rate: while higher classes take every permit that is refilled,
 * lower classes get none. A refusal because of the reserve counts toward a ban.
 *
 * Policies that lend (`borrow`, pacer, warm-up), sliding windows, logs and limiters with credit have no reserve. Credit that threads hold for a hot
 * key counts as taken, so the check of such a key may leave more than the reserve. */
