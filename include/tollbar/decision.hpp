/* tollbar/decision.hpp: times, views of arrays, and what a request is told. Part of tollbar.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_DECISION_HPP
#define TOLLBAR_DECISION_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ratio>
#include <type_traits>

#include "error.hpp"

namespace tollbar {

using std::chrono::nanoseconds;

namespace detail {

/// Nanoseconds for C: 0 for what is negative or not a number, and 292 years for what is longer.
template <class Rep, class Period>
constexpr std::uint64_t saturated(const std::chrono::duration<Rep, Period> &duration) noexcept {
    using wide = std::chrono::duration<std::common_type_t<Rep, std::int64_t>, Period>;
    const wide given(duration);
    if (!(given > wide::zero()))
        return 0;
    // A unit finer than a nanosecond cannot be too long, and its own limit would overflow.
    if constexpr (std::ratio_greater_equal_v<Period, std::nano>) {
        if (given >= std::chrono::duration_cast<wide>(nanoseconds::max()))
            return static_cast<std::uint64_t>(nanoseconds::max().count());
    }
    return static_cast<std::uint64_t>(std::chrono::duration_cast<nanoseconds>(given).count());
}

/// Nanoseconds from C; what std::chrono cannot say is its longest.
constexpr nanoseconds from_c(std::uint64_t ns) noexcept {
    constexpr auto longest = static_cast<std::uint64_t>(nanoseconds::max().count());
    return nanoseconds(static_cast<std::int64_t>(ns < longest ? ns : longest));
}

/// Nanoseconds from C, or none.
constexpr std::optional<nanoseconds> if_any(std::uint64_t ns) noexcept {
    if (ns == TOLLBAR_NO_TIME)
        return std::nullopt;
    return from_c(ns);
}

} // namespace detail

/// The clocks that calls without `_at` read. Limiters and tables count them in UTC since 2025-03-13 (limiter::now, table::now);
/// now() reads them as they are, since the machine's start.
enum class clock_source : std::uint32_t {
    /// The processor's counter on CLOCK_MONOTONIC's scale; CLOCK_MONOTONIC where processor or kernel do not trust the counter.
    tsc = TOLLBAR_CLOCK_TSC,
    monotonic = TOLLBAR_CLOCK_MONOTONIC,
    /// CLOCK_MONOTONIC_COARSE: cheap, in steps of the kernel's tick (1 to 10 ms).
    coarse = TOLLBAR_CLOCK_COARSE,
    /// CLOCK_REALTIME, Unix nanoseconds: it steps when the system's clock is set.
    wall = TOLLBAR_CLOCK_WALL,
};

/// The time of a call that ends in `_at`: nanoseconds since the zero of any one clock, up to the policy's last time
/// (spec::last_time; later times admit nothing). Times before zero are zero. Made of a duration or of any std::chrono time point. One
/// limiter or table takes times of one scale only: of its own now(), or of one clock that all its callers use.
class instant {
public:
    template <class Rep, class Period>
    constexpr instant(const std::chrono::duration<Rep, Period> &since_zero) noexcept
        : ns_(detail::saturated(since_zero)) {}
    template <class Clock, class Duration>
    constexpr instant(const std::chrono::time_point<Clock, Duration> &time) noexcept
        : instant(time.time_since_epoch()) {}

    constexpr nanoseconds since_zero() const noexcept { return detail::from_c(ns_); }
    /// For C calls.
    constexpr std::uint64_t get() const noexcept { return ns_; }

private:
    std::uint64_t ns_;
};

/// Nanoseconds since the machine's start by that clock, since 1970 by clock_source::wall; 0 for a clock that is none.
inline nanoseconds now(clock_source clock = clock_source::tsc) noexcept {
    std::uint64_t ns = 0;
    tollbar_clock_now(static_cast<std::uint32_t>(clock), &ns);
    return detail::from_c(ns);
}

/// Whether clock_source::tsc reads the processor's counter, and not CLOCK_MONOTONIC in its place.
inline bool clock_is_counter() noexcept { return tollbar_clock_is_counter() == 1; }

/// A view of an array: std::span as far as it is needed here, for C++17. Made of a pointer and a number, of an
/// array, and of whatever has data() and size(), std::span among them. It owns nothing.
template <class T> class span {
public:
    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <std::size_t N> constexpr span(T (&array)[N]) noexcept : data_(array), size_(N) {}
    // An element may become const on the way, and nothing else: arrays of derived classes are not arrays of bases.
    template <class Range, class Data = decltype(std::declval<Range &>().data()),
              class = decltype(std::declval<Range &>().size()),
              std::enable_if_t<std::is_convertible_v<std::remove_pointer_t<Data> (*)[], T (*)[]>, int> = 0>
    constexpr span(Range &&range) noexcept : data_(range.data()), size_(range.size()) {}

    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    constexpr T &operator[](std::size_t i) const noexcept { return data_[i]; }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

/// The four kinds of a verdict, for a switch.
enum class outcome {
    /// The request may pass, and its cost has been charged.
    allowed,
    /// Not now; nothing has been charged.
    denied,
    /// Not at any time: the cost is more than the policy can ever have at once.
    never,
    /// The call failed; verdict::error() says how.
    failed,
};

/// Why a request was decided as it was. A later version of the library may have more.
enum class reason : std::uint32_t {
    /// The limit had the permits: the usual reason of an allowed request.
    admitted = TOLLBAR_REASON_ADMITTED,
    /// Denied: the permits are spent and come back with time (with a limit of 0, never).
    rate = TOLLBAR_REASON_RATE,
    /// Never: the cost is above the burst.
    burst = TOLLBAR_REASON_BURST,
    /// The table has no free slot for a new key. Denied with on_full::deny; allowed, and not remembered, with on_full::allow.
    table_full = TOLLBAR_REASON_TABLE_FULL,
    /// Denied: with on_full::inherit a new key took over the debt of the key whose slot it needs.
    inherited_debt = TOLLBAR_REASON_INHERITED_DEBT,
    /// The request had an empty key; the table's options say whether it passes.
    missing_key = TOLLBAR_REASON_MISSING_KEY,
    /// Allowed and not charged: the key is exempt.
    exempt = TOLLBAR_REASON_EXEMPT,
    /// Denied: the permits would have come within the caller's patience, but as many callers as may are asleep already.
    queue_full = TOLLBAR_REASON_QUEUE_FULL,
    /// Denied: the state is damaged. C calls return an error instead.
    fault = TOLLBAR_REASON_FAULT,
    /// Denied for now: the store has been asked and has not answered yet.
    pending = TOLLBAR_REASON_PENDING,
    /// Denied: the store's last answer was that the limit is used up.
    store_denied = TOLLBAR_REASON_STORE_DENIED,
    /// The store does not answer: the options of the lease decided.
    store_down = TOLLBAR_REASON_STORE_DOWN,
    /// Denied: the key is banned (the policy's option `ban`). For a cost of 1 retry_after() is the end of the ban.
    banned = TOLLBAR_REASON_BANNED,
};

/// A reason in a few English words. Static.
inline const char *name(reason why) noexcept { return tollbar_strreason(static_cast<std::uint32_t>(why)); }

/// Whether a request may pass. True if it was admitted and charged, false for everything else, errors among it:
/// `if (limiter.check())` fails closed. It is one int32_t, and an array of them is what batches write.
class [[nodiscard]] verdict {
public:
    /// A decision that no call has made is a refusal.
    constexpr verdict() noexcept = default;
    /// Of what a C call returned.
    constexpr explicit verdict(std::int32_t code) noexcept : code_(code) {}

    constexpr explicit operator bool() const noexcept { return allowed(); }
    constexpr bool allowed() const noexcept { return code_ == TOLLBAR_ALLOWED; }
    constexpr bool denied() const noexcept { return code_ == TOLLBAR_DENIED; }
    constexpr bool never() const noexcept { return code_ == TOLLBAR_NEVER; }
    constexpr bool failed() const noexcept { return code_ < 0; }
    constexpr outcome kind() const noexcept {
        return failed() ? outcome::failed : allowed() ? outcome::allowed : denied() ? outcome::denied : outcome::never;
    }

    /// The error if the call failed; none (false) for every answer.
    std::error_code error() const noexcept {
        return failed() ? make_error_code(static_cast<errc>(code_)) : std::error_code();
    }
    /// One line in English. Static.
    const char *message() const noexcept { return tollbar_strerror(code_); }
    /// The name of its macro in tollbar.h. Static.
    const char *name() const noexcept { return tollbar_errname(code_); }
    /// TOLLBAR_ALLOWED, TOLLBAR_DENIED, TOLLBAR_NEVER, or a negative error.
    constexpr std::int32_t get() const noexcept { return code_; }

    friend constexpr bool operator==(verdict a, verdict b) noexcept { return a.code_ == b.code_; }
    friend constexpr bool operator!=(verdict a, verdict b) noexcept { return a.code_ != b.code_; }

private:
    std::int32_t code_ = TOLLBAR_DENIED;
};

static_assert(sizeof(verdict) == sizeof(std::int32_t) && std::is_standard_layout_v<verdict>,
              "batches write into arrays of verdicts");

/// An answer in full: a verdict, and when to come again. Dearer than the verdict alone (see check and decide).
class [[nodiscard]] decision {
public:
    constexpr explicit operator bool() const noexcept { return answer().allowed(); }
    constexpr bool allowed() const noexcept { return answer().allowed(); }
    constexpr bool denied() const noexcept { return answer().denied(); }
    constexpr bool never() const noexcept { return answer().never(); }
    constexpr bool failed() const noexcept { return answer().failed(); }
    constexpr outcome kind() const noexcept { return answer().kind(); }
    std::error_code error() const noexcept { return answer().error(); }
    constexpr verdict answer() const noexcept { return verdict(code_); }

    /// Why; reason::fault if the call failed.
    constexpr tollbar::reason why() const noexcept { return static_cast<tollbar::reason>(raw_.reason); }
    /// Permits that could be taken at this instant, after this decision; 0 if the call failed.
    constexpr std::uint64_t remaining() const noexcept { return raw_.remaining; }
    /// How long until the same request would be admitted if no other request came between: 0 if it was admitted, empty
    /// if waiting would not help or the call failed.
    constexpr std::optional<nanoseconds> retry_after() const noexcept { return detail::if_any(raw_.retry_after_ns); }
    /// How long until the state is as good as fresh if no other request comes between; 0 if the call failed.
    constexpr nanoseconds reset_after() const noexcept { return detail::from_c(raw_.reset_after_ns); }
    /// The C struct.
    constexpr const tollbar_decision &get() const noexcept { return raw_; }

    /// Of a C call: `call(tollbar_decision *)` returns its int32_t.
    template <class Call> static decision of(const Call &call) noexcept {
        decision made;
        made.code_ = call(&made.raw_);
        return made;
    }

private:
    decision() noexcept = default;

    // What stays if the call fails and writes nothing.
    tollbar_decision raw_ = {static_cast<std::uint32_t>(sizeof(tollbar_decision)), TOLLBAR_DENIED, 0, TOLLBAR_NO_TIME, 0,
                             TOLLBAR_REASON_FAULT, 0};
    std::int32_t code_ = TOLLBAR_DENIED;
};

/// What take_up_to got: true if it is not nothing.
struct [[nodiscard]] taken {
    /// Allowed, denied (nothing is there), or an error.
    verdict answer;
    /// How many permits were taken.
    std::uint64_t permits = 0;

    constexpr explicit operator bool() const noexcept { return answer.allowed(); }
};

/// What became of a charge: true if all of it was charged.
struct [[nodiscard]] charged {
    /// Allowed, denied (the state had no room for all), or an error.
    verdict answer;
    /// How many permits were not charged. If the call failed, none was, and this is 0.
    std::uint64_t rest = 0;

    constexpr explicit operator bool() const noexcept { return answer.allowed(); }
};

/// What reserve_at booked: true if it did.
struct [[nodiscard]] reservation {
    /// Allowed, denied (it does not fit the patience, or cannot be booked ahead), never, or an error.
    verdict answer;
    /// How long after the call's time the caller is bound to act; 0 if nothing was booked.
    nanoseconds wait{0};

    constexpr explicit operator bool() const noexcept { return answer.allowed(); }
};

namespace detail {

/// Where a C call writes the answers to a batch: a verdict is its int32_t.
inline std::int32_t *codes(span<verdict> results) noexcept {
    return reinterpret_cast<std::int32_t *>(results.data());
}

} // namespace detail

/// Decisions by verdict: `allowed`, `denied` and `never`.
using decision_counts = tollbar_counts;

} // namespace tollbar

#endif // TOLLBAR_DECISION_HPP
