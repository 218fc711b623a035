// Keys, prefixes and tables.
#include "test.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif

#include "tollbar.hpp"

using namespace std::chrono_literals;
using tollbar::errc;
using tollbar::policy_id;
using tollbar::table;
using tollbar::table_options;

static_assert(!std::is_copy_constructible_v<table> && !std::is_copy_assignable_v<table>);
static_assert(std::is_nothrow_move_constructible_v<table> && std::is_nothrow_move_assignable_v<table>);
static_assert(!std::is_convertible_v<table, bool> && std::is_constructible_v<bool, table>);
static_assert(noexcept(std::declval<const table &>().admit("")) && noexcept(std::declval<const table &>().check("")));
static_assert(!noexcept(std::declval<const table &>().stats()) && noexcept(std::declval<const table &>().try_stats()));

// Types that are no keys: numbers (bytes_of makes keys of them), and elements with padding.
struct padded {
    char a;
    int b;
};
static_assert(!std::is_convertible_v<int, tollbar::key> && !std::is_convertible_v<std::vector<double>, tollbar::key>);
static_assert(!std::is_convertible_v<std::vector<padded>, tollbar::key>);
static_assert(std::is_convertible_v<std::string, tollbar::key> && std::is_convertible_v<std::vector<int>, tollbar::key>);
static_assert(std::is_convertible_v<tollbar::prefix, tollbar::key>);

namespace {

constexpr auto api = static_cast<policy_id>(1);

/// A seed, so that the same keys meet in every run.
table_options seeded(std::uint64_t keys) {
    table_options options(keys);
    options.seed = 1;
    options.seeded = true;
    return options;
}

/// A path of its own, without a file, during one test.
struct path {
    std::string name = "/dev/shm/tollbar-cpp-" + std::to_string(getpid());
    path() { unlink(name.c_str()); }
    ~path() { unlink(name.c_str()); }
    const char *text() const { return name.c_str(); }
};

} // namespace

TEST(charges_and_bans) {
    const tollbar::table guessed(100, {"5/min ban 1h"});
    for (int n = 0; n < 5; n++)
        CHECK(guessed.peek_at(1h, "ann") && guessed.charge_at(1h, "ann"));
    CHECK(guessed.peek_at(1h, "ann").why() == tollbar::reason::banned && guessed.peek_at(1h, "ann").retry_after() == 1h);
    CHECK(guessed.charge_at(1h, "ann", 3).rest == 3 && guessed.charge("bob", 20).rest == 10);
    CHECK(tollbar::spec(5, 1min).with_ban(1h, 3) == tollbar::spec("5/min ban 1h after 3"));
}

TEST(any_algorithm_becomes_any_other_where_slots_have_room) {
    tollbar::table_options options(100);
    options.room = 30;
    const tollbar::table table(options, {"20/h", "1/s"});
    CHECK(table.take_up_to("k", 14).permits == 14);
    for (const char *text : {"30/h algo sliding-window segments 10", "25/h algo sliding-log"}) {
        table.set_policy(tollbar::policy_id::first, tollbar::spec(text));
        CHECK(table.peek("k").remaining() == 6);
    }
    CHECK(table.try_set_policy(tollbar::policy_id::first, "31/s algo sliding-log").error() == errc::slot_room);
}

TEST(a_table_of_texts) {
    const table logins(1000, {"2/min", "3/min"});
    CHECK(logins.admit_at(1h, "ann") && logins.admit_at(1h, "ann") && !logins.admit_at(1h, "ann") &&
        logins.admit_at(1h, "bob"));
    CHECK(logins.admit_at(1h, {"ann", api}, 3) && logins.admit_at(1h, {"ann", api}).denied());
    CHECK(logins.admit_at(1h, "ann", 3).never() &&
        logins.admit_at(1h, {"ann", static_cast<policy_id>(2)}).error() == errc::no_such_policy);
    const auto refused = logins.check_at(1h, "ann");
    CHECK(!refused && refused.retry_after() == 30s && refused.reset_after() == 1min && refused.remaining() == 0);
    CHECK(logins.peek_at(1h + 30s, "ann") && logins.peek_at(1h + 30s, "ann", 2).retry_after() == 30s);
    CHECK(logins.take_up_to_at(1h + 30s, "ann", 5).permits == 1 && !logins.take_up_to_at(1h + 30s, "ann", 5));
}

