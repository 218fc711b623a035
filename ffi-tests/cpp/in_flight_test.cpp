// Permits in flight: they end with their scopes.
#include "test.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tollbar.hpp"

using tollbar::errc;
using tollbar::in_flight;
using tollbar::permit;

static_assert(!std::is_copy_constructible_v<permit> && std::is_nothrow_move_constructible_v<permit>);
static_assert(noexcept(std::declval<const in_flight &>().enter("", 1)));

TEST(a_permit_ends_with_its_scope) {
    const in_flight uploads(100);
    uploads.join();
    {
        const auto first = uploads.enter("k", 2);
        auto second = uploads.enter("k", 2);
        const auto third = uploads.enter("k", 2);
        CHECK(first && second && !third && third.answer().denied() && uploads.count("k") == 2);
        // If more permits than the limit are in flight, the window refuses until enough of them are
        // released.
        CHECK(second.give_back() && !second && !second.give_back() && !uploads.enter("k", 1));
        CHECK(uploads.enter("k", 2));
    }
    CHECK(uploads.count("k") == 0);
    std::vector<permit> all;
    for (int n = 0; n < 10; n++)
        all.push_back(uploads.enter("k", 10));
    CHECK(uploads.count("k") == 10);
    all[3] = std::move(all[4]);
    CHECK(all[3] && !all[4] && uploads.count("k") == 9);
    const tollbar_ticket ticket = all[0].release();
    all.clear();
    CHECK(uploads.count("k") == 1 && tollbar_in_flight_release(uploads.get(), ticket) == TOLLBAR_ALLOWED);
}

TEST(errors_are_refusals) {
    CHECK(in_flight::try_make(0).error() == errc::capacity);
    CHECK(in_flight::try_open("/nonexistent/table").error() == errc::open);
    in_flight full(1);
    std::vector<permit> all;
    for (int n = 0; n < 100 && (all.empty() || all.back()); n++)
        all.push_back(full.enter(std::to_string(n), 1));
    CHECK(all.back().answer().failed() && all.back().answer().error() == errc::in_flight_full);
    all.clear();
    const in_flight moved(std::move(full));
    CHECK(moved && !full && full.enter("k", 1).answer().error() == errc::null && full.count("k") == 0);
    CHECK(full.try_join().error() == errc::null && moved.enter("k", 1));
}

TEST(a_child_has_its_own) {
    const auto uploads = in_flight::shared(100);
    auto mine = uploads.enter("k", 2);
    const pid_t child = fork();
    if (child == 0) {
        const bool released = mine.give_back();
        const bool entered = static_cast<bool>(uploads.enter("k", 2));
        _exit(released || !entered);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(uploads.count("k") == 1 && mine.give_back());
}

TEST(in_a_file) {
    const std::string path = "/tmp/tollbar-cpp-in-flight-" + std::to_string(getpid());
    unlink(path.c_str()); // one that an interrupted run has left
    const auto first = in_flight::open(path.c_str(), 100);
    const auto second = in_flight::open(path.c_str());
    const auto held = first.enter("k", 1);
    CHECK(held && !second.enter("k", 1));
    CHECK(in_flight::try_open(path.c_str(), 1000).error() == errc::other_capacity);
    unlink(path.c_str());
}

TEST(in_the_callers_memory) {
    const tollbar::in_flight_options options(10);
    const auto size = static_cast<std::size_t>(in_flight::bytes(options));
    void *memory = std::aligned_alloc(64, (size + 63) / 64 * 64);
    {
        const auto made = in_flight::init_in(memory, size, options);
        const auto attached = in_flight::attach(memory, size);
        const auto first = made.enter("k", 1);
        CHECK(first && attached.count("k") == 1 && !attached.enter("k", 1));
    }
    CHECK(in_flight::try_init_in(memory, 64, options).error() == errc::buffer_too_small);
    std::free(memory);
}

TEST(a_send_window_of_four) {
    tollbar::send_window window(4);
    CHECK(window.acquire(4) == 4u && !window.acquire());
    CHECK(window.acknowledge(2) && !window.acknowledge(2) && !window.acknowledge((1u << 22) + 3) && window.read().usable == 2);
    CHECK(window.acquire() == 5u && window.resize(2) && window.read().in_flight == 3 && !window.acquire());
    CHECK(window.release(2) && window.acquire() == 6u && !window.release(9));
}

TEST(a_route_is_that_of_the_other_languages) {
    const std::vector<tollbar::node> nodes = {{"a", 1}, {"b", 2}, {"c", 3}, {"10.0.0.4:8080", 4}};
    const std::vector<const char *> keys = {"alice", "bob", "carol", "dave", "erin", "frank", "", "192.0.2.1"};
    const std::vector<std::size_t> expected = {1, 3, 2, 3, 3, 2, 2, 2};
    for (std::size_t n = 0; n < keys.size(); n++)
        CHECK(tollbar::route(nodes, keys[n], 42) == expected[n]);
    CHECK(!tollbar::route({}, "k", 0));
}
