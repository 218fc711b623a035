// Waits in coroutines of asio. It needs asio's headers and C++20.
#include "test.hpp"

#include <chrono>
#include <vector>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/io_context.hpp>

#include "tollbar.hpp"
#include "tollbar/asio.hpp"

using namespace std::chrono_literals;
using namespace asio::experimental::awaitable_operators;
using std::chrono::steady_clock;

TEST(coroutines_wait_in_the_order_of_their_calls) {
    const tollbar::limiter limiter("50/s burst 1");
    asio::io_context on;
    std::vector<int> order;
    const auto began = steady_clock::now();
    for (int number = 0; number < 5; number++) {
        asio::co_spawn(
            on,
            [](const tollbar::limiter &of, std::vector<int> &to, int who) -> asio::awaitable<void> {
                if (const auto made = co_await tollbar::async_wait(of, 1min))
                    to.push_back(who);
            }(limiter, order, number),
            asio::detached);
    }
    on.run();
    CHECK(order == std::vector<int>({0, 1, 2, 3, 4}) && steady_clock::now() - began >= 80ms);
}

TEST(a_key_has_its_own_permits_and_a_late_caller_is_refused) {
    const tollbar::table table(100, {"1/day"});
    asio::io_context on;
    std::vector<bool> passed;
    asio::co_spawn(
        on,
        [](const tollbar::table &of, std::vector<bool> &to) -> asio::awaitable<void> {
            for (const char *key : {"ann", "ann", "bob"}) {
                const auto made = co_await tollbar::async_wait(of, key, 1s);
                to.push_back(made.allowed());
            }
        }(table, passed),
        asio::detached);
    on.run();
    CHECK(passed == std::vector<bool>({true, false, true}));
}

TEST(a_cancelled_wait_gives_its_booking_back) {
    const tollbar::limiter limiter("1/h");
    asio::io_context on;
    bool ended = false;
    CHECK(limiter.admit());
    asio::co_spawn(
        on,
        [](const tollbar::limiter &of, bool &end) -> asio::awaitable<void> {
            asio::steady_timer soon(co_await asio::this_coro::executor, 20ms);
            // The first one to end cancels the other.
            const auto first = co_await (tollbar::async_wait(of) || soon.async_wait(asio::use_awaitable));
            end = first.index() == 1;
        }(limiter, ended),
        asio::detached);
    on.run();
    CHECK(ended && limiter.peek().retry_after() <= 1h);
}