TEST(a_table_by_its_own_clock) {
    const table logins(1000, {tollbar::spec(2, 1h)});
    CHECK(logins.admit("ann") && logins.check("ann").remaining() == 0 && !logins.admit("ann") && logins.peek("bob"));
    CHECK(logins.take_up_to("bob", 5).permits == 2 && logins.now() > 0ns && logins.try_now());
    CHECK(logins.reset("ann") && logins.admit("ann") && *logins.try_reset("ann"));
    CHECK(logins.reset_at(logins.now(), "bob") && logins.try_reset_at(logins.now(), "ann") && logins.admit("bob"));
}

TEST(keys_are_bytes) {
    const table logins(1000, {"1/h"});
    const auto hash = [&](const tollbar::key &key) { return logins.hash(key); };
    const char letters[] = {'a', 'n', 'n'};
    const std::array<std::uint8_t, 3> bytes{'a', 'n', 'n'};
    CHECK(hash("ann") == hash(std::string("ann")) && hash("ann") == hash(std::string_view("anna", 3)));
    CHECK(hash("ann") == hash({letters, sizeof letters}) && hash("ann") == hash(bytes) && hash("ann") == hash(tollbar::bytes_of(letters)));
    CHECK(hash("ann") == hash(std::vector<char>(letters, letters + 3)) && hash("ann") != hash("bob"));
    CHECK(hash("ann") != hash({"ann", 2}) && *logins.try_hash("ann") == hash("ann"));
#if __cplusplus >= 202002L
    CHECK(hash("ann") == hash(std::as_bytes(std::span(letters))) && hash("ann") == hash(std::span<const std::uint8_t>(bytes)));
#endif
    const std::uint64_t number = 7;
    const std::array<std::uint64_t, 1> one{number};
    CHECK(hash(tollbar::bytes_of(number)) == hash(one) && hash(tollbar::bytes_of(number)) != hash(tollbar::bytes_of(8)));
    CHECK(tollbar::bytes_of(number, api).policy() == api && tollbar::key(one, api).size() == 8 && tollbar::key("ann").policy() == policy_id::first);
    // Two views of other bytes with a NUL in them are two keys.
    CHECK(hash(std::string("a\0b", 3)) != hash(std::string("a\0c", 3)));
}

TEST(booking_keys_ahead) {
    const table jobs(seeded(100), {"2/s burst 1"});
    static_assert(noexcept(jobs.reserve(std::declval<const tollbar::key &>(), std::declval<const std::chrono::seconds &>())));
    CHECK(jobs.reserve_at(1h, "acme", 1s).wait == 0s);
    const auto second = jobs.reserve_at(1h, "acme", 1s);
    CHECK(second && second.wait == 500ms && second.departs == 1h + 500ms && second.cost == 1);
    CHECK(jobs.reserve_at(1h, "acme", 999ms).answer.denied() && jobs.reserve_at(1h, "acme", 1s, 2).answer.never());
    const auto last = jobs.reserve_at(1h, "acme", 1s);
    CHECK(last.wait == 1s && jobs.cancel_at(1h, "acme", second) == 0 && jobs.cancel_at(1h, "acme", last) == 1);
    CHECK(jobs.reserve_at(1h, "acme", 1s).wait == 1s && jobs.cancel("nobody", last) == 0);
    jobs.exempt("vip");
    CHECK(jobs.reserve("vip", 0s).cost == 0);
    // Two intervals of half a second for the third, by the table's clock.
    const auto begun = jobs.now();
    CHECK(jobs.wait("globex", 0s) && jobs.wait("globex", 10s) && jobs.wait("globex", 10s));
    CHECK(jobs.now() - begun >= 1s && jobs.wait("globex", 1s, 2).never());
    // A permit an hour, so that none comes back on a machine that stands still for a while.
    const table seldom(seeded(100), {"1/h burst 1"});
    CHECK(seldom.wait("globex", 0s) && seldom.wait("globex", 1ms).denied());
    CHECK(jobs.reserve({"a", policy_id(9)}, 1s).answer.error() == errc::no_such_policy);
}

TEST(a_missing_key) {
    using tollbar::missing_key;
    const char *const null = nullptr;
    table_options options = seeded(100);
    CHECK(table(options, {"1/h"}).admit(null).denied() && table(options, {"1/h"}).admit("").denied());
    options.without_key = missing_key::allow;
    CHECK(table(options, {"1/h"}).admit(std::string_view()));
    options.without_key = missing_key::report;
    CHECK(table(options, {"1/h"}).admit(std::vector<char>()).error() == errc::missing_key);
}

