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

/// Nanoseconds for C. Negative durations and NaN become 0, and durations above 292 years become 292
/// years.
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

/// Nanoseconds from C. A time that is too long for std::chrono becomes its longest.
constexpr nanoseconds from_c(std::uint64_t ns) noexcept {
    constexpr auto longest = static_cast<std::uint64_t>(nanoseconds::max().count());
    return nanoseconds(static_cast<std::int64_t>(ns < longest ? ns : longest));
}

/// Nanoseconds from C. TOLLBAR_NO_TIME becomes an empty optional.
constexpr std::optional<nanoseconds> if_any(std::uint64_t ns) noexcept {
    if (ns == TOLLBAR_NO_TIME)
        return std::nullopt;
    return from_c(ns);
}

} // namespace detail

/// The clocks that calls without `_at` read. Limiters and tables count nanoseconds of UTC since
/// 2025-03-13 (limiter::now, table::now). The function now() below counts from the machine's start.
enum class clock_source : std::uint32_t {
    /// The processor's counter on CLOCK_MONOTONIC's scale. If the processor or the kernel does not
    /// trust the counter, CLOCK_MONOTONIC itself.
    tsc = TOLLBAR_CLOCK_TSC,
    monotonic = TOLLBAR_CLOCK_MONOTONIC,
    /// CLOCK_MONOTONIC_COARSE: cheap, in steps of the kernel's tick (1 to 10 ms).
    coarse = TOLLBAR_CLOCK_COARSE,
    /// CLOCK_REALTIME in Unix nanoseconds. It steps when somebody sets the system's clock.
    wall = TOLLBAR_CLOCK_WALL,
};

/// The time of a call that ends in `_at`: nanoseconds since the zero of any one clock, up to the
/// policy's last time (spec::last_time). A policy admits nothing at later times. Times before zero
/// become zero. A duration and any std::chrono time point convert to an instant. All callers of a
/// limiter or table must use one scale: its own now(), or one other clock.
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

/// Nanoseconds since the machine's start by that clock, or since 1970 by clock_source::wall. 0 for
/// an unknown clock.
inline nanoseconds now(clock_source clock = clock_source::tsc) noexcept {
    std::uint64_t ns = 0;
    tollbar_clock_now(static_cast<std::uint32_t>(clock), &ns);
    return detail::from_c(ns);
}

/// Whether clock_source::tsc reads the processor's counter. Otherwise it reads CLOCK_MONOTONIC.
inline bool clock_is_counter() noexcept { return tollbar_clock_is_counter() == 1; }

/// A view of an array that owns nothing: the part of std::span that this library needs, for C++17.
/// A pointer with a number, an array, and every type with data() and size(), such as std::span,
/// convert to it.
template <class T> class span {
public:
    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <std::size_t N> constexpr span(T (&array)[N]) noexcept : data_(array), size_(N) {}
    // An element may become const, and convert in no other way: an array of a derived class is no
    // array of its base.
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
    /// Not now. Nothing has been charged.
    denied,
    /// Never: the cost is above the burst.
    never,
    /// The call failed. verdict::error() says why.
    failed,
};

