// Errors and results, specs, compiled policies and cells.
#include "test.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif

#include "tollbar.hpp"

using namespace std::chrono_literals;
using tollbar::errc;
using tollbar::spec;

// Copies and conversions that must not compile.
static_assert(!std::is_copy_constructible_v<tollbar::policy> && !std::is_copy_assignable_v<tollbar::policy>);
static_assert(!std::is_copy_constructible_v<tollbar::cell> && !std::is_copy_assignable_v<tollbar::cell>);
static_assert(std::is_nothrow_move_constructible_v<tollbar::policy> && std::is_nothrow_move_assignable_v<tollbar::policy>);
static_assert(!std::is_convertible_v<tollbar::verdict, bool> && std::is_constructible_v<bool, tollbar::verdict>);
static_assert(!std::is_convertible_v<tollbar::decision, bool> && !std::is_convertible_v<tollbar::policy, bool>);
static_assert(!std::is_convertible_v<int, tollbar::verdict> && !std::is_convertible_v<int, tollbar::policy_id>);
static_assert(!std::is_convertible_v<const char *, tollbar::policy>);
static_assert(std::is_base_of_v<std::runtime_error, tollbar::error>);
static_assert(noexcept(std::declval<const tollbar::policy &>().admit(std::declval<tollbar::cell &>())));
static_assert(noexcept(spec::try_parse("")) && !noexcept(spec("")));
static_assert(sizeof(tollbar::cell) == 8 && sizeof(tollbar::verdict) == 4);

// An array of derived classes is not one of bases.
static_assert(!std::is_convertible_v<std::vector<tollbar::cell> &, tollbar::span<tollbar_cell>>);
static_assert(!std::is_convertible_v<const std::vector<int> &, tollbar::span<int>>);
static_assert(std::is_convertible_v<std::vector<int> &, tollbar::span<const int>>);
#if __cplusplus >= 202002L
static_assert(std::is_convertible_v<std::span<const int>, tollbar::span<const int>>);
static_assert(!std::is_convertible_v<std::span<const int>, tollbar::span<int>>);
#endif

TEST(a_quota_is_forever) {
    const auto quota = tollbar::spec::forever(500);
    CHECK(quota.text() == "500/forever" && quota == tollbar::spec("500/forever"));
    CHECK(quota.period() == std::chrono::nanoseconds::max());
    CHECK(tollbar::limiter(quota).admit(501).never());
}

TEST(curves_and_bands_are_made_of_numbers) {
    using namespace std::chrono_literals;
    const auto curve = tollbar::spec(100, 60s).with_curve({{50, 80}, {100, 100}});
    CHECK(curve.text() == "100/min curve 0:0 50%:80% 100%:100%" && curve == tollbar::spec(curve.text()));
    CHECK(tollbar::spec(100, 60s).with_curve({}).text() == "100/min curve linear");
    const auto bucket = tollbar::spec(100, 1s).with_burst(200).with_bands({{0, 50}, {50, 100}});
    CHECK(bucket.text() == "100/s burst 200 refill 0:50% 50%:100%" && bucket == tollbar::spec(bucket.text()));
    CHECK(tollbar::spec(100, 60s).with_curve({{12.34, 56.7}, {100, 100}}).text() == "100/min curve 0:0 12.34%:56.7% 100%:100%");
    CHECK(tollbar::spec(100, 60s).with_curve({{-1, 50}, {100, 100}}).try_validate().why().code == errc::knots);
    CHECK(bucket.with_bands({{1, 50}}).try_validate().why().code == errc::knots);
}

