// Classes with guaranteed rates and ceilings.
#include "test.hpp"

#include <array>
#include <chrono>
#include <utility>

#include "tollbar.hpp"

using namespace std::chrono_literals;
using tollbar::hierarchy;

static tollbar::table nodes() {
    tollbar::table_options options(2000);
    return tollbar::table(options, {hierarchy::policy()});
}

TEST(a_leaf_has_its_ceiling_and_its_users_a_node_each) {
    const auto table = nodes();
    hierarchy shop("1000/s", 100ms, 8);
    const auto acme = shop.add(hierarchy::root, "acme", "400/s");
    const auto users = shop.add(acme, "users", "1/s", "50/s", 100);
    for (std::uint64_t left = 6; left-- > 0;) {
        const auto share = shop.take_at(1h, table, users, "ann");
        CHECK(share && share.allowed() && share.remaining() == left && share.interval() == 20ms && share.bound() == users);
    }
    const auto refused = shop.take_at(1h, table, users, "ann");
    CHECK(!refused && refused.denied() && refused.retry_after() == 20ms && refused.why() == tollbar::reason::rate);
    CHECK(shop.take_at(1h, table, users, "bob").allowed() && shop.take(table, users).allowed());
    CHECK(shop.take_at(1h, table, users, "eve", 1000000000).never() && refused.get().verdict == TOLLBAR_DENIED);
    hierarchy moved = std::move(shop);
    CHECK(moved.take(table, users, "ann").allowed() && moved.get() != nullptr);
}

// Each asks for so many requests a second in virtual time, for eight seconds; what passes in the
// last one is fair within a hundredth of the shop's rate.
TEST(m13_shares_are_fair) {
    using counts = std::array<std::uint64_t, 3>;
    const std::pair<counts, counts> cases[] = {
        {{0, 2000, 0}, {0, 1000, 0}},
        {{0, 0, 2000}, {0, 0, 300}},
        {{0, 2000, 2000}, {0, 700, 300}},
        {{2000, 2000, 2000}, {600, 200, 200}},
        {{100, 2000, 2000}, {100, 600, 300}},
    };
    for (const auto &[asked, fair] : cases) {
        const auto table = nodes();
        hierarchy shop("1000/s", 100ms, 8);
        const std::array leaves = {shop.add(hierarchy::root, "ann", "600/s"), shop.add(hierarchy::root, "bob"),
                                   shop.add(hierarchy::root, "eve", "", "300/s")};
        counts passed = {};
        for (std::uint64_t ms = 0; ms < 8000; ms++)
            for (std::size_t leaf = 0; leaf < 3; leaf++)
                for (auto n = ms * asked[leaf] / 1000; n < (ms + 1) * asked[leaf] / 1000; n++)
                    if (shop.take_at(1h + std::chrono::milliseconds(ms), table, leaves[leaf], "").allowed() && ms >= 7000)
                        passed[leaf]++;
        for (std::size_t leaf = 0; leaf < 3; leaf++)
            CHECK(passed[leaf] + 10 >= fair[leaf] && passed[leaf] <= fair[leaf] + 10);
    }
}

TEST(a_class_that_cannot_be_throws_and_passes_nothing) {
    const auto table = nodes();
    CHECK_THROWS(tollbar::error, hierarchy("1000/s", 19ms, 8), e, e.code() == tollbar::errc::out_of_range);
    hierarchy shop("1000/s", 100ms, 8);
    CHECK(shop.try_add(hierarchy::root, "a", "1001/s").why().code == tollbar::errc::guarantee);
    CHECK_THROWS(tollbar::error, shop.add(hierarchy::root, "a", "many"), e, e.code() == tollbar::errc::class_rate);
    CHECK_THROWS(tollbar::error, shop.add(7, "a"), e, e.code() == tollbar::errc::class_number);
    const auto failed = shop.take(table, 7, "k");
    CHECK(!failed && failed.failed() && failed.error() == tollbar::errc::class_number && failed.why() == tollbar::reason::fault);
    CHECK(!failed.retry_after() && failed.remaining() == 0 && failed.answer().failed());
}