/// The reason of a decision. A later version of the library may have more reasons.
enum class reason : std::uint32_t {
    /// The limit had the permits: the usual reason of an allowed request.
    admitted = TOLLBAR_REASON_ADMITTED,
    /// Denied: the permits are spent. They come back with time, or never if the limit is 0.
    rate = TOLLBAR_REASON_RATE,
    /// Never: the cost is above the burst.
    burst = TOLLBAR_REASON_BURST,
    /// The table has no free slot for a new key. on_full::deny denies the request, and
    /// on_full::allow allows it without storing the key.
    table_full = TOLLBAR_REASON_TABLE_FULL,
    /// Denied: a new key inherits the debt of the key whose slot it needs (on_full::inherit), and
    /// that debt is too high.
    inherited_debt = TOLLBAR_REASON_INHERITED_DEBT,
    /// The request had an empty key. The table's options say whether such requests pass.
    missing_key = TOLLBAR_REASON_MISSING_KEY,
    /// Allowed and not charged: the key is exempt.
    exempt = TOLLBAR_REASON_EXEMPT,
    /// Denied: the permits would have come within the caller's patience, but the maximum number of
    /// callers sleeps already.
    queue_full = TOLLBAR_REASON_QUEUE_FULL,
    /// Denied: the state is damaged. C calls return an error instead.
    fault = TOLLBAR_REASON_FAULT,
    /// Denied for now: the client has asked the store, and the store has not answered yet.
    pending = TOLLBAR_REASON_PENDING,
    /// Denied: by the store's last answer the limit is used up.
    store_denied = TOLLBAR_REASON_STORE_DENIED,
    /// The store does not answer: the options of the lease decided.
    store_down = TOLLBAR_REASON_STORE_DOWN,
    /// Denied: the key is banned (the policy's option `ban`). For a cost of 1 retry_after() is the
    /// end of the ban.
    banned = TOLLBAR_REASON_BANNED,
    /// Denied: as many permits as the limit are in flight. They come back when their holders
    /// release them, so no wait is known.
    in_flight = TOLLBAR_REASON_IN_FLIGHT,
    /// Denied or never: the request's class leaves permits to others. Without the reserve the
    /// request would have passed.
    reserve = TOLLBAR_REASON_RESERVE,
};

/// A reason in a few English words. The string is static.
inline const char *name(reason why) noexcept { return tollbar_strreason(static_cast<std::uint32_t>(why)); }

/// Whether a request may pass. True if the call admitted and charged it, false otherwise, also
/// after an error, so `if (limiter.check())` fails closed. A verdict is one int32_t. Batches write
/// arrays of verdicts.
class [[nodiscard]] verdict {
public:
    /// A default verdict is a refusal.
    constexpr verdict() noexcept = default;
    /// From the result of a C call.
    constexpr explicit verdict(std::int32_t code) noexcept : code_(code) {}

    constexpr explicit operator bool() const noexcept { return allowed(); }
    constexpr bool allowed() const noexcept { return code_ == TOLLBAR_ALLOWED; }
    constexpr bool denied() const noexcept { return code_ == TOLLBAR_DENIED; }
    constexpr bool never() const noexcept { return code_ == TOLLBAR_NEVER; }
    constexpr bool failed() const noexcept { return code_ < 0; }
    constexpr outcome kind() const noexcept {
        return failed() ? outcome::failed : allowed() ? outcome::allowed : denied() ? outcome::denied : outcome::never;
    }

    /// The error if the call failed. Otherwise it is empty, and false.
    std::error_code error() const noexcept {
        return failed() ? make_error_code(static_cast<errc>(code_)) : std::error_code();
    }
    /// One line in English. The string is static.
    const char *message() const noexcept { return tollbar_strerror(code_); }
    /// The name of the result's macro in tollbar.h. The string is static.
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

/// A decision with its times and its reason. It costs more than the verdict alone (check, admit).
class [[nodiscard]] decision {
public:
    /// A default decision is a refusal, as a default verdict is.
    decision() noexcept = default;
    constexpr explicit operator bool() const noexcept { return answer().allowed(); }
    constexpr bool allowed() const noexcept { return answer().allowed(); }
    constexpr bool denied() const noexcept { return answer().denied(); }
    constexpr bool never() const noexcept { return answer().never(); }
    constexpr bool failed() const noexcept { return answer().failed(); }
    constexpr outcome kind() const noexcept { return answer().kind(); }
    std::error_code error() const noexcept { return answer().error(); }
    constexpr verdict answer() const noexcept { return verdict(code_); }

