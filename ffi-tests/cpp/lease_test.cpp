// Leases and their clients, without a store and with a real redis-server. Upper bounds of times are
// for a machine that is busy with other things.
#include "test.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "../c/redis.h"
#include "tollbar_redis.hpp"

using namespace std::chrono_literals;
using tollbar::circuit;
using tollbar::lease_client;
using tollbar::errc;
using tollbar::lease;
using tollbar::lease_options;
using tollbar::lease_request;
using tollbar::reason;

static_assert(!std::is_copy_constructible_v<lease> && std::is_nothrow_move_constructible_v<lease>);
static_assert(!std::is_copy_constructible_v<lease_client> && std::is_nothrow_move_constructible_v<lease_client>);
static_assert(!std::is_convertible_v<lease, bool> && std::is_constructible_v<bool, lease>);
static_assert(noexcept(std::declval<const lease &>().admit("")) && noexcept(std::declval<const lease &>().check()));
static_assert(noexcept(std::declval<const lease &>().wait("", std::declval<std::chrono::seconds>())));
static_assert(noexcept(std::declval<const lease &>().poll("", std::declval<lease_request &>())));
static_assert(std::is_trivially_copyable_v<lease_request>);
static_assert(!noexcept(std::declval<lease_client &>().tick()) && noexcept(std::declval<lease_client &>().try_tick()));

