// Limiters.
#include "test.hpp"

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "tollbar.hpp"

using namespace std::chrono_literals;
using tollbar::errc;
using tollbar::limiter;

static_assert(!std::is_copy_constructible_v<limiter> && !std::is_copy_assignable_v<limiter>);
static_assert(std::is_nothrow_move_constructible_v<limiter> && std::is_nothrow_move_assignable_v<limiter>);
static_assert(!std::is_convertible_v<const char *, limiter> && !std::is_convertible_v<limiter, bool>);
static_assert(noexcept(std::declval<const limiter &>().admit()) && noexcept(std::declval<const limiter &>().check()));
static_assert(noexcept(std::declval<const limiter &>().wait(std::declval<const std::chrono::seconds &>())) && noexcept(limiter::try_make("")));
static_assert(!noexcept(limiter("")) && !noexcept(std::declval<const limiter &>().state()));

TEST(a_limiter_of_a_list) {
    const limiter api("2/s; 5/day");
    CHECK(api.admit_at(1h, 2) && !api.admit_at(1h) && api.check_at(1h).bound() == 0);
    CHECK(api.admit_at(1h + 1s, 2) && api.admit_at(1h + 2s));
    const auto refused = api.check_at(1h + 3s);
    CHECK(refused.denied() && refused.bound() == 1 && refused.retry_after() > 4h);
}

// S37: a sender of 100 MB/s in costs of 1,500 bytes is off by less than one cost after 10 s, and one
// that takes what there is by nothing.
TEST(s37_bytes_are_permits) {
    constexpr std::uint64_t cost = 1500, bytes = 15'000 + 10 * 100'000'000ULL;
    const limiter whole("100mb/s burst 15000 unit bytes"), all("100mb/s burst 15000 unit bytes");
    std::uint64_t sent = 0, got = 0;
    for (std::chrono::microseconds now = 1000s; now <= 1010s; now += 100us) {
        while (whole.admit_at(now, cost))
            sent += cost;
        got += all.take_up_to_at(now, UINT64_MAX).permits;
    }
    CHECK(sent <= bytes && bytes - sent < cost);
    CHECK(got == bytes);
}

TEST(a_lower_class_leaves_its_reserve) {
    const tollbar::limiter limiter("100/s");
    const tollbar::table table(10, {"100/s"});
    const auto now = std::chrono::hours(1);
    for (int n = 0; n < 80; n++) {
        CHECK(limiter.check_leaving_at(now, 20).allowed());
        CHECK(table.check_leaving_at(now, "key", 20).allowed());
    }
    CHECK(limiter.check_leaving_at(now, 20).denied() && limiter.peek_at(now).remaining() == 20);
    CHECK(table.check_leaving_at(now, "key", 20).denied() && table.peek_at(now, "key").remaining() == 20);
    CHECK(limiter.check_leaving(20, 81).never() && table.check_leaving("key", 20, 81).never());
    const tollbar::limiter classed("100/s reserve low 20 high 0");
    const tollbar::table keyed(10, {"100/s reserve low 20 high 0"});
    CHECK(classed.check_class_at(now, "low", 80).allowed() && keyed.check_class_at(now, "key", "low", 80).allowed());
    CHECK(classed.check_class_at(now, "low").why() == tollbar::reason::reserve);
    CHECK(keyed.check_class_at(now, "key", "1").why() == tollbar::reason::reserve);
    CHECK(classed.check_class_at(now, "high").remaining() == 19 &&
        keyed.check_class_at(now, "key", "high").remaining() == 19);
    CHECK(classed.check_class("low", 81).never() && keyed.check_class("key", "low", 81).never());
    CHECK(classed.check_class("lo").error() == tollbar::errc::no_such_class);
    CHECK(keyed.check_class("key", "lo").error() == tollbar::errc::no_such_class);
    const tollbar::spec built = tollbar::spec(100, std::chrono::seconds(1)).with_class("low", 20).with_class("high", 0);
    CHECK(built == tollbar::spec("100/s reserve low 20 high 0") && built.text() == "100/s reserve low 20 high 0");
    const auto none = tollbar::errc::classes;
    CHECK(built.with_class("a-name-that-is-16", 1).try_validate().why().code == none);
    CHECK(built.with_class("a", 1).with_class("b", 1).with_class("c", 1).try_validate().why().code == none);
    CHECK(tollbar::limiter("10/s borrow").check_leaving(1).error() == tollbar::errc::option_mismatch);
}

