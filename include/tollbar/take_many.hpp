/* tollbar/take_many.hpp: several limits in one request. Part of tollbar.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_TAKE_MANY_HPP
#define TOLLBAR_TAKE_MANY_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <type_traits>

#include "decision.hpp"
#include "error.hpp"
#include "in_flight.hpp"
#include "key.hpp"
#include "limiter.hpp"
#include "table.hpp"

namespace tollbar {

/// One limit of several, and what the request costs there: a limiter, a key of a table, or a permit
/// of a key of an in-flight table. It owns nothing: the limiter, the table and the key's bytes must
/// live until the call returns.
class limit {
public:
    limit(const limiter &of, std::uint64_t cost = 1) noexcept : raw_{of.get(), nullptr, nullptr, 0, cost, 0, 0, nullptr, nullptr, nullptr} {}
    limit(const table &of, const key &with, std::uint64_t cost = 1) noexcept
        : raw_{nullptr, of.get(), with.data(), with.size(), cost, static_cast<std::uint32_t>(with.policy()), 0, nullptr,
               nullptr, nullptr} {}
    /// A permit of the key, of which at most `most` permits are in flight. `into` has no permit,
    /// and gets one if the call admits the request. It must not move before the call returns.
    limit(const in_flight &of, const key &with, std::uint32_t most, permit &into) noexcept
        : raw_{nullptr, nullptr, with.data(), with.size(), 1, 0, most, of.get(), into.place(of.get()), nullptr} {}
    /// This limit for a request of a class of its policy. `class_name` must live until the call
    /// returns.
    [[nodiscard]] limit with_class(const char *class_name) const noexcept {
        limit copy = *this;
        copy.raw_.class_name = class_name;
        return copy;
    }
    const tollbar_limit *get() const noexcept { return &raw_; }

private:
    tollbar_limit raw_;
};

static_assert(sizeof(limit) == sizeof(tollbar_limit) && std::is_standard_layout_v<limit>, "an array of limits is C's");

/// The answer of several limits. True if all of them admitted and charged the request.
class [[nodiscard]] joint_decision {
public:
    constexpr explicit operator bool() const noexcept { return answer().allowed(); }
    constexpr bool allowed() const noexcept { return answer().allowed(); }
    constexpr bool denied() const noexcept { return answer().denied(); }
    constexpr bool never() const noexcept { return answer().never(); }
    constexpr bool failed() const noexcept { return answer().failed(); }
    constexpr outcome kind() const noexcept { return answer().kind(); }
    std::error_code error() const noexcept { return answer().error(); }
    constexpr verdict answer() const noexcept { return verdict(code_); }

    /// The index of the limit that bound: of a refusal the one with the longest wait, of an
    /// admission the one with the fewest permits left.
    constexpr std::size_t bound() const noexcept { return raw_.bound; }
    /// The reason of the limit that bound. reason::fault if the call failed.
    constexpr tollbar::reason why() const noexcept { return static_cast<tollbar::reason>(raw_.reason); }
    /// The smallest number of permits that a limit has left. 0 if the call failed.
    constexpr std::uint64_t remaining() const noexcept { return raw_.remaining; }
    /// The time after which all limits would admit the same request if no other request came first.
    /// 0 if the request was admitted. Empty if no wait would help, or if the call failed.
    constexpr std::optional<nanoseconds> retry_after() const noexcept { return detail::if_any(raw_.retry_after_ns); }
    /// The time until all limits are as good as fresh if no other request comes first. 0 if the
    /// call failed.
    constexpr nanoseconds reset_after() const noexcept { return detail::from_c(raw_.reset_after_ns); }
    /// The C struct.
    constexpr const tollbar_taken &get() const noexcept { return raw_; }

    /// Makes a C call: `call(tollbar_taken *)` returns its int32_t.
    template <class Call> static joint_decision of(const Call &call) noexcept {
        joint_decision made;
        made.code_ = call(&made.raw_);
        return made;
    }

private:
    joint_decision() noexcept = default;

    // A call that fails writes nothing, so these values stay.
    tollbar_taken raw_ = {static_cast<std::uint32_t>(sizeof(tollbar_taken)), TOLLBAR_DENIED, 0, TOLLBAR_NO_TIME, 0,
                          TOLLBAR_REASON_FAULT, 0};
    std::int32_t code_ = TOLLBAR_DENIED;
};

namespace detail {

/// `call(const tollbar_limit *, count, tollbar_decision *, tollbar_taken *)`, and each limit's
/// decision into `each`.
template <class Call> joint_decision taken_by(span<const limit> limits, span<decision> each, const Call &call) noexcept {
    tollbar_decision raw[TOLLBAR_LIMITS_MOST];
    const bool wanted = !each.empty();
    raw[0] = blank<tollbar_decision>();
    const auto taken = joint_decision::of([&](tollbar_taken *out) -> std::int32_t {
        if (wanted && each.size() < limits.size())
            return TOLLBAR_E_BUFFER_TOO_SMALL;
        const auto *first = reinterpret_cast<const tollbar_limit *>(limits.data());
        const std::int32_t code = call(first, limits.size(), wanted ? raw : nullptr, out);
        // A limit here is of a limiter or of a table, so it has neither only if that was moved
        // from.
        if (code == TOLLBAR_E_LIMITS && !limits.empty() && limits.size() <= TOLLBAR_LIMITS_MOST)
            return TOLLBAR_E_NULL;
        return code;
    });
    for (std::size_t i = 0; wanted && !taken.failed() && i < limits.size(); i++)
        each[i] = decision::of([&](tollbar_decision *out) {
            *out = raw[i];
            return static_cast<std::int32_t>(raw[i].verdict);
        });
    return taken;
}

} // namespace detail

/// Takes the cost of each of the limits, 1 to TOLLBAR_LIMITS_MOST of them, or nothing from any.
/// tollbar.h ("Several limits in one request") says what holds beside other calls. Each limit reads
/// its own clock.
///
///     const auto taken = tollbar::take_many({{users, {name, per_second}}, {users, {name, per_day}}, {everybody}});
///     if (!taken)
///         return try_later(names[taken.bound()], taken.retry_after());
///
/// `each`, unless empty, gets what each limit decides, or, of a refused request, would. It has at
/// least as many elements as there are limits; with fewer the call charges nothing and returns
/// errc::buffer_too_small.
inline joint_decision take_many(span<const limit> limits, span<decision> each = {}) noexcept {
    return detail::taken_by(limits, each, tollbar_take_many);
}
inline joint_decision take_many(std::initializer_list<limit> limits, span<decision> each = {}) noexcept {
    return take_many(span<const limit>(limits.begin(), limits.size()), each);
}
/// take_many at the caller's time, which is one of all limits' scales.
inline joint_decision take_many_at(instant now, span<const limit> limits, span<decision> each = {}) noexcept {
    return detail::taken_by(limits, each, [now](auto *first, auto count, auto *decisions, auto *out) {
        return tollbar_take_many_at(first, count, now.get(), decisions, out);
    });
}
inline joint_decision take_many_at(instant now, std::initializer_list<limit> limits, span<decision> each = {}) noexcept {
    return take_many_at(now, span<const limit>(limits.begin(), limits.size()), each);
}

} // namespace tollbar

#endif // TOLLBAR_TAKE_MANY_HPP
