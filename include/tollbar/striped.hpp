/* tollbar/striped.hpp: one limit that every thread asks for all the time. Part of tollbar.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_STRIPED_HPP
#define TOLLBAR_STRIPED_HPP

#include <cstdint>
#include <memory>

#include "decision.hpp"
#include "error.hpp"
#include "policy.hpp"

namespace tollbar {

/// One limit whose threads take permits in advance, and decide most requests on a cache line of their own without the clock.
/// The bound is the policy's; up to an eighth of the burst is set aside for it (tollbar_striped in tollbar.h). gcra only.
///
///     tollbar::striped all("5000000/s burst 100000");
///     if (!all.check())
///         return too_many_requests();
class striped {
public:
    /// Of a policy, which may be a text. Throws policy_error for a text, error for numbers that are out of range.
    explicit striped(const spec &of, clock_source clock = clock_source::tsc) : striped(try_make(of, clock).value()) {}
    static result<striped> try_make(const spec &of, clock_source clock = clock_source::tsc) noexcept {
        return detail::made<striped, tollbar_striped>(
            [&](auto **out) { return tollbar_striped_new(of.get(), static_cast<std::uint32_t>(clock), out); });
    }
    template <class Text, detail::if_text<Text> = 0>
    static result<striped> try_make(const Text &text, clock_source clock = clock_source::tsc) noexcept {
        const result<spec> parsed = spec::try_parse(text);
        if (!parsed)
            return parsed.why();
        return try_make(*parsed, clock);
    }

    /// Takes `cost` permits now. A cost of 0 asks without charging.
    verdict check(std::uint64_t cost = 1) const noexcept { return verdict(tollbar_striped_check(get(), cost, nullptr)); }
    /// The same at the caller's time. A limiter is either always called with the caller's time or on the scale of its clock
    /// (tollbar::now).
    verdict check_at(instant now, std::uint64_t cost = 1) const noexcept {
        return verdict(tollbar_striped_check_at(get(), cost, now.get(), nullptr));
    }
    /// As check, with the answer in full, for which the clock is read each time.
    decision decide(std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) { return tollbar_striped_check(get(), cost, out); });
    }
    decision decide_at(instant now, std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) { return tollbar_striped_check_at(get(), cost, now.get(), out); });
    }

    /// The permits that this thread could take, one by one: what is left to all, and what it has in advance.
    std::uint64_t available() const { return try_available().value(); }
    result<std::uint64_t> try_available() const noexcept {
        std::uint64_t permits = 0;
        const std::int32_t code = tollbar_striped_available(get(), &permits);
        return detail::done(code, permits);
    }
    std::uint64_t available_at(instant now) const { return try_available_at(now).value(); }
    result<std::uint64_t> try_available_at(instant now) const noexcept {
        std::uint64_t permits = 0;
        const std::int32_t code = tollbar_striped_available_at(get(), now.get(), &permits);
        return detail::done(code, permits);
    }

    /// Decisions since the limiter was made, by verdict, of all threads; reset() leaves them.
    decision_counts counts() const { return try_counts().value(); }
    result<decision_counts> try_counts() const noexcept {
        auto raw = detail::blank<tollbar_counts>();
        const std::int32_t code = tollbar_striped_get_counts(get(), &raw);
        return detail::done(code, raw);
    }

    /// Back to fresh, but for what threads have in advance.
    void reset() const { try_reset().value(); }
    result<void> try_reset() const noexcept { return detail::done(tollbar_striped_reset(get())); }

    /// Takes over what tollbar_striped_new made.
    static striped adopt(tollbar_striped *made) noexcept { return striped(handle(made)); }
    tollbar_striped *get() const noexcept { return handle_.get(); }
    /// Gives the handle away, to be ended with tollbar_striped_free.
    [[nodiscard]] tollbar_striped *release() noexcept { return handle_.release(); }
    /// Whether it holds a limiter, which it does until it is moved from.
    explicit operator bool() const noexcept { return handle_ != nullptr; }

private:
    struct deleter {
        void operator()(tollbar_striped *made) const noexcept { tollbar_striped_free(made); }
    };
    using handle = std::unique_ptr<tollbar_striped, deleter>;
    explicit striped(handle made) noexcept : handle_(std::move(made)) {}

    handle handle_;
};

} // namespace tollbar

#endif // TOLLBAR_STRIPED_HPP