TEST(a_limiter_of_a_text) {
    const limiter uploads("3/min");
    CHECK(uploads.admit_at(1h) && uploads.admit_at(1h, 2) && !uploads.admit_at(1h));
    CHECK(uploads.admit_at(1h, 4).never() && uploads.admit_at(1h, 0));
    const auto refused = uploads.check_at(1h, 2);
    CHECK(refused.denied() && refused.retry_after() == 40s && refused.reset_after() == 60s);
    CHECK(uploads.peek_at(1h + 40s, 2) && uploads.peek_at(1h + 40s, 2).remaining() == 2);
    CHECK(uploads.check_at(1h + 40s, 2).retry_after() == 0ns);
    CHECK(uploads.policy() == tollbar::spec("3/min") && uploads.try_policy());
}

TEST(a_limiter_with_a_clock) {
    const limiter uploads(tollbar::spec(3, 1h), {tollbar::clock_source::monotonic, 1});
    CHECK(uploads.admit() && uploads.peek() && uploads.check().remaining() == 1);
    auto state = uploads.state();
    CHECK(state.remaining == 1 && state.retry_after == 0ns && state.waiting == 0 && state.backward_steps == 0);
    CHECK(state.reset_after > 30min && state.now <= uploads.now() && state.now > 0ns);
    const tollbar::limiter later("1/s burst 5");
    CHECK(later.charge_at(1h, 7) && later.charge_at(1h, 7).rest == 4 && later.charge_at(1h).answer.denied());
    CHECK(later.peek_at(1h).retry_after() == 6s && later.charge(0) && later.charge(0).rest == 0);
    CHECK(uploads.take_up_to(5).permits == 1 && !uploads.take_up_to(5) && uploads.take_up_to(5).answer.denied());
    CHECK(*uploads.try_state()->retry_after > 10min);
    uploads.reset();
    CHECK(uploads.try_reset() && uploads.admit(3));
    CHECK(uploads.admit_at(uploads.now() + 2h, 3));
    // UTC, by the system's date.
    const auto date = std::chrono::system_clock::now().time_since_epoch() - std::chrono::nanoseconds(TOLLBAR_TIME_ZERO);
    CHECK(uploads.now() > date - 10s && uploads.now() < date + 60s);
}

TEST(a_limiter_that_cannot_be_made) {
    CHECK_THROWS(tollbar::policy_error, limiter("3/fortnight"), e, e.code() == errc::syntax && e.column() > 2);
    CHECK_THROWS(tollbar::error, limiter(tollbar::spec(3, 0s)), e, e.code() == errc::period_zero && e.why().expected == nullptr);
    CHECK(limiter::try_make("3").why().column == 2);
    CHECK(limiter::try_make(tollbar::spec(3, 1s), {static_cast<tollbar::clock_source>(7), 0}).error() == errc::out_of_range);
    CHECK(limiter::try_make("3/s", {tollbar::clock_source::coarse, 0}));
}

