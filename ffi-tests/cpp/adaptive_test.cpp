// Limits in flight that follow the latency, through the C++ header.
#define TOLLBAR_EXPERIMENTAL
#include "test.hpp"

#include <chrono>
#include <cstring>

#include "tollbar.hpp"

using namespace std::chrono_literals;
using tollbar::adaptive;
using tollbar::flight_outcome;

TEST(the_limit_follows_the_latency) {
    auto options = adaptive::defaults();
    options.algorithm = TOLLBAR_ADAPTIVE_AIMD;
    options.timeout_ns = 1'000'000;
    options.window_ns = 0;
    options.initial = 2;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" // the macro is C's
    const tollbar_adaptive_options in_c = TOLLBAR_ADAPTIVE_OPTIONS_INIT;
#pragma GCC diagnostic pop
    auto defaults = adaptive::defaults();
    CHECK(std::memcmp(&in_c, &defaults, sizeof in_c) == 0);
    adaptive limit(options);
    const auto first = limit.acquire(), second = limit.acquire();
    CHECK(first && second && !limit.acquire() && limit.read().in_flight == 2);
    CHECK(limit.release(*first, flight_outcome::answered, 1ms) && limit.read().limit == 3);
    CHECK(limit.release_at(1s, *second, flight_outcome::dropped, 1ms) && limit.read().limit == 2);
    CHECK(!limit.release(*second, flight_outcome::ignored, 1ms) && limit.read().in_flight == 0);

    const tollbar::in_flight table(10);
    const auto ticket = limit.acquire(table, "k");
    CHECK(ticket && limit.acquire(table, "k") && !limit.acquire(table, "k") && table.count("k") == 2);
    CHECK(limit.release(table, "k", *ticket, flight_outcome::answered, 1ms) && limit.read().limit == 3);
    CHECK(table.count("k") == 1 && limit.get() != nullptr);
}

TEST(a_rate_and_a_learned_limit_in_one_decision) {
    auto options = adaptive::defaults();
    options.algorithm = TOLLBAR_ADAPTIVE_AIMD;
    options.timeout_ns = 1'000'000;
    options.window_ns = 0;
    options.initial = 1;
    adaptive server(options);
    const tollbar::in_flight open(10);
    const tollbar::limiter rate("2/h");
    tollbar::permit first, second;
    CHECK(server.limit() == 1 && tollbar::take_many({{rate}, {open, "server", server.limit(), first}}));
    const auto refused = tollbar::take_many({{rate}, {open, "server", server.limit(), second}});
    CHECK(refused.denied() && refused.bound() == 1 && refused.why() == tollbar::reason::in_flight);
    CHECK(server.release(open, "server", first.release(), flight_outcome::answered, 1ms) && server.limit() == 2);
    CHECK(tollbar::take_many({{rate}, {open, "server", server.limit(), first}}));
    // The rate refuses, and nothing is opened.
    CHECK(tollbar::take_many({{rate}, {open, "server", server.limit(), second}}).bound() == 0 && open.count("server") == 1);
}

TEST(bounds_are_in_order) {
    auto options = adaptive::defaults();
    options.most = 1;
    CHECK_THROWS(tollbar::error, adaptive(options), e, e.code() == tollbar::errc::out_of_range);
}