TEST(s54_a_curve_follows_a_function) {
    tollbar_curve_fit fit{};
    fit.struct_size = sizeof fit;
    const double power = 3;
    const auto made = spec::curve(1'000'000, 60s, [&](double time) { return std::pow(time, power); }, &fit);
    CHECK(fit.error > 0 && fit.error < 0.001 && made == spec(made.text()));
    const tollbar::limiter limiter(made);
    for (int n = 1; n < 100; n++) {
        const double has = static_cast<double>(limiter.peek_at(1h + n * 600ms, 0).remaining());
        CHECK(std::fabs(has / 1e6 - std::pow(n / 100.0, power)) < 0.001);
    }
    CHECK(limiter.take_up_to_at(1h + 60s - 1ns, 2'000'000).permits == 1'000'000);
    const auto falls = spec::try_curve(100, 60s, [](double time) { return time < 0.5 ? 0.4 : time / 2; }, &fit);
    CHECK(!falls && falls.why().code == errc::knots && fit.time == 0.5 && fit.value == 0.25);
    bool thrown = false;
    try {
        (void)spec::curve(100, 60s, [](double) -> double { throw 7; });
    } catch (int seven) {
        thrown = seven == 7;
    }
    CHECK(thrown);
}

TEST(a_calendar_has_the_windows_of_its_zone) {
    const auto month = tollbar::spec::calendar(1000, TOLLBAR_MONTH);
    CHECK(month.text() == "1000/month" && month == tollbar::spec("1000/month"));
    CHECK(tollbar::limiter::try_make(month).why().code == tollbar::errc::wall_clock);
}

TEST(a_version_and_an_abi) {
    CHECK(tollbar::version() == TOLLBAR_VERSION_STRING);
    CHECK(tollbar::version_number() == TOLLBAR_VERSION);
    CHECK(tollbar::abi() == 1);
}

TEST(codes_are_of_one_category) {
    const std::error_code code = errc::syntax;
    CHECK(code == errc::syntax && code != errc::number_too_large);
    CHECK(code.category() == tollbar::error_category());
    CHECK(std::string(code.category().name()) == "tollbar");
    CHECK(code.message() == tollbar_strerror(TOLLBAR_E_SYNTAX));
    CHECK(std::string(tollbar::name_of(errc::log_too_large)) == "TOLLBAR_E_LOG_TOO_LARGE");
}

TEST(a_bad_text_names_its_column) {
    CHECK_THROWS(tollbar::policy_error, spec("100/x"), e, e.column() == 5 && e.code() == errc::syntax &&
                 std::string(e.what()).find("column 5: expected ") != std::string::npos &&
                 std::string(e.what()).find(e.expected()) != std::string::npos);
    CHECK_THROWS(tollbar::error, tollbar::policy("5/s burst 0"), e, e.code() == errc::burst_zero && e.why().column != 0);
    const auto parsed = spec::try_parse("5/s algo nonsense");
    CHECK(!parsed && !parsed.has_value() && parsed.error() == errc::algorithm);
    CHECK(parsed.why().column == 10 && parsed.why().expected != nullptr && parsed.why().system == 0);
    CHECK_THROWS(tollbar::policy_error, parsed.value(), e, e.column() == 10);
    CHECK_THROWS(tollbar::policy_error, *parsed, e, e.column() == 10);
    CHECK_THROWS(tollbar::policy_error, parsed->limit(), e, e.column() == 10);
}

TEST(m6_a_spec_tells_its_worst_case) {
    CHECK(spec("120/min").worst_case(1min) == 239);
    CHECK(*spec("120/min").try_worst_case(1h) == 7319);
    CHECK(spec(0, 0s).try_worst_case(1s).error() == errc::period_zero);
}

TEST(c3_a_spec_tells_its_last_time) {
    const auto last = tollbar::nanoseconds((std::int64_t(1) << 61) - 2);
    CHECK(spec("5/min").last_time() == last);
    CHECK(*spec("15000000000/s burst 1").try_last_time() < last);
    CHECK(spec(0, 0s).try_last_time().error() == errc::period_zero);
    CHECK_THROWS(tollbar::error, spec(0, 0s).last_time(), e, e.code() == errc::period_zero);
    CHECK(spec("5/min").refill() == 12s);
    CHECK(!spec("5/min borrow").refill());
    CHECK(spec(0, 0s).try_refill().error() == errc::period_zero);
}

TEST(a_text_may_be_any_string) {
    const char *const null = nullptr;
    CHECK(!spec::try_parse(null) && spec::try_parse(null).why().column == 1);
    CHECK(!spec::try_parse(std::string_view()) && !spec::try_parse(""));
    CHECK(spec(std::string("5/s")) == spec(std::string_view("5/sec", 3)) && spec("5/s") == spec(std::string_view("5/s")));
    // A NUL is a byte like any other, and not the end.
    CHECK(spec::try_parse(std::string("5/s\0", 4)).why().column == 4);
}

