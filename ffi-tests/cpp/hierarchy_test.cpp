// Classes with guaranteed rates and ceilings.
#include "test.hpp"

#include <chrono>

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
