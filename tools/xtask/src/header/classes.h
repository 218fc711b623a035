/* Classes of requests can share one limit. A lower class leaves a number of permits, its *reserve*, to the higher classes. The policy names the
 * classes and their reserves, and a request names its class:
 *
 *     tollbar_limiter_from_text("100/s reserve standard 20 urgent 0", &limiter, NULL);
 *     result = tollbar_limiter_check_class(limiter, 1, urgent ? "urgent" : "standard", NULL);
 *
 * The library refuses standard requests when 20 or fewer permits are left. Such a refusal has
 * TOLLBAR_REASON_RESERVE, and its `retry_after_ns` is the time until the cost and the reserve are
 * there. A call that names no class has no reserve. The number of a class can stand for its name:
 * "1" for the policy's first one. If the policy has no such class, the call returns
 * TOLLBAR_E_NO_SUCH_CLASS and charges nothing. A limit of tollbar_take_many has its class in
 * `class_name`, and a request of a batch in `class_number`.
 *
 * The reserve is a part of the burst and not of the rate: while higher classes take every permit
 * that is refilled, lower classes get none. A list leaves the reserve in both of its buckets. A
 * refusal because of the reserve counts toward a ban.
 *
 * A program that computes the reserve itself needs no classes:
 * tollbar_limiter_check_leaving(limiter, 1, 20, NULL).
 *
 * Policies that lend (`borrow`, pacer, warm-up), sliding windows, logs and limiters with credit
 * have no reserve.
 * Credit that threads hold for a hot key counts as taken, so the check of such a key may leave more than the reserve. */
