/* tollbar_redis.hpp: limits that machines share through Redis or Valkey, for C++17 and later.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *     tollbar::lease logins("logins", "100/s burst 50", 4);     // machines
 *     tollbar::lease_client client(logins, "redis://127.0.0.1");
 *     client.start();                                           // a thread; or tick() from an event loop
 *     if (!logins.check(address))
 *         return try_later();
 *
 * Everything here is inline over tollbar_redis.h, which is the manual. Its calls are libtollbar-redis's, and a program links both
 * libraries (`pkg-config --libs tollbar-redis`, tollbar::redis in CMake). The conventions are tollbar.hpp's.
 *
 *     tollbar/lease.hpp       lease, lease_client
 *     tollbar/lease_calls.hpp lease_calls (the program's own Redis client asks)
 *     tollbar/store_limit.hpp store_limit (the store decides each request)
 */

#ifndef TOLLBAR_REDIS_HPP
#define TOLLBAR_REDIS_HPP

#include "tollbar.hpp"
#include "tollbar/lease.hpp"
#include "tollbar/lease_calls.hpp"
#include "tollbar/store_limit.hpp"

#endif // TOLLBAR_REDIS_HPP