namespace {

constexpr const char *nowhere = "unix:/no-such-directory/redis.sock";

/// A server during one test.
struct server : redis {
    server() : redis() { redis_start(this); }
    ~server() {
        if (directory[0] != '\0')
            redis_end(this);
    }
    server(const server &) = delete;
    server &operator=(const server &) = delete;
};

template <class Holds> bool within(std::chrono::seconds most, const Holds &holds) {
    const auto end = std::chrono::steady_clock::now() + most;
    while (!holds()) {
        if (std::chrono::steady_clock::now() > end)
            return false;
        usleep(1000);
    }
    return true;
}

unsigned admitted(const lease &of, const tollbar::key &key, int tries) {
    unsigned got = 0;
    for (int i = 0; i < tries; i++)
        got += of.admit(key) ? 1u : 0u;
    return got;
}

TEST(without_a_client_a_machine_lives_on_its_share) {
    const lease logins("logins", "1000/h burst 800", 4);
    CHECK(admitted(logins, "ann", 40) == 8);
    CHECK(admitted(logins, "bob", 40) == 8);
    CHECK(admitted(logins, tollbar::key(nullptr, 0), 40) == 8 && !logins.admit());
    const auto answer = logins.check("ann");
    CHECK(answer.denied() && answer.retry_after() && *answer.retry_after() > 0ns && answer.reset_after() == 0ns);
    CHECK(logins.check("ann", 801).never() && !logins.check("ann", 801).retry_after());
    CHECK(logins.peek("new", 8).allowed() && logins.peek("new").remaining() == 8);
    CHECK(logins.admit_at(logins.now() + 20s, "ann") && !logins.admit_at(logins.now(), "ann"));
    CHECK(logins.check_at(logins.now() + 60s, "ann").allowed());
    const auto stats = logins.stats();
    CHECK(stats.circuit == circuit::unknown && stats.fallback_permits == 26 && stats.denied >= 97 &&
        stats.denied_by_fallback == stats.denied && stats.granted == 0);
}

TEST(options_are_cs) {
    lease_options options(4);
    options.overdraft = 3;
    CHECK(admitted(lease("x", "1000/h burst 800", options), "k", 9) == 3);
    options.overdraft = 0;
    CHECK(admitted(lease("x", "1000/h burst 800", options), "k", 9) == 0);
    options.without_store = tollbar::fallback::allow;
    CHECK(admitted(lease("x", "1000/h burst 800", options), "k", 9) == 9);
    options = 4;
    options.without_store = tollbar::fallback::deny;
    CHECK(admitted(lease("x", "1000/h burst 800", options), "k", 9) == 0);
    options = 4;
    options.life = -1s;
    CHECK(lease::try_make("x", "1000/h burst 800", options).has_value());
    options.life = 11min;
    CHECK(lease::try_make("x", "1000/h burst 800", options).error() == errc::lease_life);
    options = 8;
    CHECK(lease::try_make("x", "10/s burst 1", options).has_value());
    options.overdraft = 1;
    CHECK(lease::try_make("x", "10/s burst 8", options).error() == errc::lease_burst);
    options.inexact = true;
    CHECK(lease::try_make("x", "10/s burst 8", options).has_value());
    options.capacity = 0;
    CHECK(lease::try_make("x", "10/s burst 100", options).error() == errc::capacity);
    CHECK(lease::try_make("x", "10/s burst 100", 0).error() == errc::lease_nodes);
}

TEST(a_request_waits_for_no_store_that_is_not_there) {
    const lease logins("logins", "1000/h burst 800", 4);
    const auto start = std::chrono::steady_clock::now();
    CHECK(logins.wait("ann", 60s, 8).allowed());
    const auto answer = logins.wait("ann", 60s);
    CHECK(answer.denied() && answer.why() == reason::store_down && answer.retry_after());
    CHECK(logins.wait("ann", 60s, 801).never());
    lease_request request(logins.now() + 60s, 8);
    const auto first = logins.poll("bob", request);
    const auto second = logins.poll("bob", request);
    CHECK(first && first->allowed() && second && second->denied());
    CHECK(std::chrono::steady_clock::now() - start < 30s && logins.stats().full == 0);
}

TEST(what_cannot_be_is_said) {
    CHECK_THROWS(tollbar::error, lease("two words", "10/s burst 100", 2), e, e.code() == errc::lease_name && e.why().system == 0);
    CHECK_THROWS(tollbar::error, lease("", "10/s burst 100", 2), e, e.code() == errc::lease_name);
    CHECK_THROWS(tollbar::error, lease("x", "10/s algo pacer", 2), e, e.code() == errc::lease_algorithm);
    CHECK_THROWS(tollbar::policy_error, lease("x", "10/sec!", 2), e, e.column() > 0);
    CHECK(lease::try_make("x", "10/", 2).error() == errc::syntax);
    const lease good("x", "10/s burst 100", 2);
    CHECK_THROWS(tollbar::error, lease_client(good, "rediss://127.0.0.1"), e, e.code() == errc::url && e.why().column >= 1);
    CHECK(lease_client::try_make(good, "").error() == errc::url);
    tollbar_tls tls{};
    tls.struct_size = sizeof tls;
    CHECK(lease_client::try_make(good, "rediss://127.0.0.1", tls).error() == errc::null);
    tls.start = [](void *, const char *) -> void * { return nullptr; };
    tls.cipher_in = tls.plain_in = [](void *, const void *, std::size_t) -> std::int64_t { return 0; };
    tls.cipher_out = tls.plain_out = [](void *, void *, std::size_t) -> std::int64_t { return 0; };
    tls.wants = [](void *) -> std::int32_t { return TOLLBAR_TLS_FAULT; };
    tls.fault = [](void *) -> const char * { return "a test"; };
    tls.end = [](void *) {};
    lease_client secure(good, "rediss://127.0.0.1", tls);
    CHECK(secure && secure.state() == circuit::unknown);
    CHECK(lease_client::try_make(good, "redis://?", tls).why().column >= 1);
}

TEST(in_the_callers_memory) {
    const tollbar::spec policy("1000/h burst 800");
    const std::size_t size = static_cast<std::size_t>(lease::bytes(policy, 4));
    std::vector<unsigned char> room(size + 64);
    void *memory = room.data() + (64 - reinterpret_cast<std::uintptr_t>(room.data()) % 64) % 64;
    CHECK(lease::try_attach(memory, size).error() == errc::not_a_lease);
    CHECK(lease::try_init_in(memory, size - 1, "x", policy, 4).error() == errc::buffer_too_small);
    const lease made = lease::init_in(memory, size, "x", policy, 4);
    const lease view = lease::attach(memory, size);
    CHECK(admitted(made, "k", 5) == 5 && admitted(view, "k", 20) == 3);
    CHECK(lease::shared("x", policy, 4).admit("k"));
}

TEST(one_that_was_moved_from_refuses) {
    lease first("x", "1000/h burst 800", 4);
    const lease second(std::move(first));
    CHECK(!first && second && !first.admit() && first.admit().error() == errc::null); // NOLINT: that is the test
    CHECK(first.try_stats().error() == errc::null && first.now() == 0ns);
    lease_request request(1s);
    const auto polled = first.poll("k", request);
    CHECK(first.wait("k", 1s).error() == errc::null && polled && polled->error() == errc::null);
    lease_client one(second, nowhere);
    lease_client two(std::move(one));
    CHECK(!one && two && one.try_tick().error() == errc::null && one.fd() == -1 && one.state() == circuit::unknown);
    CHECK(one.try_on_change({}).error() == errc::null && one.last_error().empty());
    CHECK(one.try_close(0s).has_value() && two.try_close(0s).has_value() && !two);
    CHECK_THROWS(tollbar::error, two.start(), e, e.code() == errc::null);
    const lease third = lease::adopt(lease("x", "1000/h burst 800", 4).release());
    CHECK(third.admit("k"));
}

TEST(a_store_that_is_not_there) {
    const lease logins("logins", "1000/h burst 800", 4);
    lease_client asks(logins, nowhere);
    CHECK(asks.tick() >= 1ms && asks.tick() <= 100ms && asks.fd() == -1 && asks.events() == 0);
    CHECK(logins.admit("ann"));
    CHECK_THROWS(tollbar::error, asks.close(20ms), e, e.code() == errc::unreported && e.why().system == 0);
    CHECK(!asks);
    lease_client stopped(logins, nowhere);
    stopped.stop();
    stopped.run();
}

TEST(from_a_thread_of_its_own) {
    server store;
    const lease logins("logins", "60/min burst 600", 2);
    std::atomic<circuit> now{circuit::unknown};
    std::atomic<int> calls{0};
    lease_client asks(logins, store.url);
    asks.on_change([&](circuit to) {
        calls++;
        now = to;
    });
    asks.start();
    CHECK(within(30s, [&] { return now == circuit::closed && asks.state() == circuit::closed; }));
    CHECK(asks.try_tick().error() == errc::running && asks.try_on_change({}).error() == errc::running);
    CHECK(asks.try_run().error() == errc::running && asks.fd() == -1 && asks.last_error().empty());
    CHECK_THROWS(tollbar::error, asks.start(), e, e.code() == errc::running);
    // Where the listener is does not change with its owner.
    lease_client moved(std::move(asks));
    redis_kill(&store);
    CHECK(within(30s, [&] { return now == circuit::open; }));
    CHECK(logins.admit("ann") && logins.stats().opened >= 1);
    redis_start(&store);
    CHECK(within(30s, [&] { return now == circuit::closed; }) && calls >= 3);
    CHECK(logins.admit("bob", 7));
    moved.close(30s);
    CHECK(logins.stats().owed == 0);
    CHECK(redis_number(&store, "EXISTS tollbar:{logins}:k:bob") == 1);
}

TEST(a_destructor_tells_what_is_owed) {
    server store;
    const lease logins("logins", "60/min burst 600", 2);
    {
        lease_client asks(logins, store.url);
        asks.start();
        CHECK(within(30s, [&] { return asks.state() == circuit::closed; }));
        CHECK(logins.admit("ann", 3));
    }
    CHECK(redis_number(&store, "EXISTS tollbar:{logins}:k:ann") == 1);
}

TEST(one_client_for_two_limits) {
    server store;
    const lease logins("logins", "60/min burst 600", 2), pages("pages", "60/min burst 600", 2);
    {
        lease_client asks(logins, store.url);
        asks.add(pages);
        CHECK(asks.try_add(pages).error() == errc::client_leases);
        asks.start();
        CHECK(asks.try_add(logins).error() == errc::running);
        CHECK(within(30s, [&] { return asks.state() == circuit::closed; }));
        CHECK(logins.admit("ann", 3) && pages.admit("bob", 3));
    }
    CHECK(redis_number(&store, "EXISTS tollbar:{logins}:k:ann") == 1);
    CHECK(redis_number(&store, "EXISTS tollbar:{pages}:k:bob") == 1);
}

TEST(a_lease_leaves_its_client) {
    server store;
    const lease logins("logins", "60/min burst 600", 2);
    lease_client asks(logins, store.url);
    {
        const lease pages("pages", "60/min burst 600", 2);
        CHECK(asks.try_remove(pages, 0s).error() == errc::client_leases);
        asks.add(pages);
        CHECK(within(30s, [&] {
            asks.tick();
            return asks.state() == circuit::closed;
        }));
        CHECK(pages.admit("bob", 3));
        asks.report(pages, 10s);
        asks.remove(pages, 0s);
        CHECK(asks.try_report(pages, 0s).error() == errc::client_leases);
        CHECK(redis_number(&store, "EXISTS tollbar:{pages}:k:bob") == 1);
    }
    asks.tick();
    CHECK(asks.last_error(logins).empty());
    asks.start();
    CHECK(asks.try_remove(logins, 0s).error() == errc::running && asks.last_error(logins).empty());
}

TEST(two_machines_from_an_event_loop) {
    server store;
    const lease leases[] = {lease("both", "2000/s burst 400", 2), lease("both", "2000/s burst 400", 2)};
    lease_client clients[] = {lease_client(leases[0], store.url), lease_client(leases[1], store.url)};
    std::uint64_t got[] = {0, 0};
    const auto start = std::chrono::steady_clock::now();
    const auto spent = [&] { return std::chrono::steady_clock::now() - start; };
    while (spent() < 1500ms) {
        pollfd watched[2];
        int wait = 1000;
        for (int i = 0; i < 2; i++) {
            wait = std::min(wait, static_cast<int>(clients[i].tick().count()));
            const auto events = clients[i].events();
            watched[i] = {clients[i].fd(), static_cast<short>((events & TOLLBAR_EVENT_READ ? POLLIN : 0) |
                                                              (events & TOLLBAR_EVENT_WRITE ? POLLOUT : 0)), 0};
            got[i] += admitted(leases[i], tollbar::key(nullptr, 0), 20);
        }
        poll(watched, 2, wait);
    }
    const auto most = 400 + static_cast<std::uint64_t>(spent() / 500us) + 1;
    CHECK(got[0] > 0 && got[1] > 0 && got[0] + got[1] <= most);
    // An answer that is late opens the circuit for a while.
    CHECK(within(30s, [&] {
        for (lease_client &each : clients)
            each.tick();
        return clients[0].state() == circuit::closed && clients[1].state() == circuit::closed;
    }));
}

/// A machine of a limit of two, with a thread for the store, which answers.
struct machine {
    lease limit;
    lease_client client;

