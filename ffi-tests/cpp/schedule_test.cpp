// Schedules: the policy in force, the next change, and texts that are wrong.
#include "test.hpp"

#include <chrono>

#include "tollbar.hpp"

using namespace std::chrono_literals;

TEST(the_policy_in_force) {
    const tollbar::schedule hours = "1000/min, mon-fri 09:00-18:00 100/min, zone CET-1CEST,M3.5.0,M10.5.0/3";
    const auto friday = 1774598400s; // 2026-03-27 09:00 in Berlin
    const auto now = hours.at(friday);
    CHECK(now.policy.limit() == 100 && now.until == friday + 9h);
    CHECK(hours.at(friday - 1ns).policy.limit() == 1000);
    CHECK(hours.text() == "1000/min, mon-fri 09:00-18:00 100/min, zone STD-1DST,M3.5.0,M10.5.0/3");
    CHECK(!tollbar::schedule("5/s").at(friday).until);
    CHECK(hours.at(std::chrono::system_clock::now()).until.has_value());
}

TEST(a_table_follows) {
    const tollbar::schedule hours = "10/min, 09:00-18:00 5/min";
    tollbar::table_options options = 100;
    options.clock = tollbar::clock_source::wall;
    const tollbar::table table(options, {"10/min"});
    CHECK(table.try_set_policy(tollbar::policy_id{}, hours.at(10h).policy).has_value());
    CHECK(table.policy(tollbar::policy_id{}).limit() == 5);
}

TEST(wrong_texts) {
    CHECK_THROWS(tollbar::policy_error, tollbar::schedule("1/s, moon 2/s"), e, e.column() == 6);
    CHECK(tollbar::schedule::try_parse("").why().code == tollbar::errc::syntax);
}
