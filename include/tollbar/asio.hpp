/* tollbar/asio.hpp: waits in coroutines of asio (https://think-async.com). It is no part of tollbar.hpp, needs asio's headers and
 * C++20, and is included by its name.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_ASIO_HPP
#define TOLLBAR_ASIO_HPP

#include <cstdint>
#include <utility>

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include "waiting.hpp"

namespace tollbar {

namespace detail {

template <class Target> ::asio::awaitable<decision> async_wait(Target of, nanoseconds patience, std::uint64_t cost) {
    ::asio::steady_timer timer(co_await ::asio::this_coro::executor);
    waiter<Target> caller(std::move(of), patience, cost);
    while (const auto pause = caller.pause()) {
        timer.expires_after(*pause);
        co_await timer.async_wait(::asio::use_awaitable);
    }
    co_return caller.answer();
}

} // namespace detail

/// `co_await async_wait(limiter, 2s)` takes permits, and waits for them up to `patience`. A cancelled
/// wait throws what asio's timers throw, and gives its booking back.
inline ::asio::awaitable<decision> async_wait(const limiter &of, nanoseconds patience = nanoseconds::max(),
                                              std::uint64_t cost = 1) {
    return detail::async_wait(detail::one_limiter(of), patience, cost);
}
/// The same for a key, whose bytes are copied.
inline ::asio::awaitable<decision> async_wait(const table &of, const key &with,
                                              nanoseconds patience = nanoseconds::max(), std::uint64_t cost = 1) {
    return detail::async_wait(detail::one_key(of, with), patience, cost);
}

} // namespace tollbar

#endif // TOLLBAR_ASIO_HPP