TEST(prefixes) {
    using tollbar::prefix;
    const table clients(1000, {"1/h"});
    CHECK(clients.admit(prefix("2001:db8::1")) && !clients.admit(prefix("2001:db8::2")) &&
        clients.admit(prefix("2001:db8:0:1::1")));
    CHECK(prefix("192.0.2.1") != prefix("192.0.2.2") && prefix("192.0.2.1", 24) == prefix("192.0.2.2", 24));
    CHECK(prefix("::ffff:192.0.2.1") == prefix("192.0.2.1") && prefix("2001:db8::1%eth0") == prefix("2001:db8::1"));
    const std::array<std::uint8_t, 4> four{192, 0, 2, 1};
    const std::array<std::uint8_t, 16> sixteen{0x20, 0x01, 0x0d, 0xb8};
    CHECK(prefix::from_address(four) == prefix("192.0.2.1") && prefix::from_address(sixteen) == prefix("2001:db8::"));
    CHECK(prefix::try_from_address(four.data(), 4, 32, 64) && prefix::try_from_address(four.data(), 3, 32, 64).error() == errc::address);
    CHECK(prefix("192.0.2.1").size() == 6 && prefix("192.0.2.1").data()[0] == 4 && prefix("192.0.2.1").get()->length == 6);
    CHECK(prefix::try_parse("nowhere").error() == errc::address && prefix::try_parse({}).error() == errc::address);
    const std::vector<prefix> proxies{prefix::network("10.0.0.0/8"), prefix::network("unix:")};
    const auto of = [&proxies](const char *peer, const char *forwarded) { return prefix::try_of_client(peer, forwarded, proxies.data(), proxies.size()); };
    CHECK(*of("10.0.0.1:80", "1.1.1.1, 192.0.2.1:4711, 10.0.0.2") == prefix("192.0.2.1") && *of("", "192.0.2.1") == prefix("192.0.2.1"));
    CHECK(*of("192.0.2.1", "1.1.1.1") == prefix("192.0.2.1") && of("localhost", "1.1.1.1").error() == errc::address);
    CHECK(prefix::of_client("192.0.2.1", "", nullptr, 0) == prefix("192.0.2.1") && prefix::try_network("10.0.0.1/8").error() == errc::address);
    CHECK(prefix::try_from_address(four, 33).error() == errc::out_of_range && prefix::try_parse("192.0.2.1", 33).error() == errc::out_of_range);
    CHECK_THROWS(tollbar::error, prefix("1.2.3"), e, e.code() == errc::address);
    CHECK_THROWS(tollbar::error, prefix::from_address(four, 33), e, e.code() == errc::out_of_range);
}

TEST(batches_of_requests) {
    const table logins(1000, {"1/h", "5/h"});
    const std::vector<tollbar::request> requests{{"ann"}, {"ann"}, {{"ann", api}, 4}, {{"ann", api}, 2}, {"bob", 9}};
    std::array<tollbar::verdict, 5> results;
    CHECK(logins.admit_many_at(1h, requests, results));
    CHECK(results[0] && results[1].denied() && results[2] && results[3].denied() && results[4].never());
    tollbar::verdict few[4];
    CHECK(logins.admit_many_at(9h, requests, few).error() == errc::buffer_too_small &&
        logins.admit_many(requests, few).error() == errc::buffer_too_small);
    const tollbar::request more[] = {"eve", "eve"};
    CHECK(logins.admit_many(more, few) && few[0] && !few[1] && logins.admit_many({}, {}));
    CHECK(requests[2].get()->policy == 1 && requests[2].get()->cost == 4);
}

