/* tollbar/policy.hpp: policies as data, compiled policies, and cells. Part of tollbar.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_POLICY_HPP
#define TOLLBAR_POLICY_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "decision.hpp"
#include "error.hpp"

namespace tollbar {

enum class algorithm : std::uint32_t {
    // [lists: algorithms] written by cargo xtask lists
    gcra = TOLLBAR_ALGORITHM_GCRA,
    interval = TOLLBAR_ALGORITHM_INTERVAL,
    fixed_window = TOLLBAR_ALGORITHM_FIXED_WINDOW,
    weighted_window = TOLLBAR_ALGORITHM_WEIGHTED_WINDOW,
    sliding_window = TOLLBAR_ALGORITHM_SLIDING_WINDOW,
    sliding_log = TOLLBAR_ALGORITHM_SLIDING_LOG,
    pacer = TOLLBAR_ALGORITHM_PACER,
    warm_up = TOLLBAR_ALGORITHM_WARM_UP,
    quota = TOLLBAR_ALGORITHM_QUOTA,
    curve = TOLLBAR_ALGORITHM_CURVE,
    level_refill = TOLLBAR_ALGORITHM_LEVEL_REFILL,
    calendar = TOLLBAR_ALGORITHM_CALENDAR,
    // [lists: end]
};

/// Where windows begin: at time 0 of the clock, or with the first request of a fresh state.
enum class anchor : std::uint32_t { epoch = TOLLBAR_ANCHOR_EPOCH, first = TOLLBAR_ANCHOR_FIRST };

/// How a sliding window counts its oldest part.
enum class window_mode : std::uint32_t {
    n = TOLLBAR_MODE_N,
    strict = TOLLBAR_MODE_STRICT,
    interpolated = TOLLBAR_MODE_INTERPOLATED,
};

/// The unit of permits. It changes the text form only.
enum class unit : std::uint32_t { permits = TOLLBAR_UNIT_PERMITS, bytes = TOLLBAR_UNIT_BYTES };

/// A knot of a curve, in percents with up to two decimals, or a band of a level-dependent refill,
/// in whole percents.
struct knot {
    double first, second;
};

/// A policy as plain data, from which limiters, tables and compiled policies are made. It comes
/// from a text,
///
///     tollbar::spec uploads = "250mb/s burst 1gb unit bytes";
///
/// or from numbers. Each with_ function returns a copy with one field changed:
///
///     auto uploads = tollbar::spec(100, 1s).with_burst(20);
///
/// validate() checks the numbers, and so does every call that makes something of the spec.
/// tollbar.h, section 1, has the grammar and the meaning of all options.
class spec {
public:
    /// From one line of text. Throws policy_error, which has the column of the fault. The
    /// conversion is implicit, so a text can be given wherever a call takes a policy.
    template <class Text, detail::if_text<Text> = 0> spec(const Text &text) : spec(try_parse(text).value()) {}

    /// `limit` permits per period, with a burst of `limit`, of an algorithm that needs no further
    /// option.
    template <class Rep, class Period>
    spec(std::uint64_t limit, const std::chrono::duration<Rep, Period> &period, algorithm algo = algorithm::gcra) noexcept {
        raw_.algorithm = static_cast<std::uint32_t>(algo);
        raw_.limit = limit;
        raw_.period_ns = detail::saturated(period);
        // A limit of 0 denies all, and a burst of 0 is an error.
        raw_.burst = limit == 0 ? 1 : limit;
    }

    /// A quota of `limit` permits, of which none comes back.
    [[nodiscard]] static spec forever(std::uint64_t limit) noexcept {
        spec made(limit, nanoseconds(1), algorithm::quota);
        made.raw_.period_ns = TOLLBAR_FOREVER;
        return made;
    }

    /// A quota of `limit` permits for each day, week, month or year of UTC: TOLLBAR_DAY,
    /// TOLLBAR_WEEK, TOLLBAR_MONTH or TOLLBAR_YEAR. A text says the zone.
    [[nodiscard]] static spec calendar(std::uint64_t limit, std::uint64_t period) noexcept {
        spec made(limit, nanoseconds(1), algorithm::calendar);
        made.raw_.period_ns = period;
        return made;
    }

    /// A curve that follows a function of one's own: `share` gets a time in the slice from 0 to 1
    /// and returns the share of `limit` that has come by then, from 0 to 1. The function does not
    /// fall, and ends at 1. `fit`, unless null, gets how near the curve is, or the place and the
    /// value for which the function is refused (tollbar_policy_spec_curve). Throws policy_error
    /// then, and what `share` throws.
    template <class Rep, class Period, class Share>
    [[nodiscard]] static spec curve(std::uint64_t limit, const std::chrono::duration<Rep, Period> &period, Share &&share,
                                    tollbar_curve_fit *fit = nullptr) {
        return try_curve(limit, period, share, fit).value();
    }
    template <class Rep, class Period, class Share>
    static result<spec> try_curve(std::uint64_t limit, const std::chrono::duration<Rep, Period> &period, Share &&share,
                                  tollbar_curve_fit *fit = nullptr) {
        std::vector<double> shares(TOLLBAR_CURVE_TIMES);
        const double last = static_cast<double>(shares.size() - 1);
        for (std::size_t n = 0; n < shares.size(); n++)
            shares[n] = share(static_cast<double>(n) / last);
        auto raw = detail::blank<tollbar_policy_spec>();
        auto found = detail::blank<tollbar_curve_fit>();
        const std::int32_t code = tollbar_policy_spec_samples(limit, detail::saturated(period), shares.data(), shares.size(), &raw, &found);
        if (fit != nullptr)
            *fit = found;
        if (code != 0)
            return failure{static_cast<errc>(code), 0, 0, found.expected};
        return spec(raw);
    }

    /// From the C struct.
    explicit spec(const tollbar_policy_spec &raw) noexcept : raw_(raw) {}

    template <class Text, detail::if_text<Text> = 0> static result<spec> try_parse(const Text &text) noexcept {
        const std::string_view view = detail::text_of(text);
        auto raw = detail::blank<tollbar_policy_spec>();
        auto error = detail::blank<tollbar_policy_error>();
        // An empty view may have a null pointer, which the C call refuses.
        const std::int32_t code = tollbar_policy_spec_parse(view.empty() ? "" : view.data(), view.size(), &raw, &error);
        if (code != 0)
            return failure{static_cast<errc>(code), 0, error.column, error.expected};
        return spec(raw);
    }

    /// Throws the error that a limiter's constructor would throw for this policy, if any.
    void validate() const { try_validate().value(); }
    result<void> try_validate() const noexcept { return detail::done(tollbar_policy_spec_validate(&raw_)); }

    /// The last time at which the policy admits a request. Throws as validate.
    nanoseconds last_time() const { return try_last_time().value(); }
    result<nanoseconds> try_last_time() const noexcept {
        std::uint64_t last = 0;
        const std::int32_t code = tollbar_policy_spec_last_time(&raw_, &last);
        if (code != 0)
            return detail::failed(code);
        return detail::from_c(last);
    }

    /// The most permits of one key that the policy admits in some half-open window of that length,
    /// by requests that cost 1 and come at the worst times (tollbar_policy_spec_worst_case). Throws
    /// as validate.
    std::uint64_t worst_case(nanoseconds window) const { return try_worst_case(window).value(); }
    result<std::uint64_t> try_worst_case(nanoseconds window) const noexcept {
        std::uint64_t most = 0;
        const std::int32_t code = tollbar_policy_spec_worst_case(&raw_, detail::saturated(window), &most);
        if (code != 0)
            return detail::failed(code);
        return most;
    }

    /// The time in which the policy refills one permit, rounded up. Empty if a table's keys get no
    /// permits back. take_many charges limits in the order of this time. Throws as validate.
    std::optional<nanoseconds> refill() const { return try_refill().value(); }
    result<std::optional<nanoseconds>> try_refill() const noexcept {
        std::uint64_t refill = 0;
        const std::int32_t code = tollbar_policy_spec_refill(&raw_, &refill);
        if (code != 0)
            return detail::failed(code);
        return detail::if_any(refill);
    }

    /// The canonical text, from which an equal spec can be made. Throws if the spec is not valid.
    std::string text() const { return try_text().value(); }
    /// text() with a result in place of exceptions. Only the allocation of the string can throw.
    result<std::string> try_text() const {
        char buffer[TOLLBAR_POLICY_TEXT_MAX];
        std::size_t length = 0;
        const std::int32_t code = tollbar_policy_spec_print(&raw_, buffer, sizeof buffer, &length);
        if (code != 0)
            return detail::failed(code);
        return std::string(buffer, length);
    }

    tollbar::algorithm algorithm() const noexcept { return static_cast<tollbar::algorithm>(raw_.algorithm); }
    std::uint64_t limit() const noexcept { return raw_.limit; }
    /// The longest duration for a quota.
    nanoseconds period() const noexcept { return detail::from_c(raw_.period_ns); }
    std::uint64_t burst() const noexcept { return raw_.burst; }

    [[nodiscard]] spec with_algorithm(tollbar::algorithm algo) const noexcept {
        return with([&](auto &raw) { raw.algorithm = static_cast<std::uint32_t>(algo); });
    }
    /// The most permits that can be taken at once. Windows and logs: the limit.
    [[nodiscard]] spec with_burst(std::uint64_t permits) const noexcept {
        return with([&](auto &raw) { raw.burst = permits; });
    }
    /// gcra: permits of a fresh state, at most the burst.
    [[nodiscard]] spec with_init(std::uint64_t permits) const noexcept {
        return with([&](auto &raw) { raw.init = permits, raw.flags |= TOLLBAR_POLICY_HAS_INIT; });
    }
    /// gcra: a bucket without debt lets any cost pass, and later requests wait until that cost is
    /// refilled.
    [[nodiscard]] spec with_borrow() const noexcept {
        return with([](auto &raw) { raw.flags |= TOLLBAR_POLICY_BORROW; });
    }
    /// gcra, without init and borrow: the refusal number `after` (1 to 1000) bans the key for that
    /// time.
    template <class Rep, class Period>
    [[nodiscard]] spec with_ban(const std::chrono::duration<Rep, Period> &time, std::uint32_t after = 1) const noexcept {
        return with([&](auto &raw) { raw.ban_ns = detail::saturated(time), raw.ban_after = after; });
    }
    /// gcra, without init, borrow and ban: a second bucket of `permits` per period, which a request
    /// needs and charges as well.
    template <class Rep, class Period>
    [[nodiscard]] spec with_second(std::uint64_t permits, const std::chrono::duration<Rep, Period> &period) const noexcept {
        return with([&](auto &raw) {
            raw.second_limit = raw.second_burst = permits;
            raw.second_period_ns = detail::saturated(period);
        });
    }
    /// The algorithm `curve` with up to 64 knots, {time in the slice, share of the limit} in
    /// percents, without {0, 0}. An empty list is a straight line. The named curves come from a
    /// text. Further knots are ignored.
    [[nodiscard]] spec with_curve(std::initializer_list<knot> knots) const noexcept {
        return with_algorithm(tollbar::algorithm::curve).with_knots(knots);
    }
    /// The algorithm `level_refill` with up to 4 bands, {level in percents of the burst, rate in
    /// percents of the policy's}.
    [[nodiscard]] spec with_bands(std::initializer_list<knot> bands) const noexcept {
        return with_algorithm(tollbar::algorithm::level_refill).with_knots(bands);
    }
    /// Fixed window, sliding log: refused requests count too.
    [[nodiscard]] spec with_count_rejected() const noexcept {
        return with([](auto &raw) { raw.flags |= TOLLBAR_POLICY_COUNT_REJECTED; });
    }
    /// Interval, fixed window, sliding window.
    [[nodiscard]] spec with_anchor(anchor where) const noexcept {
        return with([&](auto &raw) { raw.anchor = static_cast<std::uint32_t>(where); });
    }
    /// Sliding window: 1 to 1024 segments.
    [[nodiscard]] spec with_segments(std::uint32_t segments, window_mode mode = window_mode::n) const noexcept {
        return with([&](auto &raw) { raw.segments = segments, raw.mode = static_cast<std::uint32_t>(mode); });
    }
    /// Pacer: the number of departures that may leave at once after an idle time.
    [[nodiscard]] spec with_slack(std::uint64_t departures) const noexcept {
        return with([&](auto &raw) { raw.slack = departures; });
    }
    /// Warm-up: the time from cold to warm, and the factor by which the rate is lower when cold (1
    /// to 1000).
    template <class Rep, class Period>
    [[nodiscard]] spec with_warm_up(const std::chrono::duration<Rep, Period> &time, std::uint32_t cold) const noexcept {
        return with([&](auto &raw) { raw.warm_up_ns = detail::saturated(time), raw.cold = cold; });
    }
    /// gcra without borrow, interval, fixed and weighted window, quota: one more class of requests,
    /// which leave `reserve` permits to the others. Up to four classes, each with its own name of
    /// 15 bytes at most.
    [[nodiscard]] spec with_class(std::string_view name, std::uint64_t reserve) const noexcept {
        return with([&](auto &raw) {
            std::size_t n = 0;
            while (n + 1 < TOLLBAR_CLASSES_MOST && raw.classes[n].name[0] != 0)
                n++;
            tollbar_class &made = raw.classes[n];
            const bool fits = made.name[0] == 0 && name.size() < sizeof made.name;
            made.reserve = reserve;
            std::memcpy(made.name, name.data(), fits ? name.size() : 0);
            // A name without a NUL, which validate() refuses.
            if (!fits)
                std::memset(made.name, '-', sizeof made.name);
        });
    }
    [[nodiscard]] spec with_unit(unit of) const noexcept {
        return with([&](auto &raw) { raw.unit = static_cast<std::uint32_t>(of); });
    }

    const tollbar_policy_spec *get() const noexcept { return &raw_; }

    /// Whether all fields are equal.
    friend bool operator==(const spec &a, const spec &b) noexcept {
        static_assert(std::has_unique_object_representations_v<tollbar_policy_spec>, "compared as bytes");
        return std::memcmp(&a.raw_, &b.raw_, sizeof a.raw_) == 0;
    }
    friend bool operator!=(const spec &a, const spec &b) noexcept { return !(a == b); }

private:
    spec with_knots(std::initializer_list<knot> knots) const noexcept {
        return with([&](auto &raw) {
            std::memset(raw.knots, 0, sizeof raw.knots);
            std::size_t n = 0;
            for (const knot &pair : knots) {
                if (n == sizeof raw.knots / sizeof *raw.knots)
                    break;
                raw.knots[n++] = hundredths(pair.first);
                raw.knots[n++] = hundredths(pair.second);
            }
        });
    }

    /// Hundredths of a percent. validate() refuses those of a number that is no share.
    static std::uint16_t hundredths(double percents) noexcept {
        return percents >= 0 && percents <= 100 ? static_cast<std::uint16_t>(percents * 100 + 0.5) : 0xffff;
    }

    template <class Change> spec with(const Change &change) const noexcept {
        spec copy = *this;
        change(copy.raw_);
        return copy;
    }

    tollbar_policy_spec raw_ = detail::blank<tollbar_policy_spec>();
};

/// A state word of 8 bytes in the caller's own struct. It is fresh from the start, and
/// policy::check changes it. A cell cannot be copied, because another thread may be changing it.
/// Wherever a call takes a cell, a tollbar_cell in a C struct or a mapping (all-zero is fresh)
/// serves as well.
struct cell : tollbar_cell {
    constexpr cell() noexcept : tollbar_cell{0} {}
    cell(const cell &) = delete;
    cell &operator=(const cell &) = delete;

    /// Makes the cell fresh. Other calls may run at the same time, and admissions in the same
    /// instant may survive the reset.
    void reset() noexcept { tollbar_cell_reset(this); }
};

static_assert(sizeof(cell) == sizeof(tollbar_cell) && std::is_standard_layout_v<cell>, "an array of cells is C's");

/// A compiled policy for any number of cells and threads. It is read-only. Its algorithm must have
/// a state of one word, otherwise the constructor throws errc::not_one_word. Cells outlive their
/// policy.
///
///     struct user { tollbar::cell logins; };
///     const tollbar::policy per_user("5/min burst 3");
///     if (!per_user.check(user.logins))
///         return try_later();
class policy {
public:
    explicit policy(const spec &of) : policy(try_make(of).value()) {}
    static result<policy> try_make(const spec &of) noexcept {
        return detail::made<policy, tollbar_policy>([&](auto **out) { return tollbar_policy_new(of.get(), out); });
    }
    template <class Text, detail::if_text<Text> = 0> static result<policy> try_make(const Text &text) noexcept {
        const result<spec> parsed = spec::try_parse(text);
        if (!parsed)
            return parsed.why();
        return try_make(*parsed);
    }

    /// Compiles a policy into the caller's memory of `size` bytes (at least size(), aligned to
    /// align()), which must outlive the policy. The memory holds no pointers and may be copied or
    /// mapped.
    static policy init_in(void *memory, std::size_t size, const spec &of) {
        return try_init_in(memory, size, of).value();
    }
    static result<policy> try_init_in(void *memory, std::size_t size, const spec &of) noexcept {
        tollbar_policy *made = nullptr;
        const std::int32_t code = tollbar_policy_init_in(memory, size, of.get(), &made);
        if (code != 0)
            return detail::failed(code);
        return policy(handle(made, deleter{true}));
    }
    static std::size_t size() noexcept { return tollbar_policy_size(); }
    static std::size_t align() noexcept { return tollbar_policy_align(); }

    /// Takes `cost` permits from the cell now. A cost of 0 asks without charging.
    decision check(tollbar_cell &state, std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) { return tollbar_cell_check(&state, get(), cost, out); });
    }
    /// The same at the caller's time.
    decision check_at(instant now, tollbar_cell &state, std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) { return tollbar_cell_check_at(&state, get(), cost, now.get(), out); });
    }
    /// check that returns the verdict alone, which is faster.
    verdict admit(tollbar_cell &state, std::uint64_t cost = 1) const noexcept {
        return verdict(tollbar_cell_check(&state, get(), cost, nullptr));
    }
    verdict admit_at(instant now, tollbar_cell &state, std::uint64_t cost = 1) const noexcept {
        return verdict(tollbar_cell_check_at(&state, get(), cost, now.get(), nullptr));
    }
    /// Returns what check_at would return, and changes nothing.
    decision peek_at(instant now, const tollbar_cell &state, std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) { return tollbar_cell_peek_at(&state, get(), cost, now.get(), out); });
    }
    /// Takes all permits that are left, `most` at the most.
    taken take_up_to_at(instant now, tollbar_cell &state, std::uint64_t most) const noexcept {
        taken got;
        got.answer = verdict(tollbar_cell_take_up_to_at(&state, get(), most, now.get(), &got.permits));
        return got;
    }
    /// check_at for each of the cells. results[i] is the verdict of cells[i]. With fewer results
    /// than cells the call charges nothing and returns errc::buffer_too_small.
    result<void> admit_many_at(instant now, span<cell> cells, span<verdict> results,
                               std::uint64_t cost = 1) const noexcept {
        return admit_many_at(now, span<tollbar_cell>(cells.data(), cells.size()), results, cost);
    }
    result<void> admit_many_at(instant now, span<tollbar_cell> cells, span<verdict> results,
                               std::uint64_t cost = 1) const noexcept {
        if (results.size() < cells.size())
            return failure{errc::buffer_too_small};
        return detail::done(tollbar_cell_check_many_at(cells.data(), cells.size(), get(), cost, now.get(),
                                                       detail::codes(results)));
    }

    /// Takes the handle of tollbar_policy_new into ownership.
    static policy adopt(tollbar_policy *made) noexcept { return policy(handle(made, deleter{false})); }
    const tollbar_policy *get() const noexcept { return handle_.get(); }
    /// Gives up the handle. The caller frees it with tollbar_policy_free unless it lies in the
    /// caller's memory.
    [[nodiscard]] tollbar_policy *release() noexcept { return handle_.release(); }
    /// Whether this object holds a policy. It does until it is moved from.
    explicit operator bool() const noexcept { return handle_ != nullptr; }

private:
    struct deleter {
        bool of_the_caller;
        void operator()(tollbar_policy *made) const noexcept {
            if (!of_the_caller)
                tollbar_policy_free(made);
        }
    };
    using handle = std::unique_ptr<tollbar_policy, deleter>;
    explicit policy(handle made) noexcept : handle_(std::move(made)) {}

    handle handle_;
};

} // namespace tollbar

#endif // TOLLBAR_POLICY_HPP