TEST(batches_of_costs) {
    const limiter uploads("3/min");
    const std::uint64_t costs[] = {2, 2, 1, 9};
    std::vector<tollbar::verdict> results(4);
    CHECK(uploads.admit_many_at(1h, costs, results));
    CHECK(results[0] && results[1].denied() && results[2] && results[3].never());
    tollbar::verdict few[3];
    CHECK(uploads.admit_many_at(2h, costs, few).error() == errc::buffer_too_small &&
        uploads.admit_many(costs, few).error() == errc::buffer_too_small);
    CHECK(uploads.admit_many_at(2h, few) && few[0] && few[1] && few[2] && !uploads.admit_at(2h));
    // An empty batch charges nothing, though there is room for answers.
    CHECK(uploads.admit_many_at(3h, std::vector<std::uint64_t>(), few) && uploads.admit_at(3h, 3));
    const limiter now("3/min");
    CHECK(now.admit_many(few) && few[2] && !now.admit());
    CHECK(now.admit_many(costs, results) && !results[0] && results[3].never());
    CHECK(now.admit_many(std::vector<std::uint64_t>(), few));
}

TEST(waiting) {
    const limiter often("50/s burst 1");
    const auto before = std::chrono::steady_clock::now();
    CHECK(often.admit());
    CHECK(often.wait(10s).allowed());
    CHECK(std::chrono::steady_clock::now() - before >= 19ms);
    const limiter seldom("1/h");
    CHECK(seldom.wait(0s) && seldom.wait(5ms).denied() && seldom.wait(-1s).denied() && seldom.wait(1s, 2).never());
    CHECK(*seldom.wait(5ms).retry_after() > 30min);
    // Longer than nanoseconds can say.
    CHECK(limiter("50/s burst 1").wait(std::chrono::hours::max()));
}

// One caller may wait, and one waits: the limiter refuses the next at once. On a very slow machine the first
// has its permit before the second asks; then both are tried again.
TEST(a4_at_most_so_many_wait) {
    const auto end = std::chrono::steady_clock::now() + 1min;
    bool refused = false;
    while (!refused && std::chrono::steady_clock::now() < end) {
        const limiter narrow("1/300ms burst 1", {tollbar::clock_source::tsc, 1});
        CHECK(narrow.admit());
        tollbar::outcome first = tollbar::outcome::denied;
        std::thread sleeper([&] { first = narrow.wait(1min).kind(); });
        while (narrow.state().waiting == 0 && narrow.peek().denied())
            std::this_thread::sleep_for(1ms);
        refused = narrow.wait(1min).denied();
        sleeper.join();
        CHECK(first == tollbar::outcome::allowed);
    }
    CHECK(refused);
}

TEST(booking_ahead) {
    const limiter pacer("1/s algo pacer");
    CHECK(pacer.reserve_at(1h, 10s).wait == 0s);
    const auto second = pacer.reserve_at(1h, 10s);
    CHECK(second && second.wait == 1s && second.departs == 1h + 1s && second.cost == 1);
    const auto third = pacer.reserve_at(1h, 500ms);
    CHECK(!third && third.answer.denied() && third.wait == 0s);
    const limiter bucket("1/s burst 4");
    const auto four = bucket.reserve_at(1h, 0s, 4);
    CHECK(four && bucket.cancel_at(1h + 1s, four) == 3 && pacer.cancel(second) == 0);
    CHECK(limiter("1/s algo sliding-log").reserve_at(1h, 1s).answer.denied());
    CHECK(pacer.reserve_at(1h, 1s, 2).answer.never());
}

TEST(a_policy_changes) {
    const limiter requests("10/h");
    CHECK(requests.admit(4));
    requests.set_policy("100/h");
    CHECK(requests.peek().remaining() == 6 && requests.policy().text() == tollbar::spec("100/h").text());
    requests.set_policy("20/h", TOLLBAR_KEEP_RESET);
    CHECK(requests.take_up_to(99).permits == 20);
    CHECK(requests.try_set_policy("1/s", 3).error() == errc::out_of_range && requests.peek().denied());
    // By the caller's time: the clock of the machine is far ahead.
    const auto now = 1h;
    const limiter mine("10/h");
    CHECK(mine.admit_at(now, 10));
    mine.set_policy_at(now, "10/h algo fixed-window");
    CHECK(!mine.admit_at(now) && mine.try_set_policy_at(now, "1/s", 3).error() == errc::out_of_range);
}

