// HTTP header fields through C++.
#include "test.hpp"

#include <chrono>
#include <cstdint>
#include <string>

#include "tollbar.hpp"

using namespace std::chrono_literals;
namespace http = tollbar::http;

TEST(lines_of_an_admission_and_of_a_refusal) {
    tollbar::table table(100, {"2/min"});
    const tollbar::spec policy("2/min");
    const auto first = table.check_at(0s, "k");
    CHECK(http::more_after_at(0s, table, "k", 1, first) == 30s && http::more_after(table, "k", 1, first) <= 30s);
    const http::limit admitted("per-minute", policy, first, 30s, "k");
    CHECK(http::lines({&admitted, 1}, http::fields::retry_after | http::fields::draft_11) ==
          "RateLimit-Policy: \"per-minute\";q=2;w=60;pk=:aw==:\r\nRateLimit: \"per-minute\";r=1;t=30;pk=:aw==:\r\n");
    CHECK(table.check_at(0s, "k"));
    const auto denied = table.check_at(0s, "k");
    const http::limit refused("per-minute", policy, denied);
    const auto text = http::lines({&refused, 1}, http::fields::retry_after | http::fields::legacy_epoch, 1'700'000'000s);
    CHECK(text == "Retry-After: 30\r\nX-RateLimit-Limit: 2\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 1700000060\r\n");
    CHECK(http::problem({&refused, 1}).find("\"status\":429,\"violated-policies\":[\"per-minute\"]}") != std::string::npos);
    const auto seen = http::read(text, 1'700'000'000s);
    CHECK(seen.limit == 2u && seen.remaining == 0u && seen.more_after == 60s && seen.retry_after == 30s && !seen.window);
    CHECK(!http::read("Content-Length: 3\r\n", 0s).limit);
    // A name that is longer than the first buffer.
    const std::string name(2000, 'n');
    const http::limit wordy(name, policy, denied);
    CHECK(http::lines({&wordy, 1}, http::fields::draft_11).size() > 4000);
    CHECK(http::try_lines({&wordy, 1}, http::fields::draft_07 | http::fields::draft_11).error() == tollbar::errc::out_of_range);
    CHECK(http::try_lines({}, http::fields::draft_11).error() == tollbar::errc::limits);
}

TEST(more_permits_of_a_limiter) {
    tollbar::limiter limiter("1/h");
    const auto admitted = limiter.check();
    CHECK(http::more_after(limiter, 1, admitted) <= 60min);
    CHECK(http::more_after_at(0s, tollbar::limiter("1/h"), 1, admitted) == 1ns);
    const tollbar::limiter virtual_time("1/h");
    const auto first = virtual_time.check_at(0s);
    CHECK(http::more_after_at(0s, virtual_time, 1, first) == 60min);
}
