// Pacing of a client's requests, through the C++ header.
#define TOLLBAR_EXPERIMENTAL
#include "test.hpp"

#include <chrono>
#include <cstring>

#include "tollbar.hpp"

using namespace std::chrono_literals;
using tollbar::pacing;

TEST(a_host_is_paced_and_pauses) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" // the macro is C's
    const tollbar_pacing_options in_c = TOLLBAR_PACING_OPTIONS_INIT;
#pragma GCC diagnostic pop
    auto options = pacing::defaults();
    CHECK(std::memcmp(&in_c, &options, sizeof in_c) == 0);
    options.most = 10'000'000;
    pacing pace(options, 4);
    CHECK(!pace.read_at(0s, "a"));
    const auto first = pace.acquire_at(0s, "a"), second = pace.acquire_at(0s, "a"), third = pace.acquire_at(0s, "a");
    CHECK(pace.wait_at(0s, first) == 0ns && pace.wait_at(0s, second) == 100ms && pace.wait_at(0s, third) == 200ms);
    pace.leave_at(0s, second);
    CHECK(pace.wait_at(0s, third) == 100ms);
    pace.respond_at(1s, first, 429, "Retry-After: 7\r\n", 0s);
    CHECK(pace.wait_at(2s, third) == 6s && pace.wait_at(8s, third) == 0ns);
    CHECK(pace.read_at(2s, "a")->paused_ns == 6'000'000'000 && pace.read_at(2s, "a")->rate < options.most);
}

TEST(acquire_sleeps_until_the_turn) {
    auto options = pacing::defaults();
    options.most = 50'000'000;
    pacing pace(options);
    const auto begin = std::chrono::steady_clock::now();
    pace.acquire("a");
    const auto second = pace.acquire("a");
    pace.respond(second, 200, "");
    // A turn in 20 ms at 50/s. No upper bound: a busy machine may wake a thread late.
    CHECK(std::chrono::steady_clock::now() - begin >= 20ms);
}

TEST(wrong_arguments_throw) {
    auto options = pacing::defaults();
    options.least = 0;
    CHECK_THROWS(tollbar::error, pacing(options), e, e.code() == tollbar::errc::out_of_range);
    CHECK_THROWS(tollbar::error, pacing(pacing::defaults(), 0), e, e.code() == tollbar::errc::capacity);
    pacing pace;
    const auto turn = pace.acquire("a");
    CHECK_THROWS(tollbar::error, pace.respond(turn, 70'000, ""), e, e.code() == tollbar::errc::out_of_range);
}