TEST(limiters_move) {
    limiter first("1/min"), second("2/min");
    tollbar_limiter *const handle = first.get();
    limiter moved = std::move(first);
    CHECK(moved && moved.get() == handle && moved.admit_at(1h) && !moved.admit_at(1h));
    // A moved-from limiter refuses with errc::null.
    const auto null = [](const auto &result) { return !result && result.error() == errc::null; };
    CHECK(!first && null(first.admit()) && null(first.admit_at(1h)) && null(first.check()) && null(first.check_at(1h)));
    CHECK(null(first.peek()) && null(first.peek_at(1h)) && null(first.wait(1ms)) && first.wait(1ms).failed());
    CHECK(null(first.charge().answer) && null(first.charge_at(1h).answer) && null(first.take_up_to(1).answer) && null(first.take_up_to_at(1h, 1).answer) && null(first.reserve_at(1h, 1s).answer));
    tollbar::verdict one[1];
    CHECK(null(first.admit_many(one)) && null(first.admit_many_at(1h, one)) && !one[0]);
    CHECK(null(first.try_reset()) && null(first.try_state()) && null(first.try_policy()));
    CHECK_THROWS(tollbar::error, first.reset(), e, e.code() == errc::null);
    CHECK_THROWS(tollbar::error, first.state(), e, e.code() == errc::null);
    CHECK_THROWS(tollbar::error, first.policy(), e, e.code() == errc::null);
    second = std::move(moved);
    CHECK(second.get() == handle && !second.admit_at(1h));
    first = limiter::adopt(second.release());
    CHECK(!second && first.get() == handle);
}

TEST(a_limiter_in_memory_of_the_callers) {
    CHECK(limiter::size() <= 5120 && limiter::align() <= 256);
    void *const memory = std::aligned_alloc(256, 5120);
    {
        auto placed = limiter::init_in(memory, 5120, "2/min algo sliding-log");
        limiter moved = std::move(placed);
        CHECK(static_cast<void *>(moved.get()) == memory && moved.admit_at(1h) && moved.admit_at(1h) &&
            !moved.admit_at(1h));
        // One that is made elsewhere takes its place; the first is closed and not freed.
        moved = limiter("1/min");
        CHECK(static_cast<void *>(moved.get()) != memory && moved.admit_at(1h));
    }
    CHECK(limiter::try_init_in(memory, 1, "1/min").error() == errc::buffer_too_small);
    CHECK_THROWS(tollbar::error, limiter::init_in(nullptr, 1024, "1/min"), e, e.code() == errc::null);
    std::free(memory);
}

TEST(decisions_are_counted) {
    const limiter uploads("3/min");
    for (int n = 0; n < 13; ++n)
        CHECK(uploads.admit_at(1h).allowed() == (n < 3));
    CHECK(uploads.admit_at(1h, 4).never() && uploads.peek_at(1h).denied());
    const auto state = uploads.state();
    CHECK(state.allowed == 3 && state.denied == 10 && state.never == 1);
}

TEST(a_limiter_with_credit) {
    tollbar::limiter_options options;
    options.credit = true;
    options.clock = tollbar::clock_source::monotonic;
    // Of 800 permits an eighth may be credit.
    const limiter large(tollbar::spec(800, 24h), options);
    std::uint64_t admitted = 0;
    while (large.admit())
        ++admitted;
    CHECK(admitted >= 700 && admitted < 800 && large.check().denied() && large.state().allowed == admitted);
    // A burst below 32 leaves no credit, so every decision is that of a limiter without.
    const limiter small("3/min", options);
    CHECK(small.admit_at(1h) && small.admit_at(1h, 2) && !small.admit_at(1h) && small.admit_at(1h, 4).never());
    CHECK(small.check_at(1h, 2).retry_after() == 40s);
    CHECK(limiter::try_make("3/min algo fixed-window", options).why().code == errc::option_mismatch);
}