    machine(const server &store, const char *policy, const lease_options &options)
        : limit("waits", policy, options), client(limit, store.url) {
        client.start();
        CHECK(answered());
    }
    bool answered() const {
        return within(30s, [&] { return client.state() == circuit::closed; });
    }
    /// Why the store decides so about a key that asks for the whole burst. Each try is another key,
    /// because the store may be away for a while.
    reason for_an_idle_key(const std::string &name, std::uint64_t burst) const {
        reason why = reason::fault;
        int tries = 0;
        CHECK(within(30s, [&] {
            why = limit.wait(name + std::to_string(tries++), 30s, burst).why();
            return why == reason::admitted || why == reason::store_denied;
        }));
        return why;
    }
};

lease_options two_without_overdraft() {
    lease_options options(2);
    options.overdraft = 0;
    return options;
}

/// Repeats a test by a real clock, which a machine that stands still for some 100 ms makes false: then
/// the machines decide by themselves for a while. A fault fails each time.
template <class Holds> bool once_of_ten(const Holds &holds) {
    for (int i = 0; i < 10; i++)
        if (holds(i))
            return true;
    return false;
}

TEST(an_idle_key_passes_at_once) {
    server store;
    const machine a(store, "5/min", 2), b(store, "5/min", 2);
    CHECK(once_of_ten([&](int i) {
        const std::string key = std::to_string(i);
        CHECK(a.answered() && b.answered());
        const auto first = a.limit.check(key), second = b.limit.check(key);
        return first.why() == reason::admitted && second.why() == reason::admitted;
    }));
}

TEST(requests_that_wait_are_decided_as_by_the_store) {
    server store;
    const machine machines[] = {{store, "5/min", two_without_overdraft()}, {store, "5/min", two_without_overdraft()}};
    CHECK(once_of_ten([&](int i) {
        const std::string key = std::to_string(i);
        bool holds = true;
        for (int n = 0; n < 6; n++) {
            const auto answer = machines[n % 2].limit.wait(key, 30s);
            holds = holds && answer.why() == (n < 5 ? reason::admitted : reason::store_denied);
        }
        return holds;
    }));
}

TEST(a_request_waits_in_an_event_loop) {
    server store;
    const lease logins("logins", "5/min", two_without_overdraft());
    lease_client asks(logins, store.url);
    CHECK(once_of_ten([&](int i) {
        const std::string key = std::to_string(i);
        CHECK(within(30s, [&] { return asks.tick() >= 0ms && asks.state() == circuit::closed; }));
        lease_request request(logins.now() + 30s, 5), late(logins.now());
        std::optional<tollbar::decision> answer = logins.poll(key, request);
        const bool waits = !answer;
        CHECK(within(30s, [&] { return answer || (asks.tick() >= 0ms && (answer = logins.poll(key, request))); }));
        const auto other = logins.poll("late " + key, late);
        return waits && answer->why() == reason::admitted && other && other->why() == reason::pending;
    }));
}

TEST(requests_without_a_place_are_counted) {
    server store;
    lease_options options = two_without_overdraft();
    options.capacity = 1;
    const lease logins("logins", "5/min", options);
    lease_client asks(logins, store.url);
    CHECK(within(30s, [&] { return asks.tick() >= 0ms && asks.state() == circuit::closed; }));
    std::uint64_t full = 0, pending = 0;
    for (int i = 0; i < 1000; i++) {
        const auto why = logins.wait(std::to_string(i), 0s).why();
        full += why == reason::table_full ? 1u : 0u;
        pending += why == reason::pending ? 1u : 0u;
    }
    CHECK(full > 0 && logins.stats().full == full && logins.stats().denied_pending == pending);
}

/// An idle key has its whole burst then, or with the option `refill` nothing that has not refilled.
TEST(a_store_that_comes_back_empty) {
    for (const bool refill : {false, true}) {
        server store;
        lease_options options = two_without_overdraft();
        options.refill = refill;
        const machine one(store, "1000/day", options);
        // A new limit that refills has nothing in its first second.
        int tries = 0;
        CHECK(within(30s, [&] {
            return one.for_an_idle_key(std::to_string(tries++) + "before", 1000) == reason::admitted;
        }));
        redis_kill(&store);
        CHECK(within(30s, [&] { return one.client.state() == circuit::open; }));
        redis_start(&store);
        CHECK(one.for_an_idle_key("idle", 1000) == (refill ? reason::store_denied : reason::admitted));
    }
}

TEST(the_programs_own_client_asks) {
    server store;
    const lease logins("logins", "1000/day burst 400", 1);
    tollbar::lease_calls calls(logins);
    CHECK(calls && calls.try_add(logins).error() == errc::client_leases);
    std::vector<char> reply(1 << 16);
    const auto carry = [&](bool closing) {
        const tollbar::lease_call call = calls.turn(closing);
        std::vector<const void *> strings;
        std::vector<std::size_t> lengths;
        for (std::size_t n = 0; n < call.size(); n++) {
            strings.push_back(call[n].data());
            lengths.push_back(call[n].size());
        }
        if (!call) {
            calls.wait(call.wait());
            return call.wait() != 0ms;
        }
        const long length = redis_eval(&store, calls.script().data(), strings.data(), lengths.data(), call.size(), call.keys(),
                                       reply.data(), reply.size());
        CHECK(length >= 0);
        calls.answered({reply.data(), static_cast<std::size_t>(length)});
        return true;
    };
    CHECK(within(30s, [&] { return carry(false) && logins.stats().circuit == circuit::closed; }));
    int admitted = 0;
    for (int asked = 0; asked < 450; asked++) {
        lease_request request(logins.now() + 10s);
        std::optional<tollbar::decision> answer;
        CHECK(within(30s, [&] { return (answer = logins.poll("ann", request)) || !carry(false); }));
        admitted += answer && answer->allowed() ? 1 : 0;
    }
    CHECK(admitted >= 300 && admitted <= 400 && calls.last_error().empty());
    CHECK(within(30s, [&] { return !carry(true); }));
    CHECK(calls.try_close());
    calls = tollbar::lease_calls(logins);
    CHECK(within(30s, [&] { return bool(calls.turn()); }));
    calls.lost("cable");
    CHECK(calls.last_error() == "the program's Redis client failed: cable");
    CHECK(within(30s, [&] { return bool(calls.turn()); }));
    calls.refused("OOM no room");
    CHECK(calls.last_error() == "the server is out of memory (EVALSHA): OOM no room");
}

// The store decides. Two limits of one name, as two machines have them, pass the limit together.
TEST(s31_the_store_decides) {
    server store;
    for (const char *policy : {"30/365day burst 30", "30/365day algo interval", "30/365day algo fixed-window", "30/365day algo weighted-window",
                               "30/365day algo sliding-window", "30/365day algo sliding-log"}) {
        const tollbar::store_limit one("logins", tollbar::spec(policy)), other("logins", tollbar::spec(policy));
        std::uint64_t taken = 0;
        const auto ask = [&](const tollbar::store_limit &limit, const tollbar::store_question &question) {
            std::array<std::int64_t, 8> numbers{};
            const auto count = redis_eval_numbers(&store, question.script(), question.key().data(), question.key().size(), question.begin(),
                                                  question.size(), numbers.data(), numbers.size());
            return limit.answer(question, numbers.data(), count, &taken);
        };
        int passed = 0;
        for (int n = 0; n < 25; n++)
            passed += (ask(one, one.check(policy)).allowed() ? 1 : 0) + (ask(other, other.check(policy)).allowed() ? 1 : 0);
        CHECK(passed == 30);
        const auto refused = ask(one, one.peek(policy));
        CHECK(refused.denied() && refused.why() == tollbar::reason::rate && refused.retry_after() > 1s);
        CHECK(ask(one, one.reset(policy)).allowed() && ask(other, other.check(policy, 29)).remaining() == 1);
        CHECK(ask(one, one.take_up_to(policy, 9)).allowed() && taken == 1);
    }
    const tollbar::store_limit none("none", tollbar::spec("0/s"));
    CHECK(!none.check("k") && none.answer(none.check("k"), nullptr, 0).never());
    CHECK(tollbar::store_limit::try_make("a b", tollbar::spec("5/s")).error() == errc::lease_name);
    CHECK(tollbar::store_limit::try_make("a", tollbar::spec("5/s algo pacer")).error() == errc::store_algorithm);
    CHECK_THROWS(tollbar::error, none.check(""), e, e.code() == errc::store_key);
    const tollbar::store_limit five("five", tollbar::spec("5/s"));
    CHECK(five.answer(five.check("k"), nullptr, 0).error() == errc::store_reply);
}

TEST(the_stores_words) {
    server store;
    const lease logins("logins", "60/min burst 600", 2);
    lease_client asks(logins, std::string(store.url) + "?user=nobody&password=wrong");
    CHECK(within(30s, [&] {
        asks.tick();
        return asks.last_error().find("WRONGPASS") != std::string_view::npos;
    }));
}

} // namespace