TEST(results_hold_or_throw) {
    auto held = spec::try_parse("5/s");
    CHECK(held && held.has_value() && !held.error() && held->limit() == 5 && (*held).limit() == 5);
    CHECK(spec::try_parse("5/s").value().limit() == 5 && (*spec::try_parse("6/s")).limit() == 6);
    held.value() = spec("7/s");
    CHECK(held->limit() == 7);
    tollbar::result<void> done;
    CHECK(done && !done.error());
    done.value();
    done = tollbar::failure{errc::open, ENOENT};
    CHECK(!done && done.error() == errc::open && done.why().system == ENOENT);
    CHECK_THROWS(tollbar::error, done.value(), e, e.code() == errc::open && e.why().system == ENOENT &&
                 std::string(e.what()).find(std::generic_category().message(ENOENT)) != std::string::npos);
}

TEST(specs_of_numbers_are_those_of_texts) {
    using tollbar::algorithm;
    CHECK(spec(100, 1s) == spec("100/s"));
    CHECK(spec(100, 1s).with_burst(20) == spec("100/s burst 20"));
    CHECK(spec(10, 1s).with_second(1000, 24h) == spec("10/s; 1000/day"));
    CHECK(spec(10, 100ms).with_burst(20).with_init(0) == spec("10/100ms burst 20 init 0"));
    CHECK(spec(10, 1s).with_borrow() == spec("10/s borrow"));
    CHECK(spec(3, 1min, algorithm::interval).with_anchor(tollbar::anchor::first) == spec("3/min algo interval anchor first"));
    CHECK(spec(3, 1min).with_algorithm(algorithm::fixed_window).with_count_rejected() ==
          spec("3/min algo fixed-window count rejected"));
    CHECK(spec(120, 1min, algorithm::sliding_window).with_segments(6, tollbar::window_mode::strict) ==
          spec("120/60s algo sliding-window segments 6 mode strict"));
    CHECK(spec(5, 1s, algorithm::pacer).with_slack(2) == spec("5/s algo pacer slack 2"));
    CHECK(spec(5, 1s, algorithm::warm_up).with_warm_up(2s, 3) == spec("5/s algo warm-up warm 2s cold 3"));
    CHECK(spec(5, 1s, algorithm::weighted_window) == spec("5/s algo weighted-window"));
    CHECK(spec(5, 1s, algorithm::sliding_log) == spec("5/s algo sliding-log"));
    CHECK(spec(250, 1s).with_unit(tollbar::unit::bytes) == spec("250/s unit bytes"));
    CHECK(spec(5, 1s) != spec("6/s"));
    CHECK(!tollbar::limiter(spec(0, 1s)).admit());
    const spec read("100/2s burst 20 algo gcra");
    CHECK(read.limit() == 100 && read.period() == 2s && read.burst() == 20 && read.algorithm() == algorithm::gcra);
    CHECK(read.text() == "100/2s burst 20" && spec(read.text()) == read && spec(*read.get()) == read);
}

TEST(a_spec_that_is_wrong_is_refused_when_used) {
    const spec none(5, 0s);
    CHECK(none.try_validate().error() == errc::period_zero && spec("5/s").try_validate());
    CHECK_THROWS(tollbar::error, none.validate(), e, e.code() == errc::period_zero);
    CHECK_THROWS(tollbar::error, none.text(), e, e.code() == errc::period_zero);
    CHECK(none.try_text().error() == errc::period_zero);
    CHECK(tollbar::policy::try_make(none).error() == errc::period_zero);
    CHECK(spec(5, -1s).try_validate().error() == errc::period_zero);
    CHECK(spec(5, 1s).with_slack(1).try_validate().error() == errc::option_mismatch);
}

