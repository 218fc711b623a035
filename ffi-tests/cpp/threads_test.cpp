// Frozen time, many threads: together they get exactly what one thread would. Runs under
// ThreadSanitizer, too; with PLANT_RACE there is a race that it must report.
#include "test.hpp"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tollbar.hpp"

using namespace std::chrono_literals;

namespace {

constexpr int threads = 8, tries = 4000, permits = 1000;

#ifdef PLANT_RACE
int planted = 0;
#endif

/// The sum of what `ask()` returns. Every thread calls it `each` times, at the same time as the
/// others.
template <class Ask> int together(int each, const Ask &ask) {
    std::atomic<int> ready{0}, got{0};
    std::vector<std::thread> workers;
    for (int i = 0; i < threads; i++) {
        workers.emplace_back([&] {
            for (++ready; ready < threads;)
                std::this_thread::yield();
            for (int n = 0; n < each; n++) {
                got += static_cast<int>(ask(n));
#ifdef PLANT_RACE
                planted++;
#endif
            }
        });
    }
    for (std::thread &worker : workers)
        worker.join();
    return got;
}

} // namespace

TEST(a_limiter_at_once) {
    for (const char *text : {"1000/s", "1000/s algo interval", "1000/s algo sliding-window", "1000/s algo sliding-log"}) {
        const tollbar::limiter one(text), batches(text);
        CHECK(together(tries, [&](int) { return one.admit_at(1h).allowed(); }) == permits);
        CHECK(together(tries, [&](int) { return batches.take_up_to_at(1h, 7).permits; }) == permits);
    }
}

TEST(a_cell_at_once) {
    const tollbar::policy policy("1000/s");
    tollbar::cell cell;
    CHECK(together(tries, [&](int) { return policy.admit_at(1h, cell).allowed(); }) == permits);
}

TEST(a_table_at_once) {
    const tollbar::table table(25, {"100/h"});
    CHECK(together(100, [&](int n) {
              int got = 0;
              for (int key = 0; key < 25; key++) {
                  if (n % 2 == 0)
                      got += table.admit_at(1h, tollbar::bytes_of(key)).allowed();
              }
              std::vector<int> keys;
              std::vector<tollbar::request> requests;
              for (int key = 0; key < 25 && n % 2 == 1; key++)
                  keys.push_back(key);
              for (const int &key : keys)
                  requests.emplace_back(tollbar::bytes_of(key));
              std::vector<tollbar::verdict> results(requests.size());
              table.admit_many_at(1h, requests, results).value();
              for (const tollbar::verdict result : results)
                  got += result.allowed();
              return got;
          }) == 25 * 100);
}

// Crossing limits in opposite orders: each limit has been charged for what was admitted, to the
// permit.
TEST(several_limits_at_once) {
    const tollbar::limiter second("1000/s"), day("700/day");
    const tollbar::table table(100, {"500/h"});
    const tollbar::key hour("k");
    const int got = together(tries / 10, [&](int n) {
        return n % 2 == 0 ? tollbar::take_many_at(1h, {{second}, {table, hour}, {day}}).allowed()
                          : tollbar::take_many_at(1h, {{day}, {table, hour}, {second}}).allowed();
    });
    CHECK(got == 500);
    CHECK(second.peek_at(1h).remaining() == 500 && day.peek_at(1h).remaining() == 200);
    CHECK(table.peek_at(1h, hour).remaining() == 0);
}

// Every call runs beside every other without a failure and, under the sanitizer, without a race.
TEST(every_call_at_once) {
    const tollbar::limiter limiter("1000/s");
    const tollbar::table table(100, {"1000/s", "10/s"});
    CHECK(together(tries / 20, [&](int n) {
              const int key = n * 7 % 40;
              const auto name = tollbar::bytes_of(key);
              int bad = limiter.admit().failed() + limiter.check().failed() + limiter.peek().failed() +
                        limiter.take_up_to(3).answer.failed() + limiter.wait(1us).failed() + !limiter.try_state() +
                        !limiter.try_policy();
              bad += table.admit(name).failed() + table.check(name).failed() + table.peek(name).failed() +
                     table.take_up_to(name, 3).answer.failed() + !table.try_stats() + !table.try_hash(name);
              if (n % 16 == 0) {
                  bad += !limiter.try_reset() + !table.try_reset(name) + !table.try_exempt(name) +
                         !table.try_unexempt(name) + !table.try_sweep() +
                         !table.try_set_policy(tollbar::policy_id::first, tollbar::spec(1000, 1s));
                  for (const auto &entry : table.entries())
                      bad += entry.state == 0;
                  for (const auto &[id, policy] : table.policies())
                      bad += policy.limit() == 0;
              }
              return bad;
          }) == 0);
}