TEST(policies_are_gone_through) {
    const std::vector<tollbar::spec> specs{"2/min", "3/min burst 9"};
    const table logins(1000, specs);
    CHECK(logins.add_policy("4/min") == static_cast<policy_id>(2) && *logins.try_add_policy("5/min") == static_cast<policy_id>(3));
    CHECK(logins.find_or_add_policy("5/min") == static_cast<policy_id>(3) && *logins.try_find_or_add_policy("2/min") == static_cast<policy_id>(0));
    logins.set_policy(api, tollbar::spec(6, 1min));
    CHECK(logins.policy(api) == tollbar::spec("6/min") && logins.try_set_policy(api, "7/min") && logins.try_policy(api)->limit() == 7);
    std::string seen;
    for (const auto &[id, policy] : logins.policies())
        seen += std::to_string(static_cast<unsigned>(id)) + "=" + policy.text() + " ";
    CHECK(seen == "0=2/min 1=7/min 2=4/min 3=5/min ");
    const auto none = static_cast<policy_id>(9);
    CHECK(logins.try_policy(none).error() == errc::no_such_policy && logins.try_set_policy(none, "1/s").error() == errc::no_such_policy);
    CHECK_THROWS(tollbar::error, logins.policy(none), e, e.code() == errc::no_such_policy);
    CHECK_THROWS(tollbar::error, logins.set_policy(none, "1/s"), e, e.code() == errc::no_such_policy);
    CHECK_THROWS(tollbar::error, logins.add_policy("1/s algo sliding-log"), e, e.code() == errc::mixed_policies);
}

TEST(hot_keys_of_a_table) {
    tollbar::table_options options(1000);
    options.hot_keys = 100;
    int fd = -1;
    table tenants = table::sealed(options, {"1000/day burst 5000", "2/day"}, fd);
    const table plain = table::open_fd(fd);
    std::uint64_t admitted = 0;
    for (; admitted < 500; ++admitted)
        CHECK(tenants.admit_at(1h, "acme"));
    // This thread has permits in advance, which have been charged.
    CHECK(plain.peek_at(1h, "acme").remaining() < tenants.peek_at(1h, "acme").remaining());
    while (tenants.admit_at(1h, "acme"))
        ++admitted;
    CHECK(admitted > 4900 && admitted <= 5000 && plain.peek_at(1h, "acme").remaining() == 0);
    CHECK(tenants.admit_at(1h, {"acme", api}) && tenants.admit_at(1h, {"acme", api}) &&
        !tenants.admit_at(1h, {"acme", api}));
    tenants.set_hot_keys(0);
    CHECK(tenants.admit_at(1h, "another") && tenants.peek_at(1h, "another").remaining() == 4999);
    table gone = std::move(tenants);
    CHECK(tenants.try_set_hot_keys(1).error() == errc::null && close(fd) == 0);
}

TEST(entries_are_gone_through) {
    const table logins(1000, {"2/min", "3/min"});
    std::map<std::uint64_t, std::string> names;
    for (const char *name : {"ann", "bob", "eve"}) {
        CHECK(logins.admit_at(1h, {name, api}));
        names[logins.hash({name, api})] = name;
    }
    std::string seen;
    for (const auto &entry : logins.entries(1h)) {
        CHECK(entry.policy == api && entry.remaining == 2 && entry.state != 0);
        // When a slot expires is kept in steps of some nanoseconds.
        CHECK(entry.reset_after >= 20s && entry.reset_after < 20s + 1us);
        seen += names[entry.hash];
    }
    CHECK(seen.size() == 9 && names.size() == 3);
    const auto later = logins.entries(2h);
    CHECK(std::count_if(later.begin(), later.end(), [](const auto &entry) { return entry.reset_after == 0ns; }) == 3);
    auto one = later.begin();
    const auto hash = one->hash;
    CHECK(one++->hash == hash && (*one).hash != hash && one != later.end());
    const table empty(100, {"2/min"});
    CHECK(empty.entries().begin() == empty.entries().end());
}