TEST(durations_saturate) {
    using namespace std::chrono;
    using tollbar::detail::saturated;
    constexpr auto most = static_cast<std::uint64_t>(nanoseconds::max().count());
    CHECK(saturated(hours::max()) == most && saturated(nanoseconds::max()) == most);
    CHECK(saturated(hours::min()) == 0 && saturated(-1ns) == 0);
    CHECK(saturated(duration<std::int32_t>(7)) == 7'000'000'000u && saturated(duration<std::uint64_t>(UINT64_MAX)) == most);
    CHECK(saturated(duration<std::int64_t, std::pico>(INT64_MAX)) == 9'223'372'036'854'775u);
    CHECK(saturated(duration<double>(0.5)) == 500'000'000 && saturated(duration<double>(1e300)) == most);
    CHECK(saturated(duration<double>(std::numeric_limits<double>::quiet_NaN())) == 0);
    CHECK(saturated(duration<double>(std::numeric_limits<double>::infinity())) == most);
    CHECK(saturated(duration<float>(1e30f)) == most && saturated(duration<float>(2.0f)) == 2'000'000'000u);
    CHECK(tollbar::instant(steady_clock::time_point(5s)).since_zero() == 5s && tollbar::instant(5ms).get() == 5'000'000);
    CHECK(tollbar::detail::from_c(UINT64_MAX) == nanoseconds::max());
    CHECK(!tollbar::detail::if_any(TOLLBAR_NO_TIME) && *tollbar::detail::if_any(3) == 3ns);
}

TEST(clocks_share_a_scale) {
    using tollbar::clock_source;
    const auto before = std::chrono::steady_clock::now().time_since_epoch() - 1s;
    for (const auto clock : {clock_source::tsc, clock_source::monotonic, clock_source::coarse})
        CHECK(tollbar::now(clock) > before && tollbar::now(clock) < before + 60s);
    const auto date = std::chrono::system_clock::now().time_since_epoch() - 1s;
    CHECK(tollbar::now(clock_source::wall) > date && tollbar::now(clock_source::wall) < date + 60s);
    CHECK(tollbar::now(static_cast<clock_source>(9)) == 0ns);
    CHECK(tollbar::clock_is_counter() == (tollbar_clock_is_counter() == 1));
}

TEST(verdicts_say_what_they_are) {
    using tollbar::outcome;
    using tollbar::verdict;
    CHECK(!verdict() && verdict().denied());
    const struct {
        std::int32_t code;
        outcome kind;
    } rows[] = {{TOLLBAR_ALLOWED, outcome::allowed}, {TOLLBAR_DENIED, outcome::denied},
                {TOLLBAR_NEVER, outcome::never},     {TOLLBAR_E_NULL, outcome::failed}};
    for (const auto &row : rows) {
        const verdict said(row.code);
        CHECK(said.kind() == row.kind && said.get() == row.code && said == verdict(row.code) && said != verdict(-99));
        CHECK(static_cast<bool>(said) == (row.kind == outcome::allowed) && said.allowed() == static_cast<bool>(said));
        CHECK(said.denied() == (row.kind == outcome::denied) && said.never() == (row.kind == outcome::never));
        CHECK(said.failed() == (row.kind == outcome::failed) && static_cast<bool>(said.error()) == said.failed());
        CHECK(std::string(said.name()) == tollbar_errname(row.code) && std::string(said.message()) == tollbar_strerror(row.code));
    }
    CHECK(verdict(TOLLBAR_E_NULL).error() == errc::null);
}

TEST(a_cell_is_stepped) {
    const tollbar::policy policy("3/min");
    tollbar::cell cell;
    for (int i = 0; i < 3; i++)
        CHECK(policy.admit_at(1h, cell));
    const auto refused = policy.check_at(1h, cell);
    CHECK(!refused && refused.denied() && refused.remaining() == 0 && refused.retry_after() == 20s);
    CHECK(refused.reset_after() == 1min && refused.answer().denied() && refused.kind() == tollbar::outcome::denied);
    CHECK(refused.get().verdict == TOLLBAR_DENIED && refused.get().retry_after_ns == 20'000'000'000u && !refused.error());
    const auto never = policy.check_at(1h, cell, 4);
    CHECK(!never && never.never() && !never.retry_after());
    CHECK(policy.peek_at(1h + 20s, cell) && policy.peek_at(1h + 20s, cell).remaining() == 1);
    CHECK(policy.take_up_to_at(1h + 40s, cell, 9).permits == 2 && !policy.take_up_to_at(1h + 40s, cell, 9));
    cell.reset();
    CHECK(cell.word == 0 && policy.admit(cell) && policy.check(cell, 2) && !policy.admit(cell, 0).failed() &&
        !policy.admit(cell));
    // A cell of C, wherever it lies.
    tollbar_cell plain = TOLLBAR_CELL_INIT;
    CHECK(policy.admit_at(1h, plain, 3) && !policy.admit_at(1h, plain));
}

TEST(cells_are_stepped_in_batches) {
    const tollbar::policy policy("1/min");
    std::vector<tollbar::cell> cells(3);
    std::array<tollbar::verdict, 4> results;
    CHECK(policy.admit_at(1h, cells[1]));
    CHECK(policy.admit_many_at(1h, cells, results));
    CHECK(results[0] && !results[1] && results[2] && !results[3]);
    tollbar::verdict few[2];
    CHECK(policy.admit_many_at(2h, cells, few).error() == errc::buffer_too_small && policy.admit_at(2h, cells[0]));
    tollbar_cell plain[2] = {};
    CHECK(policy.admit_many_at(2h, plain, few) && few[0] && few[1]);
    CHECK(policy.admit_many_at(2h, tollbar::span<tollbar::cell>(), few));
    CHECK(policy.admit_many_at(2h, plain, few, 2) && few[0].never());
#if __cplusplus >= 202002L
    CHECK(policy.admit_many_at(3h, std::span(cells), std::span(results)));
#endif
}

TEST(policies_move) {
    tollbar::policy first("1/min"), second("2/min");
    const tollbar_policy *const handle = first.get();
    tollbar::policy moved = std::move(first);
    tollbar::cell cell;
    CHECK(moved && moved.get() == handle && moved.admit_at(1h, cell));
    // A moved-from policy answers with errc::null. The test uses it on purpose.
    CHECK(!first && first.get() == nullptr && first.admit(cell).error() == errc::null);
    CHECK(first.check_at(1h, cell).failed() && !first.check(cell).retry_after() && first.check(cell).remaining() == 0);
    CHECK(first.peek_at(1h, cell).error() == errc::null && first.take_up_to_at(1h, cell, 1).answer.failed());
    tollbar::verdict one[1];
    CHECK(first.admit_many_at(1h, tollbar::span<tollbar::cell>(&cell, 1), one).error() == errc::null);
    second = std::move(moved);
    CHECK(second.get() == handle && !moved);
    auto adopted = tollbar::policy::adopt(second.release());
    CHECK(!second && adopted.get() == handle);
}

TEST(policies_are_one_word) {
    CHECK(tollbar::policy::try_make("5/s algo sliding-log").error() == errc::not_one_word);
    CHECK_THROWS(tollbar::error, tollbar::policy("5/s algo sliding-window"), e, e.code() == errc::not_one_word);
    CHECK(tollbar::policy::try_make("5/").why().column == 3 && tollbar::policy::try_make("5/s"));
}

TEST(a_policy_in_memory_of_the_callers) {
    void *const memory = std::aligned_alloc(64, 1024);
    CHECK(tollbar::policy::size() <= 1024 && tollbar::policy::align() <= 64);
    {
        auto placed = tollbar::policy::init_in(memory, 1024, "1/min");
        tollbar::cell cell;
        CHECK(static_cast<const void *>(placed.get()) == memory && placed.admit_at(1h, cell) &&
            !placed.admit_at(1h, cell));
        const tollbar::policy moved = std::move(placed);
        CHECK(moved && !placed);
    }
    CHECK(tollbar::policy::try_init_in(memory, 1, "1/min").error() == errc::buffer_too_small);
    CHECK(tollbar::policy::try_init_in(nullptr, 1024, "1/min").error() == errc::null);
    CHECK_THROWS(tollbar::error, tollbar::policy::init_in(memory, 1, "1/min"), e, e.code() == errc::buffer_too_small);
    std::free(memory);
}