    /// The reason. reason::fault if the call failed.
    constexpr tollbar::reason why() const noexcept { return static_cast<tollbar::reason>(raw_.reason); }
    /// Permits that could be taken at this instant, after this decision. 0 if the call failed.
    constexpr std::uint64_t remaining() const noexcept { return raw_.remaining; }
    /// The time until the same request would be admitted if no other request came first. 0 if the
    /// request was admitted. Empty if no wait would help, or if the call failed.
    constexpr std::optional<nanoseconds> retry_after() const noexcept { return detail::if_any(raw_.retry_after_ns); }
    /// The time until the state is as good as fresh if no other request comes first. 0 if the call
    /// failed.
    constexpr nanoseconds reset_after() const noexcept { return detail::from_c(raw_.reset_after_ns); }
    /// Which policy of a list bound, from 0: of a refusal the one with the longest wait, and of an
    /// admission the one with the fewest permits left. 0 without a list.
    constexpr std::uint32_t bound() const noexcept { return raw_.bound; }
    /// The C struct.
    constexpr const tollbar_decision &get() const noexcept { return raw_; }

    /// Makes a C call: `call(tollbar_decision *)` returns its int32_t.
    template <class Call> static decision of(const Call &call) noexcept {
        decision made;
        made.code_ = call(&made.raw_);
        return made;
    }

private:
    // A call that fails writes nothing, so these values stay.
    tollbar_decision raw_ = {static_cast<std::uint32_t>(sizeof(tollbar_decision)), TOLLBAR_DENIED, 0, TOLLBAR_NO_TIME, 0,
                             TOLLBAR_REASON_FAULT, 0};
    std::int32_t code_ = TOLLBAR_DENIED;
};

/// The result of take_up_to. True if it took any permits.
struct [[nodiscard]] taken {
    /// Allowed, denied (no permit was left), or an error.
    verdict answer;
    /// The number of permits taken.
    std::uint64_t permits = 0;

    constexpr explicit operator bool() const noexcept { return answer.allowed(); }
};

/// The result of a charge. True if the call charged all of the cost.
struct [[nodiscard]] charged {
    /// Allowed, denied (the state had no room for all), or an error.
    verdict answer;
    /// The number of permits that the call did not charge. If the call failed, it charged none, and
    /// this is 0.
    std::uint64_t rest = 0;

    constexpr explicit operator bool() const noexcept { return answer.allowed(); }
};

/// The result of reserve_at. True if it booked the permits.
struct [[nodiscard]] reservation {
    /// Allowed, denied (the wait would exceed the patience, or the algorithm cannot book ahead),
    /// never, or an error.
    verdict answer;
    /// The time from the call's time to the instant at which the caller must act. 0 if the call
    /// booked nothing.
    nanoseconds wait{0};
    /// That instant, on the scale of the call's time.
    nanoseconds departs{0};
    /// The permits that were charged: those asked for, or 0 where no key was charged (an exempt or
    /// empty key, and a new key that a full table admits without storing it).
    std::uint64_t cost = 0;

    constexpr explicit operator bool() const noexcept { return answer.allowed(); }

    /// The C struct. It is plain data, and another process may cancel by it.
    tollbar_reservation get() const noexcept {
        return {static_cast<std::uint64_t>(departs.count()), static_cast<std::uint64_t>(wait.count()), cost};
    }

    /// Of a C call: `call(tollbar_reservation *)` returns its int32_t.
    template <class Call> static reservation of(const Call &call) noexcept {
        tollbar_reservation raw = {0, 0, 0};
        reservation booked;
        booked.answer = verdict(call(&raw));
        booked.wait = detail::from_c(raw.wait_ns);
        booked.departs = detail::from_c(raw.departs_ns);
        booked.cost = raw.cost;
        return booked;
    }
};

namespace detail {

/// The array to which a C call writes the results of a batch. A verdict is one int32_t.
inline std::int32_t *codes(span<verdict> results) noexcept {
    return reinterpret_cast<std::int32_t *>(results.data());
}

} // namespace detail

/// Decisions by verdict: `allowed`, `denied` and `never`.
using decision_counts = tollbar_counts;

} // namespace tollbar

#endif // TOLLBAR_DECISION_HPP
