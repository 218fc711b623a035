// Waits without a thread: the waiter, and in C++20 coroutines.
#include "test.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tollbar.hpp"

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

namespace {

// An event loop with timers only: it calls what is due, in order of time.
class loop {
public:
    void after(nanoseconds pause, std::function<void()> then) { timers_.push_back({steady_clock::now() + pause, std::move(then)}); }
    void run() {
        while (!timers_.empty()) {
            std::size_t first = 0;
            for (std::size_t i = 1; i < timers_.size(); i++)
                if (timers_[i].first < timers_[first].first)
                    first = i;
            auto due = std::move(timers_[first]);
            timers_.erase(timers_.begin() + static_cast<std::ptrdiff_t>(first));
            std::this_thread::sleep_until(due.first);
            due.second();
        }
    }

private:
    std::vector<std::pair<steady_clock::time_point, std::function<void()>>> timers_;
};

template <class Waiter> tollbar::decision slept(Waiter &caller) {
    while (const auto pause = caller.pause())
        std::this_thread::sleep_for(*pause);
    return caller.answer();
}

} // namespace

TEST(a_waiter_gets_its_permit_when_it_is_there) {
    const tollbar::limiter limiter("20/s burst 1");
    const tollbar::table table(100, {"1/day", "20/s burst 1"});
    const tollbar::key second("key", tollbar::policy_id(1));
    const auto began = steady_clock::now();
    for (int i = 0; i < 3; i++) {
        tollbar::waiter caller(limiter, 1min);
        tollbar::waiter keyed(table, second, 1min);
        CHECK(slept(caller).allowed() && slept(keyed).allowed() && caller.answer().remaining() == 0);
    }
    CHECK(steady_clock::now() - began >= 100ms);
    CHECK(table.peek("key").allowed());
}

TEST(a_hopeless_waiter_is_refused_at_once) {
    const tollbar::limiter limiter("2/day");
    CHECK(limiter.admit(2));
    const auto before = limiter.peek().retry_after();
    tollbar::waiter late(limiter, 1h), never(limiter, nanoseconds::max(), 3);
    CHECK(!late.answer() && !late.pause() && late.answer().denied());
    CHECK(!never.pause() && never.answer().never());
    CHECK(limiter.peek().retry_after() <= before);
    const tollbar::table table(10, {"1/day"});
    tollbar::waiter none(table, "");
    CHECK(!none.pause() && none.answer().why() == tollbar::reason::missing_key);
}

TEST(a_waiter_that_leaves_gives_its_booking_back) {
    const tollbar::limiter limiter("1/day");
    CHECK(limiter.admit());
    {
        tollbar::waiter caller(limiter);
        const auto pause = caller.pause();
        CHECK(pause && *pause > 23h && *pause <= 24h);
        // It sleeps on if it is called early.
        CHECK(caller.pause() > 23h && limiter.peek().retry_after() > 47h);
    }
    CHECK(limiter.peek().retry_after() <= 24h);
}

TEST(a_window_is_asked_again) {
    for (const char *policy : {"1/50ms algo sliding-window mode strict", "1/50ms algo sliding-log"}) {
        const tollbar::limiter limiter(policy);
        const auto began = steady_clock::now();
        for (int i = 0; i < 3; i++) {
            tollbar::waiter caller(limiter, 1min);
            CHECK(slept(caller).allowed());
        }
        CHECK(steady_clock::now() - began >= 100ms);
    }
}

#if defined(__cpp_impl_coroutine) && __cpp_impl_coroutine >= 201902L

namespace {

// A coroutine that begins at once, and whose frame its owner may destroy.
struct task {
    struct promise_type {
        task get_return_object() { return task{std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() { throw; }
    };
    std::coroutine_handle<promise_type> handle;
};

struct sleeper {
    loop *on;
    void operator()(nanoseconds pause, std::function<void()> resume) const { on->after(pause, std::move(resume)); }
};

task visit(const tollbar::limiter &limiter, sleeper sleep, std::vector<int> &order, int number) {
    if (const auto made = co_await tollbar::until_ready(limiter, sleep, 1min))
        order.push_back(number);
}
task visit_key(const tollbar::table &table, sleeper sleep, nanoseconds patience, tollbar::decision &made) {
    made = co_await tollbar::until_ready(table, std::string("key"), sleep, patience);
}

} // namespace

TEST(coroutines_get_their_permits_in_the_order_of_their_calls) {
    const tollbar::limiter limiter("50/s burst 1");
    loop on;
    std::vector<int> order;
    std::vector<task> tasks;
    const auto began = steady_clock::now();
    for (int i = 0; i < 5; i++)
        tasks.push_back(visit(limiter, {&on}, order, i));
    CHECK(order == std::vector<int>({0}));
    on.run();
    CHECK(order == std::vector<int>({0, 1, 2, 3, 4}) && steady_clock::now() - began >= 80ms);
    for (const task &each : tasks) {
        CHECK(each.handle.done());
        each.handle.destroy();
    }
}

TEST(coroutines_wait_for_keys_and_windows) {
    loop on;
    for (const char *policy : {"20/s burst 1", "1/50ms algo sliding-log"}) {
        const tollbar::table table(100, {policy});
        tollbar::decision first, second, late;
        const task tasks[] = {visit_key(table, {&on}, 1min, first), visit_key(table, {&on}, 1min, second),
                              visit_key(table, {&on}, 1ns, late)};
        CHECK(first.allowed() && !second.allowed() && late.denied() && tasks[2].handle.done());
        on.run();
        CHECK(second.allowed());
        for (const task &each : tasks)
            each.handle.destroy();
    }
}

TEST(a_coroutine_that_is_destroyed_gives_its_booking_back) {
    const tollbar::limiter limiter("1/h");
    loop on;
    std::vector<int> order;
    bool fired = false;
    CHECK(limiter.admit());
    const auto resumes = [&](nanoseconds, std::function<void()> resume) {
        on.after(1ms, [&fired, resume] {
            fired = true;
            resume();
        });
    };
    auto waits = [](const tollbar::limiter &limits, auto sleep) -> task { (void)co_await tollbar::until_ready(limits, sleep); };
    const task one = waits(limiter, resumes);
    CHECK(limiter.peek().retry_after() > 1h);
    one.handle.destroy();
    CHECK(limiter.peek().retry_after() <= 1h);
    // The timer of the coroutine that is gone.
    on.run();
    CHECK(fired);
}

#endif

