// Receipts: an estimate now, the real cost later.
#include "test.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <type_traits>

#include "tollbar.hpp"

using namespace std::chrono_literals;
using tollbar::errc;
using tollbar::policy_id;
using tollbar::receipt;
using tollbar::table;

static_assert(std::is_trivially_copyable_v<receipt> && sizeof(receipt) == 32);
static_assert(noexcept(std::declval<const table &>().take("", 1)) && noexcept(std::declval<const table &>().settle({}, 1)));

// Five of ten, then seven two seconds later. The five cost nothing: five more do not pass.
TEST(time_is_not_given_twice) {
    const table tokens(100, {"1/s burst 10"});
    const auto five = tokens.take_at(10s, "k", 5);
    CHECK(five && five.answer.remaining() == 5 && tokens.take_at(12s, "k", 7));
    const auto settled = tokens.settle_at(12s, five.receipt, 0);
    CHECK(settled && settled.first && settled.given_back == 3 && settled.rest == 0);
    const auto more = tokens.take_at(12s, "k", 5);
    CHECK(!more && more.answer.denied() && more.answer.retry_after() == 2s);
    const auto again = tokens.settle_at(12s, five.receipt, 0);
    CHECK(again && !again.first && again.given_back == 0);
    CHECK(tokens.take_at(12s, "k", 3));
}

// More than the estimate is a debt of one burst at most.
TEST(the_rest_is_told) {
    const table tokens(100, {"1/s burst 10"});
    const auto two = tokens.take_at(10s, "k", 2);
    const auto settled = tokens.settle_at(10s, two.receipt, 25);
    CHECK(two && settled.answer.denied() && settled.first && settled.rest == 5);
    CHECK(tokens.peek_at(20s, "k").denied() && tokens.peek_at(21s, "k"));
}

TEST(by_the_tables_clock) {
    const table tokens(100, {"10/day", "5/day"});
    const auto ten = tokens.take("k", 10);
    CHECK(ten && tokens.settle_in_full(ten.receipt, 4).given_back == 6);
    const auto six = tokens.take("k", 6);
    CHECK(six && tokens.settle(six.receipt, 0) && tokens.admit("k", 5));
    const auto other = tokens.take({"k", policy_id(1)}, 5);
    CHECK(other && tokens.settle(other.receipt, 1).given_back >= 3 && tokens.admit({"k", policy_id(1)}, 3));
}

TEST(what_is_no_receipt) {
    const table tokens(100, {"1/h burst 10"}), stranger(100, {"1/h burst 10"});
    CHECK(tokens.take_at(10s, "k", 11).answer.never() && tokens.take_at(10s, "k", std::uint64_t(1) << 56).answer.error() == errc::receipt);
    CHECK(tokens.take({"k", policy_id(9)}, 1).answer.error() == errc::no_such_policy);
    const auto ten = tokens.take_at(10s, "k", 10);
    receipt damaged = ten.receipt;
    damaged.words[1] ^= 1;
    const auto refused = tokens.settle_at(10s, damaged, 0);
    CHECK(!refused && refused.answer.error() == errc::receipt && !refused.first && refused.given_back == 0);
    CHECK(stranger.settle_at(10s, ten.receipt, 0).answer.error() == errc::receipt);
    // A refused request has a receipt of zeros.
    const auto none = tokens.take_at(10s, "k", 1);
    CHECK(none.answer.denied() && none.receipt.words[0] == 0 && none.receipt.words[3] == 0);
    CHECK(tokens.settle_at(10s, none.receipt, 0).answer.error() == errc::receipt);
    CHECK(tokens.admit_at(10s, "k").denied() && tokens.settle_at(10s, ten.receipt, 0) && tokens.admit_at(10s, "k", 10));
}

// A process takes the estimate, and another one that has the table's file settles it.
TEST(a_receipt_of_another_process) {
    char directory[] = "/dev/shm/tollbar-receipts-XXXXXX";
    CHECK(::mkdtemp(directory) != nullptr);
    const std::string path = std::string(directory) + "/table";
    int ends[2];
    CHECK(::pipe(ends) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const table tokens = table::open(path.c_str(), 100, {"10/day"});
        const auto ten = tokens.take("k", 10);
        const bool sent = ten && ::write(ends[1], &ten.receipt, sizeof(receipt)) == sizeof(receipt);
        ::_exit(sent ? 0 : 1);
    }
    int status = 1;
    CHECK(::waitpid(child, &status, 0) == child && status == 0);
    receipt got = {};
    CHECK(::read(ends[0], &got, sizeof got) == sizeof got);
    const table tokens = table::open(path.c_str());
    CHECK(!tokens.admit("k") && tokens.settle(got, 4).given_back >= 5 && tokens.admit("k", 5) &&
        !tokens.settle(got, 0).first);
    ::close(ends[0]);
    ::close(ends[1]);
    ::unlink(path.c_str());
    ::rmdir(directory);
}