TEST(counters_and_health) {
    const table logins(1000, {"2/min"});
    CHECK(logins.admit_at(1h, "ann") && logins.admit_at(1h, "bob"));
    CHECK(logins.stats().keys == 2 && logins.stats().capacity == 1000 && logins.try_stats()->policies == 1);
    CHECK(logins.stats().bytes <= table::bytes(1000, {"2/min"}) && *table::try_bytes(1000, {"2/min"}) > 20'000);
    const auto health = logins.validate(1h);
    CHECK(!health.slots_invalid && health.slots.live == 2 && logins.try_validate(2h)->slots.expired == 2);
    CHECK(logins.sweep(1h, 0, 10).done == 0 && logins.sweep(1h).live == 2 && logins.try_sweep(2h)->vacated == 2);
    CHECK(logins.sweep().done == 1 && !logins.repair().slots_invalid && !logins.try_repair(3h)->slots_invalid && !logins.validate().slots_invalid);
    CHECK(logins.stats().keys == 0 && logins.stats().vacated == 2);
}

TEST(ten_refusals_raise_one_number_by_ten) {
    const table logins(1000, {"2/min", "5/min"});
    for (int i = 0; i < 12; i++)
        CHECK(logins.admit_at(1h, "ann").allowed() == (i < 2));
    const auto counts = logins.counts();
    CHECK(counts.allowed == 2 && counts.denied == 10 && counts.never == 0);
    logins.count(tollbar::outcome::never);
    CHECK(logins.counts().never == 1 && logins.try_count(tollbar::outcome::failed).error() == errc::out_of_range);
    const auto denied = logins.counts().denied;
    logins.count_refusal("ann");
    CHECK(logins.counts().denied == denied + 1 && logins.try_count_refusal("ann", tollbar::outcome::allowed).error() == errc::out_of_range);
    CHECK(logins.try_counts(1)->denied == 0 && logins.try_counts(2).error() == errc::no_such_policy);
    CHECK(logins.stats().denied == 11 && logins.stats().allowed == 2);
}

TEST(damage_is_seen_and_repaired) {
    const tollbar::spec one("2/min");
    const auto size = static_cast<std::size_t>(table::bytes(seeded(100), {one}));
    void *const memory = std::aligned_alloc(64, (size + 63) / 64 * 64);
    {
        const table logins = table::init_in(memory, size, seeded(100), {one});
        CHECK(logins.admit_at(1h, "ann"));
        // The key's state, wherever it lies, is found and changed to one of a version that nobody
        // knows.
        const std::uint64_t state = logins.entries(1h).begin()->state;
        for (char *at = static_cast<char *>(memory); at + 16 <= static_cast<char *>(memory) + size; at += 8) {
            if (std::memcmp(at, &state, sizeof state) == 0)
                std::memset(at - 8, 0xff, 8), std::memset(at + 8, 0xff, 8);
        }
        const auto seen = logins.validate(1h);
        CHECK(seen.slots_invalid && seen.slots.unknown > 0);
        CHECK(logins.repair(1h).slots_invalid && !logins.validate(1h).slots_invalid);
    }
    std::free(memory);
}

TEST(keys_with_a_policy_of_their_own) {
    tollbar::table_options options(1000);
    options.overrides = 1;
    const table calls(options, {"3/h", "4/h"});
    calls.set_override("acme", "1000/h burst 50");
    CHECK(calls.take_up_to("acme", 100).permits == 50 && calls.take_up_to("other", 100).permits == 3);
    CHECK(calls.take_up_to({"acme", static_cast<policy_id>(1)}, 100).permits == 4 && calls.stats().overrides == 1);
    CHECK(calls.override_of("acme") == tollbar::spec("1000/h burst 50") && !calls.override_of("other"));
    int seen = 0;
    calls.each_override([&](policy_id id, std::uint64_t hash, const tollbar::spec &own) {
        seen += id == static_cast<policy_id>(0) && hash == calls.hash("acme") && own == tollbar::spec("1000/h burst 50");
    });
    CHECK(seen == 1 && calls.try_set_override("other", "5/h").error() == errc::overrides_full);
    CHECK(calls.clear_override("acme") && !calls.clear_override("acme") && !calls.admit("acme"));
    CHECK_THROWS(tollbar::error, calls.set_override({"a", static_cast<policy_id>(9)}, "5/h"), e, e.code() == errc::no_such_policy);
}

TEST(exempt_keys) {
    const table logins(1000, {"1/h"});
    logins.exempt("ann");
    CHECK(logins.admit("ann") && logins.admit("ann") && logins.unexempt("ann") && !logins.unexempt("ann"));
    CHECK(logins.admit("ann") && !logins.admit("ann") && logins.try_exempt("ann") && *logins.try_unexempt("ann"));
    const auto none = static_cast<policy_id>(9);
    CHECK(logins.try_exempt({"ann", none}).error() == errc::no_such_policy && !logins.try_unexempt({"ann", none}));
    CHECK_THROWS(tollbar::error, logins.exempt({"ann", none}), e, e.code() == errc::no_such_policy);
    CHECK_THROWS(tollbar::error, logins.unexempt({"ann", none}), e, e.code() == errc::no_such_policy);
    CHECK_THROWS(tollbar::error, logins.reset({"ann", none}), e, e.code() == errc::no_such_policy);
    CHECK_THROWS(tollbar::error, logins.reset_at(1h, {"ann", none}), e, e.code() == errc::no_such_policy);
    CHECK_THROWS(tollbar::error, logins.hash({"ann", none}), e, e.code() == errc::no_such_policy);
}

TEST(a_table_in_a_file) {
    const path file;
    CHECK_THROWS(tollbar::error, table::open(file.text()), e, e.code() == errc::open && e.why().system == ENOENT);
    {
        const table made = table::open(file.text(), 1000, {"2/min"});
        const table opened = table::open(file.text());
        CHECK(made.admit("ann") && opened.admit("ann") && !made.admit("ann"));
        made.sync();
        CHECK(opened.try_sync());
    }
    const auto again = table::try_open(file.text());
    CHECK(again && !again->admit("ann") && again->policy(policy_id::first) == tollbar::spec("2/min"));
    CHECK(table::try_open(file.text(), 1000, {"3/min"}).error() == errc::other_policies);
    CHECK(table::try_open(file.text(), 2000, {"2/min"}).error() == errc::other_capacity);
    CHECK_THROWS(tollbar::error, table::open(file.text(), 2000, {"2/min"}), e, e.code() == errc::other_capacity && e.why().system == 0);
    CHECK(table::try_open(nullptr).error() == errc::null && table::try_open(nullptr, 10, {"1/s"}).error() == errc::null);
}

TEST(a_table_in_sealed_memory) {
    int fd = -1;
    const table made = table::sealed(1000, {"2/min"}, fd);
    CHECK(fd >= 0 && ftruncate(fd, 0) != 0 && errno == EPERM);
    {
        const table opened = table::open_fd(fd);
        CHECK(made.admit("ann") && opened.admit("ann") && !made.admit("ann"));
    }
    close(fd);
    CHECK(!made.admit("ann") && !table::try_open_fd(fd));
    const path file;
    { const table other = table::open(file.text(), 1000, {"2/min"}); }
    const int unsealed = open(file.text(), O_RDWR);
    CHECK_THROWS(tollbar::error, table::open_fd(unsealed), e, e.code() == errc::unsealed);
    close(unsealed);
}

TEST(a_file_that_others_may_write) {
    const path file;
    { const table made = table::open(file.text(), 1000, {"2/min"}); }
    // A file that its group may write opens with a mode that lets it.
    CHECK(chmod(file.text(), 0660) == 0);
    CHECK(table::try_open(file.text()).error() == errc::owner);
    CHECK(table::try_open(file.text(), tollbar::trust::owner, 0660) &&
        table::open(file.text(), tollbar::trust::owner, 0660).check("eve"));
    CHECK(table::try_open(file.text(), tollbar::trust::owner, 0640).error() == errc::owner);
    CHECK(chmod(file.text(), 0666) == 0);
    tollbar::table_options options(1000);
    CHECK(table::try_open(file.text()).error() == errc::owner && table::try_open(file.text(), options, {"2/min"}).error() == errc::owner);
    // This error is no system call's, so an errno of an earlier call is not its reason.
    errno = EIO;
    CHECK(table::try_open(file.text()).why().system == 0);
    options.whose = tollbar::trust::anyone;
    CHECK(table::try_open(file.text(), options, {"2/min"}) &&
        table::open(file.text(), tollbar::trust::anyone).admit("ann"));
}

TEST(a_table_shared_with_a_child) {
    const table logins = table::shared(1000, {"2/h"});
    const pid_t child = fork();
    if (child == 0)
        _exit(logins.admit("ann") ? 0 : 1);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(logins.admit("ann") && !logins.admit("ann") && table::try_shared(1000, {"2/h"}));
}

TEST(a_table_in_memory_of_the_callers) {
    const auto size = static_cast<std::size_t>(table::bytes(100, {"1/h"}));
    void *const memory = std::aligned_alloc(64, (size + 63) / 64 * 64);
    std::memset(memory, 0, size);
    CHECK(table::try_attach(memory, size).error() == errc::not_a_table);
    {
        const table made = table::init_in(memory, size, 100, {"1/h"});
        const table attached = table::attach(memory, size);
        CHECK(made.admit("ann") && !attached.admit("ann") && attached.admit("bob"));
    }
    CHECK(table::try_attach(memory, size) && table::try_init_in(memory, size - 1, 100, {"1/h"}).error() == errc::buffer_too_small);
    CHECK_THROWS(tollbar::error, table::attach(nullptr, size), e, e.code() == errc::null);
    CHECK_THROWS(tollbar::error, table::init_in(nullptr, size, 100, {"1/h"}), e, e.code() == errc::null);
    std::free(memory);
}

// A hundred times the capacity in new keys. A limited key is decided as by a limiter of its own while
// the clock goes on, and while it stands still and new keys take places from each other.
TEST(s30_m3_a_flood_takes_no_place_of_a_limited_key) {
    const table keys(1000, {"20/h burst 50", "1/s burst 1"});
    const tollbar::limiter alone("20/h burst 50");
    const auto bytes = keys.stats().bytes;
    std::chrono::nanoseconds now = 24h;
    int taken = 0;
    for (std::uint64_t key = 0; key < 200'000; key++) {
        CHECK(keys.check_at(now, tollbar::bytes_of(key, policy_id(1))).allowed());
        now += key < 100'000 ? 5ms : 0ms;
        if (key % 100 == 0) {
            const bool passed = keys.check_at(now, "limited").allowed();
            CHECK(passed == alone.check_at(now).allowed());
            taken += passed;
        }
    }
    CHECK(keys.stats().bytes == bytes && keys.stats().evicted > 50'000 && taken == 50 + 500 / 180);
}

TEST(options) {
    using tollbar::on_full;
    table_options full = seeded(1);
    const auto admitted = [](const table &of) {
        int count = 0;
        for (int i = 0; i < 20'000; i++)
            count += of.admit_at(1h, tollbar::bytes_of(i)).allowed();
        return count;
    };
    full.when_full = on_full::deny;
    const int places = admitted(table(full, {"2/h"}));
    CHECK(places < 20'000 && admitted(table(full, {"2/h"})) == places);
    for (const on_full way : {on_full::inherit, on_full::allow, on_full::evict_nearest}) {
        full.when_full = way;
        const table small(full, {"2/h"});
        // A second permit goes to who inherits the debt of one, and then none is left.
        const int got = admitted(small);
        const auto told = small.check_at(1h, "a newcomer");
        CHECK(told.why() == (way == on_full::inherit ? tollbar::reason::inherited_debt
                             : way == on_full::allow ? tollbar::reason::table_full
                                                     : tollbar::reason::admitted));
        CHECK(way == on_full::inherit ? got > places && got < 20'000 : got == 20'000);
        CHECK((small.stats().inherited > 0) == (way == on_full::inherit));
        CHECK((small.stats().untracked > 0) == (way == on_full::allow));
        CHECK((small.stats().evicted > 0) == (way == on_full::evict_nearest));
    }
    table_options options(100);
    options.seed = 7;
    options.seeded = true;
    options.small_pages = true;
    options.clock = tollbar::clock_source::coarse;
    CHECK(table(options, {"1/h"}).hash("ann") == table(options, {"1/h"}).hash("ann"));
    CHECK(table(100, {"1/h"}).hash("ann") != table(100, {"1/h"}).hash("ann"));
    const path file;
    options.mode = 0640;
    CHECK(table::try_open(file.text(), options, {"1/h"}) && access(file.text(), W_OK) == 0);
    options.clock = static_cast<tollbar::clock_source>(9);
    CHECK(table::try_make(options, {"1/h"}).error() == errc::out_of_range);
}

TEST(a_table_that_cannot_be_made) {
    CHECK(table::try_make(0, {"1/s"}).error() == errc::capacity && table::try_make(10, tollbar::policy_list({})).error() == errc::policy_count);
    CHECK(table::try_make(10, std::vector<tollbar::spec>(129, "1/s")).error() == errc::policy_count);
    CHECK(table::try_make(10, std::vector<tollbar::spec>(128, "1/s")));
    CHECK(table::try_bytes(0, {"1/s"}).error() == errc::capacity);
    CHECK_THROWS(tollbar::error, table(0, {"1/s"}), e, e.code() == errc::capacity);
    CHECK_THROWS(tollbar::error, table::shared(0, {"1/s"}), e, e.code() == errc::capacity);
    CHECK_THROWS(tollbar::error, table::bytes(0, {"1/s"}), e, e.code() == errc::capacity);
    CHECK_THROWS(tollbar::policy_error, table(10, {"1/s", "1/"}), e, e.column() == 3);
}

TEST(from_one_table_into_another) {
    const table from(seeded(100), {"2/min"}), into(seeded(1000), {"2/min"});
    CHECK(from.admit_at(1h, "ann", 2) && into.copy_from(from, 1h).copied == 1 && !into.admit_at(1h, "ann"));
    CHECK(into.try_copy_from(from) && into.try_copy_from(table(100, {"2/min"})).error() == errc::other_options);
    CHECK_THROWS(tollbar::error, into.copy_from(table(100, {"2/min"})), e, e.code() == errc::other_options);
}

TEST(tables_move) {
    table first(100, {"1/h"}), second(100, {"1/h"});
    tollbar_table *const handle = first.get();
    table moved = std::move(first);
    CHECK(moved && moved.get() == handle && moved.admit("ann"));
    // A moved-from table refuses with errc::null.
    const auto null = [](const auto &result) { return !result && result.error() == errc::null; };
    CHECK(!first && null(first.admit("a")) && null(first.admit_at(1h, "a")) && null(first.check("a")) &&
        null(first.check_at(1h, "a")));
    CHECK(null(first.peek("a")) && null(first.peek_at(1h, "a")) && null(first.take_up_to("a", 1).answer));
    CHECK(null(first.charge("a").answer) && null(first.charge_at(1h, "a").answer));
    CHECK(null(first.take("a", 1).answer) && null(first.take_at(1h, "a", 1).answer) && null(first.settle({}, 1).answer));
    CHECK(null(first.settle_at(1h, {}, 1).answer) && null(first.settle_in_full({}, 1).answer));
    CHECK(null(first.take_up_to_at(1h, "a", 1).answer) && null(first.try_reset("a")) && null(first.try_reset_at(1h, "a")));
    const tollbar::request one[] = {"a"};
    tollbar::verdict result[1];
    CHECK(null(first.admit_many(one, result)) && null(first.admit_many_at(1h, one, result)) && !result[0]);
    CHECK(null(first.try_exempt("a")) && null(first.try_unexempt("a")) && null(first.try_hash("a")) && null(first.try_now()));
    CHECK(null(first.try_stats()) && null(first.try_sync()) && null(first.try_sweep()) && null(first.try_validate()));
    CHECK(null(first.try_repair()) && null(first.try_policy(api)) && null(first.try_add_policy("1/s")) && null(first.try_find_or_add_policy("1/s")) && null(first.try_set_policy(api, "1/s")));
    CHECK(null(first.try_copy_from(moved)) && null(moved.try_copy_from(first)));
    for ([[maybe_unused]] const auto &entry : first.entries())
        CHECK(false);
    for ([[maybe_unused]] const auto &policy : first.policies())
        CHECK(false);
    CHECK_THROWS(tollbar::error, first.stats(), e, e.code() == errc::null);
    CHECK_THROWS(tollbar::error, first.sync(), e, e.code() == errc::null);
    CHECK_THROWS(tollbar::error, first.now(), e, e.code() == errc::null);
    CHECK_THROWS(tollbar::error, first.sweep(), e, e.code() == errc::null);
    CHECK_THROWS(tollbar::error, first.validate(), e, e.code() == errc::null);
    CHECK_THROWS(tollbar::error, first.repair(), e, e.code() == errc::null);
    second = std::move(moved);
    CHECK(second.get() == handle && !second.admit("ann"));
    first = table::adopt(second.release());
    CHECK(!second && first.get() == handle);
}

TEST(the_most_refused_keys) {
    const table calls(100, {"1/day", "2/day"});
    // Counts are halved when such a time begins.
    const std::uint64_t period = std::uint64_t{1} << 36;
    while (period - static_cast<std::uint64_t>(calls.now().count()) % period < 10'000'000'000)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK(!calls.records_refusals() && calls.top_refused().empty());
    calls.record_refusals(true);
    CHECK(calls.records_refusals());
    const std::string longer(100, 'x');
    for (int n = 0; n < 6; n++) {
        (void)calls.admit("alice");
        (void)calls.admit(tollbar::key(longer, api));
    }
    const auto top = calls.top_refused();
    CHECK(top.size() == 2 && top[0].key == "alice" && top[0].count == 5 && !top[0].is_cut);
    CHECK(top[1].policy == api && top[1].count == 4 && top[1].is_cut && top[1].key == longer.substr(0, 48));
    CHECK(calls.top_refused(1).size() == 1 && calls.top_refused(0).empty() && calls.top_refused(100000).size() == 2);
    calls.record_refusals(false);
    CHECK(!calls.records_refusals());
}
