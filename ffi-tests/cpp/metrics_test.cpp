// Metrics through C++.
#include "test.hpp"

#include <array>
#include <string>
#include <vector>

#include "tollbar.hpp"

TEST(metrics_of_a_limiter_and_a_table) {
    const tollbar::limiter limiter("1/h");
    const tollbar::table table(100, {"5/min", "7/h"});
    for (int n = 0; n < 3; n++)
        (void)limiter.admit();
    CHECK(table.admit("k"));
    const std::array<tollbar::metrics_source, 2> sources = {{{"api", limiter}, {"logins", table}}};
    const std::string text = tollbar::metrics(sources);
    CHECK(text.find("tollbar_decisions_total{limit=\"api\",policy=\"0\",verdict=\"denied\"} 2\n") != std::string::npos);
    CHECK(text.find("tollbar_table_used_slots{limit=\"logins\"} 1\n") != std::string::npos);
    CHECK(tollbar::metrics(sources, tollbar::metrics_format::openmetrics).find("# EOF\n") != std::string::npos);
    CHECK(tollbar::metrics({}).find('{') == std::string::npos);
    // More text than the first buffer has room for.
    const std::vector<tollbar::metrics_source> many(64, {"logins", table});
    CHECK(tollbar::metrics(many).size() > 20000);
    const std::vector<tollbar::metrics_source> most(TOLLBAR_METRICS_MOST + 1, {"logins", table});
    CHECK(tollbar::try_metrics(most).error() == tollbar::errc::out_of_range);
}

TEST(one_in_1024_calls_is_measured) {
    tollbar::times times, idle;
    const tollbar::limiter limiter("1/h");
    CHECK(times.of([&] { return limiter.check(); }));
    int count = 0;
    CHECK(&times.of([&]() -> int & { return count; }) == &count);
    for (int n = 2; n < TOLLBAR_TIMES_EVERY; n++)
        times.of([&] { count++; });
    CHECK(count == TOLLBAR_TIMES_EVERY - 2);
    CHECK_THROWS(int, times.of([] { throw 7; }), e, e == 7);
    const std::array<tollbar::times_source, 2> sources = {{{"api", times}, {"idle", idle}}};
    const std::string text = tollbar::times_metrics(sources);
    CHECK(text.find("# TYPE tollbar_decision_nanoseconds histogram\n") != std::string::npos);
    CHECK(text.find("tollbar_decision_nanoseconds_bucket{limit=\"api\",le=\"+Inf\"} 2\n") != std::string::npos);
    CHECK(text.find("tollbar_decision_nanoseconds_count{limit=\"idle\"} 0\n") != std::string::npos);
    const std::vector<tollbar::times_source> many(64, {"api", times});
    CHECK(tollbar::times_metrics(many).size() > 20000);
    CHECK(tollbar::try_times_metrics(std::vector<tollbar::times_source>(TOLLBAR_METRICS_MOST + 1,
        {"api", times})).error() == tollbar::errc::out_of_range);
}
