/* tollbar.hpp: rate limiting in nanoseconds, exact and lock-free, for C++17 and later.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *     tollbar::limiter uploads("100/s burst 20");
 *     if (!uploads.check())
 *         return too_many_requests();
 *
 *     tollbar::table logins(1'000'000, {"5/min burst 3"});     // keys; 20 bytes each
 *     if (!logins.check(address))
 *         return try_later();
 *
 *     if (const auto decision = logins.check(address); !decision && decision.retry_after())
 *         reply(429, *decision.retry_after());                 // std::chrono::nanoseconds
 *
 *     if (!tollbar::take_many({{uploads}, {logins, address}})) // both are charged, or none
 *         return try_later();
 *
 * Every function is inline over tollbar.h, which is the manual: it explains policies, bounds and errors. This header adds owners,
 * types and names, and adds no cost to a decision.
 *
 *     tollbar/error.hpp     errc, error, policy_error, result<T>
 *     tollbar/decision.hpp  verdict, decision, instant, span
 *     tollbar/policy.hpp    spec (a policy as data), policy (compiled, for cells), cell
 *     tollbar/limiter.hpp   limiter
 *     tollbar/key.hpp       key, bytes_of, prefix
 *     tollbar/table.hpp     table
 *     tollbar/take_many.hpp take_many (several limits in one request, all or nothing)
 *     tollbar/in_flight.hpp in_flight, permit (how many a key has open at one time)
 *     tollbar/queue.hpp     queue (items that wait, and leave at a policy's pace)
 *     tollbar/route.hpp     route (which of several nodes a key belongs to)
 *     tollbar/metrics.hpp   metrics (counts and sizes for Prometheus)
 *     tollbar/http.hpp      http::lines, http::problem, http::read (header fields for clients, and of servers)
 *
 * Limits that machines share through Redis or Valkey are in tollbar_redis.hpp, and limits from a file in tollbar/rules.hpp.
 *
 * Conventions
 *
 * Decisions never throw. check, admit, peek, take_up_to, take_many and wait are noexcept and say "no" where they fail:
 *     a verdict is true if and only if the request was admitted and charged. Whether a "no" is an error is
 *     what .failed() and .error() tell. So a limiter that was moved from refuses, and nothing crashes.
 * The rest throws tollbar::error, and has a twin that does not: name() throws, try_name() returns a result<T>
 *     with the value or the failure; the twin of a constructor is try_make(). Without exceptions
 *     (-fno-exceptions) the throwing ones end the program by std::abort; the others are as they were.
 * Owners are move-only. One that was moved from holds nothing: it converts to false and every call fails with
 *     errc::null. get() lends the C handle, release() gives it away, adopt() takes one.
 * Threads: const members may be called by any number of threads at once, on either side of a fork. Making,
 *     moving, assigning and destroying are for one thread while no other thread calls.
 * Durations are std::chrono's, of any unit, and saturate: negative ones count as 0. A time that is not there
 *     (the wait of a request that can never pass) is an empty std::optional, since arithmetic with a
 *     greatest duration overflows silently.
 */

#ifndef TOLLBAR_HPP
#define TOLLBAR_HPP

#include "tollbar/adaptive.hpp"
#include "tollbar/decision.hpp"
#include "tollbar/error.hpp"
#include "tollbar/hierarchy.hpp"
#include "tollbar/http.hpp"
#include "tollbar/in_flight.hpp"
#include "tollbar/key.hpp"
#include "tollbar/limiter.hpp"
#include "tollbar/meter.hpp"
#include "tollbar/metrics.hpp"
#include "tollbar/pacing.hpp"
#include "tollbar/policy.hpp"
#include "tollbar/queue.hpp"
#include "tollbar/route.hpp"
#include "tollbar/schedule.hpp"
#include "tollbar/table.hpp"
#include "tollbar/take_many.hpp"
#include "tollbar/waiting.hpp"

#endif // TOLLBAR_HPP
