// Several limits in one request: the expectations of ffi-tests/c/take_many_test.c, and the C++
// wrappers.
#include "test.hpp"

#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include "tollbar.hpp"

using namespace std::chrono_literals;
using tollbar::errc;
using tollbar::limit;
using tollbar::limiter;
using tollbar::table;
using tollbar::take_many;
using tollbar::take_many_at;

static_assert(noexcept(take_many(std::declval<const std::vector<limit> &>())));

TEST(the_longest_wait_binds) {
    const limiter second("2/s"), hour("5/h");
    const table keys(100, {"3/min"});
    std::array<tollbar::decision, 3> each;
    const auto first = take_many_at(1s, {{second}, {keys, "k"}, {hour}}, each);
    CHECK(first && first.why() == tollbar::reason::admitted && first.remaining() == 1 && first.bound() == 0);
    CHECK(first.reset_after() == 720s && first.retry_after() == 0ns);
    CHECK(each[0] && each[0].remaining() == 1 && each[1].remaining() == 2 && each[2].remaining() == 4);

    const auto never = take_many_at(1s, {{second, 3}, {keys, "k", 3}, {hour}});
    CHECK(never.never() && never.bound() == 0 && !never.retry_after());
    const std::vector<limit> limits = {{second, 2}, {keys, "k", 3}, {hour}};
    const auto refused = take_many_at(1s, limits, each);
    CHECK(!refused && refused.denied() && refused.bound() == 1 && refused.why() == tollbar::reason::rate);
    CHECK(refused.retry_after() == 20s && each[0].retry_after() == 500ms && each[2].allowed());
    // A refusal has charged none of them.
    CHECK(take_many_at(1s, limits).denied());
    CHECK(second.peek_at(1s) && keys.peek_at(1s, "k", 2) && hour.peek_at(1s, 4));
}

TEST(by_their_own_clocks) {
    const limiter day("1/day");
    const table keys(100, {"1/min", "1/day"});
    const auto per_day = static_cast<tollbar::policy_id>(1);
    CHECK(take_many({{keys, {"k", per_day}}, {day}}) && take_many({{keys, {"k", per_day}}, {day}}).denied());
    CHECK(take_many({{keys, {"k", per_day}}}).denied() && take_many({{keys, "k"}}));
}

TEST(bad_limits_charge_nothing) {
    const limiter few("3/s");
    const table keys(100, {"3/s"});
    limiter taken_from("3/s");
    const limiter moved = std::move(taken_from);
    const auto none = static_cast<tollbar::policy_id>(7);
    const std::vector<limit> many(17, limit(few));
    std::array<tollbar::decision, 1> room;
    CHECK(take_many_at(1s, std::vector<limit>()).error() == errc::limits);
    CHECK(take_many_at(1s, many).error() == errc::limits);
    CHECK(take_many_at(1s, {{few}, {keys, {"k", none}}}).error() == errc::no_such_policy);
    CHECK(take_many_at(1s, {{few}, {taken_from}}).error() == errc::null);
    const auto small = take_many_at(1s, {{few}, {keys, "k"}}, room);
    CHECK(!small && small.error() == errc::buffer_too_small && small.why() == tollbar::reason::fault && !small.retry_after());
    CHECK(few.peek_at(1s, 3) && keys.peek_at(1s, "k", 3) && !room[0]);
    CHECK(take_many_at(1s, {{few}, {keys, "k"}}));
    // An empty key is a missing key, and the table's options decide on it.
    CHECK(take_many_at(1s, {{few}, {keys, ""}}).why() == tollbar::reason::missing_key);
}

TEST(one_limit_many_times) {
    const limiter hour("16/h");
    CHECK(take_many_at(1s, std::vector<limit>(TOLLBAR_LIMITS_MOST, limit(hour))) && hour.peek_at(1s).denied());
}

TEST(ten_a_second_and_four_at_one_time) {
    const limiter rate("10/s");
    const tollbar::in_flight uploads(100);
    std::array<tollbar::permit, 4> held;
    for (auto &permit : held) {
        CHECK(!permit && permit.answer().denied());
        CHECK(take_many_at(1s, {{rate}, {uploads, "ann", 4, permit}}) && permit && permit.answer().allowed());
    }
    tollbar::permit more;
    const auto refused = take_many_at(1s, {{rate}, {uploads, "ann", 4, more}});
    CHECK(refused.denied() && refused.why() == tollbar::reason::in_flight && refused.bound() == 1 && !refused.retry_after());
    CHECK(!more && !more.give_back() && uploads.count("ann") == 4);
    // Six permits of the rate are left: the refusal charged none.
    held = {};
    CHECK(uploads.count("ann") == 0 && rate.peek_at(1s, 6) && rate.peek_at(1s, 7).denied());
    CHECK(take_many_at(1s, {{rate, 7}, {uploads, "ann", 4, more}}).why() == tollbar::reason::rate);
    CHECK(!more && uploads.count("ann") == 0);
    // A permit object that is used again releases its former permit.
    CHECK(take_many_at(1s, {{uploads, "ann", 4, more}}) && take_many_at(1s, {{uploads, "bob", 4, more}}));
    CHECK(uploads.count("ann") == 0 && uploads.count("bob") == 1);
}
