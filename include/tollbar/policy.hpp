/* tollbar/policy.hpp: policies as data, compiled policies, and cells. Part of tollbar.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_POLICY_HPP
#define TOLLBAR_POLICY_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

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

/// What a permit is; it changes the text form only.
enum class unit : std::uint32_t { permits = TOLLBAR_UNIT_PERMITS, bytes = TOLLBAR_UNIT_BYTES };

/// A policy as plain data: what limiters, tables and compiled policies are made of. Of a text,
///
///     tollbar::spec uploads = "250mb/s burst 1gb unit bytes";
///
/// or of numbers; each with_ gives a copy that differs in one thing:
///
///     auto uploads = tollbar::spec(100, 1s).with_burst(20);
///
/// Numbers are not looked at until something is made of the spec, or validate() is called. The grammar and the
/// meaning of all options are in tollbar.h, section 1.
class spec {
public:
    /// Of one line of text. Throws policy_error, which knows the column. Implicit, so that a text may stand
    /// wherever a policy is asked for.
    template <class Text, detail::if_text<Text> = 0> spec(const Text &text) : spec(try_parse(text).value()) {}

    /// `limit` permits per period, of any algorithm that takes no more than that; its burst is the limit.
    template <class Rep, class Period>
    spec(std::uint64_t limit, const std::chrono::duration<Rep, Period> &period, algorithm algo = algorithm::gcra) noexcept {
        raw_.algorithm = static_cast<std::uint32_t>(algo);
        raw_.limit = limit;
        raw_.period_ns = detail::saturated(period);
        // A limit of 0 denies all, and a burst of 0 is an error.
        raw_.burst = limit == 0 ? 1 : limit;
    }

    /// Of the C struct.
    explicit spec(const tollbar_policy_spec &raw) noexcept : raw_(raw) {}

    template <class Text, detail::if_text<Text> = 0> static result<spec> try_parse(const Text &text) noexcept {
        const std::string_view view = detail::text_of(text);
        auto raw = detail::blank<tollbar_policy_spec>();
        auto error = detail::blank<tollbar_policy_error>();
        // An empty view may have no pointer, which C would take for a missing argument.
        const std::int32_t code = tollbar_policy_spec_parse(view.empty() ? "" : view.data(), view.size(), &raw, &error);
        if (code != 0)
            return failure{static_cast<errc>(code), 0, error.column, error.expected};
        return spec(raw);
    }

    /// Whether a limiter can be made of it; throws the error that making one would.
    void validate() const { try_validate().value(); }
    result<void> try_validate() const noexcept { return detail::done(tollbar_policy_spec_validate(&raw_)); }

    /// The last clock reading at which anything is admitted; throws the error that making a limiter would.
    nanoseconds last_time() const { return try_last_time().value(); }
    result<nanoseconds> try_last_time() const noexcept {
        std::uint64_t last = 0;
        const std::int32_t code = tollbar_policy_spec_last_time(&raw_, &last);
        if (code != 0)
            return detail::failed(code);
        return detail::from_c(last);
    }

    /// The canonical text: of that text an equal spec can be made. Throws if the spec is not valid.
    std::string text() const { return try_text().value(); }
    /// As text(); it still allocates the string.
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
    nanoseconds period() const noexcept { return detail::from_c(raw_.period_ns); }
    std::uint64_t burst() const noexcept { return raw_.burst; }

    [[nodiscard]] spec with_algorithm(tollbar::algorithm algo) const noexcept {
        return with([&](auto &raw) { raw.algorithm = static_cast<std::uint32_t>(algo); });
    }
    /// The most permits at once. Windows and logs: the limit.
    [[nodiscard]] spec with_burst(std::uint64_t permits) const noexcept {
        return with([&](auto &raw) { raw.burst = permits; });
    }
    /// gcra: permits of a fresh state, up to the burst.
    [[nodiscard]] spec with_init(std::uint64_t permits) const noexcept {
        return with([&](auto &raw) { raw.init = permits, raw.flags |= TOLLBAR_POLICY_HAS_INIT; });
    }
    /// gcra: a bucket without debt lets any cost pass, and later requests wait until that cost is refilled.
    [[nodiscard]] spec with_borrow() const noexcept {
        return with([](auto &raw) { raw.flags |= TOLLBAR_POLICY_BORROW; });
    }
    /// gcra, without init and borrow: the refusal number `after` (1 to 1000) bans the key for that time.
    template <class Rep, class Period>
    [[nodiscard]] spec with_ban(const std::chrono::duration<Rep, Period> &time, std::uint32_t after = 1) const noexcept {
        return with([&](auto &raw) { raw.ban_ns = detail::saturated(time), raw.ban_after = after; });
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
    /// Pacer: departures that may follow at once after an idle time.
    [[nodiscard]] spec with_slack(std::uint64_t departures) const noexcept {
        return with([&](auto &raw) { raw.slack = departures; });
    }
    /// Warm-up: the time from cold to warm, and how many times slower it is when cold (1 to 1000).
    template <class Rep, class Period>
    [[nodiscard]] spec with_warm_up(const std::chrono::duration<Rep, Period> &time, std::uint32_t cold) const noexcept {
        return with([&](auto &raw) { raw.warm_up_ns = detail::saturated(time), raw.cold = cold; });
    }
    [[nodiscard]] spec with_unit(unit of) const noexcept {
        return with([&](auto &raw) { raw.unit = static_cast<std::uint32_t>(of); });
    }

    const tollbar_policy_spec *get() const noexcept { return &raw_; }

    /// Whether all numbers are the same.
    friend bool operator==(const spec &a, const spec &b) noexcept {
        static_assert(std::has_unique_object_representations_v<tollbar_policy_spec>, "compared as bytes");
        return std::memcmp(&a.raw_, &b.raw_, sizeof a.raw_) == 0;
    }
    friend bool operator!=(const spec &a, const spec &b) noexcept { return !(a == b); }

private:
    template <class Change> spec with(const Change &change) const noexcept {
        spec copy = *this;
        change(copy.raw_);
        return copy;
    }

    tollbar_policy_spec raw_ = detail::blank<tollbar_policy_spec>();
};

/// A state word of the caller's own: 8 bytes, fresh from the start, stepped by policy::check. Put it where your data
/// is. Not copied, since another thread may be changing it. A tollbar_cell in a C struct or in a mapping (all-zero is
/// fresh) serves wherever a cell does.
struct cell : tollbar_cell {
    constexpr cell() noexcept : tollbar_cell{0} {}
    cell(const cell &) = delete;
    cell &operator=(const cell &) = delete;

    /// Back to fresh. Safe beside other calls; admissions in the same instant may survive it.
    void reset() noexcept { tollbar_cell_reset(this); }
};

static_assert(sizeof(cell) == sizeof(tollbar_cell) && std::is_standard_layout_v<cell>, "an array of cells is C's");

/// A compiled policy, read-only, for any number of cells and threads; for algorithms whose state is one word
/// (errc::not_one_word otherwise). Cells outlive it.
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

    /// Compiles into the caller's memory of `size` bytes (at least size(), aligned to align()), which must outlive
    /// the policy. It holds no pointers and may be copied or mapped.
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
    verdict check(tollbar_cell &state, std::uint64_t cost = 1) const noexcept {
        return verdict(tollbar_cell_check(&state, get(), cost, nullptr));
    }
    /// The same at the caller's time.
    verdict check_at(instant now, tollbar_cell &state, std::uint64_t cost = 1) const noexcept {
        return verdict(tollbar_cell_check_at(&state, get(), cost, now.get(), nullptr));
    }
    /// As check, with the answer in full.
    decision decide(tollbar_cell &state, std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) { return tollbar_cell_check(&state, get(), cost, out); });
    }
    decision decide_at(instant now, tollbar_cell &state, std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) { return tollbar_cell_check_at(&state, get(), cost, now.get(), out); });
    }
    /// What decide_at would answer; changes nothing.
    decision peek_at(instant now, const tollbar_cell &state, std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) { return tollbar_cell_peek_at(&state, get(), cost, now.get(), out); });
    }
    /// Takes as many permits as there are, up to `most`.
    taken take_up_to_at(instant now, tollbar_cell &state, std::uint64_t most) const noexcept {
        taken got;
        got.answer = verdict(tollbar_cell_take_up_to_at(&state, get(), most, now.get(), &got.permits));
        return got;
    }
    /// check_at for each of the cells; results[i] is what cells[i] alone would have been told. errc::buffer_too_small if there
    /// are fewer results than cells; then nothing has been charged.
    result<void> check_many_at(instant now, span<cell> cells, span<verdict> results,
                               std::uint64_t cost = 1) const noexcept {
        return check_many_at(now, span<tollbar_cell>(cells.data(), cells.size()), results, cost);
    }
    result<void> check_many_at(instant now, span<tollbar_cell> cells, span<verdict> results,
                               std::uint64_t cost = 1) const noexcept {
        if (results.size() < cells.size())
            return failure{errc::buffer_too_small};
        return detail::done(tollbar_cell_check_many_at(cells.data(), cells.size(), get(), cost, now.get(),
                                                       detail::codes(results)));
    }

    /// Takes over what tollbar_policy_new made.
    static policy adopt(tollbar_policy *made) noexcept { return policy(handle(made, deleter{false})); }
    const tollbar_policy *get() const noexcept { return handle_.get(); }
    /// Gives the handle away, to be freed with tollbar_policy_free unless it lies in the caller's memory.
    [[nodiscard]] tollbar_policy *release() noexcept { return handle_.release(); }
    /// Whether it holds a policy, which it does until it is moved from.
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
