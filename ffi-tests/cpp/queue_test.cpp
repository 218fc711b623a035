// Queues: the expectations of ffi-tests/c/queue_test.c, and the ownership of items.
#include "test.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "tollbar.hpp"

using namespace std::chrono_literals;
using tollbar::errc;
using tollbar::queue;

namespace {
// Counts the objects that live.
struct counted {
    static inline std::atomic<int> alive{0};
    int number;
    explicit counted(int n) : number(n) { alive++; }
    counted(const counted &) = delete;
    ~counted() { alive--; }
};
std::unique_ptr<counted> item(int n) { return std::make_unique<counted>(n); }
} // namespace

TEST(eleven_of_fifteen_leave_in_order) {
    {
        const queue<counted> bucket("10/s algo pacer", 10);
        int queued = 0;
        for (int n = 0; n < 15; n++) {
            auto next = item(n);
            const auto ticket = bucket.offer_at(0s, next);
            CHECK(ticket.has_value() == (next == nullptr));
            queued += ticket.has_value();
        }
        CHECK(queued == 11 && counted::alive == 11 && bucket.size() == 11);
        CHECK(bucket.take_at(0s)->number == 0 && !bucket.take_at(99ms));
        CHECK(bucket.next_departure_at(0s) == 100ms && bucket.take_at(100ms)->number == 1);
    }
    // The queue has deleted the nine that nobody took.
    CHECK(counted::alive == 0);
}

namespace {
// What a driver admits: how many, and the sum of the times.
struct admitted {
    std::uint64_t count = 0;
    std::chrono::nanoseconds times{0};
    void add(std::chrono::nanoseconds at) {
        count++;
        times += at;
    }
    bool operator==(const admitted &other) const { return count == other.count && times == other.times; }
};

void take_until(const queue<int> &from, std::chrono::nanoseconds &clock, std::chrono::nanoseconds until, admitted &to) {
    for (auto at = from.next_departure_at(clock); at && *at <= until; at = from.next_departure_at(clock)) {
        CHECK(from.take_at(*at) != nullptr);
        to.add(*at);
        clock = *at;
    }
    clock = until;
}
} // namespace

// S19: requests that come too early are dropped, delayed, or kept in a queue. With the same patience
// the last two admit the same ones at the same times, and without patience so does the first.
TEST(s19_drivers_admit_the_same) {
    std::uint64_t before = 0;
    for (const int waiting : {0, 1, 3, 20}) {
        const tollbar::limiter delays("10/s algo pacer"), drops("10/s algo pacer");
        const queue<int> bucket("10/s algo pacer", waiting == 0 ? 1U : static_cast<std::uint64_t>(waiting));
        admitted delayed, dropping, queued;
        std::chrono::nanoseconds now{0}, clock{0};
        for (int n = 0; n < 2000; n++) {
            now += std::chrono::milliseconds(n * n % 1000 * 7919 % (n / 50 % 2 == 0 ? 120 : 150));
            if (const auto booked = delays.reserve_at(now, waiting * 100ms))
                delayed.add(booked.departs);
            if (drops.admit_at(now))
                dropping.add(now);
            take_until(bucket, clock, now, queued);
            auto next = std::make_unique<int>(n);
            (void)bucket.offer_at(now, next);
            take_until(bucket, clock, now, queued);
        }
        take_until(bucket, clock, now + 1h, queued);
        CHECK(delayed == (waiting == 0 ? dropping : queued));
        CHECK(delayed.count > before);
        before = delayed.count;
    }
}

TEST(the_spare_holds_what_overflows) {
    tollbar::queue_options options;
    options.spare = 1;
    const queue<counted> bucket("10/s algo pacer", 1, options);
    const std::optional<std::uint64_t> places[] = {0, 0, 1, std::nullopt};
    for (int n = 0; n < 4; n++) {
        auto next = item(n);
        const auto ticket = bucket.offer_at(0s, next);
        CHECK((ticket ? std::optional(ticket->spare) : std::nullopt) == places[n]);
    }
    for (int n = 0; n < 3; n++)
        CHECK(bucket.take_at(n * 100ms)->number == n);
}

TEST(a_cancelled_item_comes_back) {
    queue<counted> made("10/s algo pacer", 2);
    const queue<counted> bucket = std::move(made);
    CHECK(bucket && !made && made.size() == 0 && !made.take());
    auto first = item(1), second = item(2);
    const auto ticket = bucket.offer_at(0s, first);
    CHECK(bucket.offer_at(0s, second)->ahead == 1);
    CHECK(bucket.cancel(*ticket)->number == 1 && !bucket.cancel(*ticket));
    CHECK(bucket.take_at(0s)->number == 2 && !bucket.next_departure() && bucket.empty());
}

TEST(a_thread_works_at_the_pace) {
    const queue<counted> bucket("500/s algo pacer", 4);
    std::atomic<int> sent{0};
    std::thread worker([&] {
        CHECK(bucket.run([&](std::unique_ptr<counted> next) {
            CHECK(next->number == sent);
            sent++;
        }));
    });
    for (int n = 0; n < 20; n++) {
        auto next = item(n);
        CHECK(bucket.offer_within(1min, next).has_value());
    }
    bucket.close();
    worker.join();
    CHECK(sent == 20);
    auto late = item(99);
    CHECK(!bucket.offer(late) && late && !bucket.take_within(1min) && bucket.now() > 0ns && !bucket.drain());
    bucket.stop();
    CHECK(bucket.run([](std::unique_ptr<counted>) {}));
}

TEST(what_cannot_be_a_queue) {
    CHECK(queue<int>::try_make("10/s", 0).error() == errc::capacity);
    CHECK(queue<int>::try_make("10/x", 5).error() == errc::syntax);
    CHECK(queue<int>::try_make("10/s algo sliding-log", 5).error() == errc::not_one_word);
}
