/* tollbar/limiter.hpp: one limit, any algorithm, with a clock. Part of tollbar.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_LIMITER_HPP
#define TOLLBAR_LIMITER_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>

#include "decision.hpp"
#include "error.hpp"
#include "policy.hpp"

namespace tollbar {

/// The options of a new limiter.
struct limiter_options {
    /// The clock that calls without `_at` read.
    clock_source clock = clock_source::tsc;
    /// The maximum number of callers that sleep in wait() at one time. wait() refuses further
    /// callers at once. 0 means 1024.
    std::uint32_t waiters = 0;
    /// Whether threads take permits of a gcra policy in advance. If many threads check one limiter,
    /// checks are faster. Up to an eighth of the burst may be refused early (TOLLBAR_CREDIT_ON in
    /// tollbar.h).
    bool credit = false;
};

/// A limiter's state, for people and metrics.
struct limiter_state {
    /// The number of callers asleep in wait().
    std::uint32_t waiting;
    /// The time of this state by the limiter's clock.
    nanoseconds now;
    /// Permits that could be taken at that time.
    std::uint64_t remaining;
    /// The time until one permit can be taken. 0 if one can be taken now, empty if none ever can.
    std::optional<nanoseconds> retry_after;
    /// The time until the state is as good as fresh.
    nanoseconds reset_after;
    /// Requests whose time was older than that of a request admitted before.
    std::uint64_t backward_steps;
    /// Decisions of all threads, by verdict, since the limiter was made. reset() leaves them.
    std::uint64_t allowed;
    std::uint64_t denied;
    std::uint64_t never;
};

/// One limit that any number of threads share. Its state is of any algorithm and has a cache line
/// of its own.
///
///     tollbar::limiter uploads("100/s burst 20");
///     if (!uploads.check())
///         return too_many_requests();
class limiter {
public:
    /// From a policy, which may be a text. Throws policy_error for a text, and error for numbers
    /// that are out of range.
    explicit limiter(const spec &of, const limiter_options &options = {}) : limiter(try_make(of, options).value()) {}
    static result<limiter> try_make(const spec &of, const limiter_options &options = {}) noexcept {
        const tollbar_limiter_options raw = for_c(options);
        return detail::made<limiter, tollbar_limiter>(
            [&](auto **out) { return tollbar_limiter_new(of.get(), &raw, out); });
    }
    template <class Text, detail::if_text<Text> = 0>
    static result<limiter> try_make(const Text &text, const limiter_options &options = {}) noexcept {
        const result<spec> parsed = spec::try_parse(text);
        if (!parsed)
            return parsed.why();
        return try_make(*parsed, options);
    }

    /// Makes a limiter in the caller's memory of `size` bytes (at least size(), aligned to
    /// align()), which must outlive the limiter. For a sliding window or a sliding log the call
    /// allocates an array. For other algorithms it allocates nothing.
    static limiter init_in(void *memory, std::size_t size, const spec &of, const limiter_options &options = {}) {
        return try_init_in(memory, size, of, options).value();
    }
    static result<limiter> try_init_in(void *memory, std::size_t size, const spec &of,
                                       const limiter_options &options = {}) noexcept {
        tollbar_limiter *made = nullptr;
        const tollbar_limiter_options raw = for_c(options);
        const std::int32_t code = tollbar_limiter_init_in(memory, size, of.get(), &raw, &made);
        if (code != 0)
            return detail::failed(code);
        return limiter(handle(made, deleter{true}));
    }
    static std::size_t size() noexcept { return tollbar_limiter_size(); }
    static std::size_t align() noexcept { return tollbar_limiter_align(); }

    /// The time that calls without `_at` read, in nanoseconds of UTC since 2025-03-13. With
    /// clock_source::wall it is Unix time.
    nanoseconds now() const { return try_now().value(); }
    result<nanoseconds> try_now() const noexcept {
        std::uint64_t ns = 0;
        const std::int32_t code = tollbar_limiter_now(get(), &ns);
        return detail::done(code, detail::from_c(ns));
    }

    /// Takes `cost` permits now. A cost of 0 asks without charging.
    decision check(std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) { return tollbar_limiter_check(get(), cost, out); });
    }
    /// The same at the caller's time: on the scale of now(), or another that all callers of this
    /// limiter share.
    decision check_at(instant now, std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) { return tollbar_limiter_check_at(get(), cost, now.get(), out); });
    }
    /// check that returns the verdict alone, which is faster.
    verdict admit(std::uint64_t cost = 1) const noexcept { return verdict(tollbar_limiter_check(get(), cost,
        nullptr)); }
    verdict admit_at(instant now, std::uint64_t cost = 1) const noexcept {
        return verdict(tollbar_limiter_check_at(get(), cost, now.get(), nullptr));
    }
    /// check for a request of a class of the policy ("100/s reserve low 20 high 0"), given by its
    /// name, or by its number: "1" for the first one. It passes only if the class's reserve is left
    /// after it. errc::no_such_class if the policy has no such class.
    decision check_class(const char *class_name, std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) { return tollbar_limiter_check_class(get(), cost, class_name, out); });
    }
    decision check_class_at(instant now, const char *class_name, std::uint64_t cost = 1) const noexcept {
        return decision::of(
            [&](auto *out) { return tollbar_limiter_check_class_at(get(), cost, class_name, now.get(), out); });
    }
    /// check for a request of a lower class: it passes only if at least `reserve` permits are left
    /// after it. tollbar.h ("Classes") has the policies that keep no reserve; their decision is
    /// errc::option_mismatch.
    decision check_leaving(std::uint64_t reserve, std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) { return tollbar_limiter_check_leaving(get(), cost, reserve, out); });
    }
    decision check_leaving_at(instant now, std::uint64_t reserve, std::uint64_t cost = 1) const noexcept {
        return decision::of(
            [&](auto *out) { return tollbar_limiter_check_leaving_at(get(), cost, reserve, now.get(), out); });
    }
    /// Returns what check would return, and changes nothing.
    decision peek(std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) { return tollbar_limiter_peek(get(), cost, out); });
    }
    decision peek_at(instant now, std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) { return tollbar_limiter_peek_at(get(), cost, now.get(), out); });
    }

    /// Decides on one request for each of the costs, in turn, with one reading of the clock.
    /// results[i] is the verdict for costs[i]. With fewer results than costs the call charges
    /// nothing and returns errc::buffer_too_small.
    result<void> admit_many(span<const std::uint64_t> costs, span<verdict> results) const noexcept {
        if (results.size() < costs.size())
            return failure{errc::buffer_too_small};
        return many(costs.data(), costs.size(), results);
    }
    result<void> admit_many_at(instant now, span<const std::uint64_t> costs, span<verdict> results) const noexcept {
        if (results.size() < costs.size())
            return failure{errc::buffer_too_small};
        return many_at(now, costs.data(), costs.size(), results);
    }
    /// Decides on one request of cost 1 for each of the results.
    result<void> admit_many(span<verdict> results) const noexcept { return many(nullptr, results.size(), results); }
    result<void> admit_many_at(instant now, span<verdict> results) const noexcept {
        return many_at(now, nullptr, results.size(), results);
    }

    /// Takes all permits that are left, `most` at the most.
    taken take_up_to(std::uint64_t most) const noexcept {
        taken got;
        got.answer = verdict(tollbar_limiter_take_up_to(get(), most, &got.permits));
        return got;
    }
    taken take_up_to_at(instant now, std::uint64_t most) const noexcept {
        taken got;
        got.answer = verdict(tollbar_limiter_take_up_to_at(get(), most, now.get(), &got.permits));
        return got;
    }

    /// Charges `cost` permits without a decision, for work that was admitted before and whose cost,
    /// or failure, is known only now. The limiter refuses later requests until the debt is paid.
    /// tollbar.h ("Charges afterwards, and bans") says how far each algorithm goes into debt.
    charged charge(std::uint64_t cost = 1) const noexcept {
        charged done;
        done.answer = verdict(tollbar_limiter_charge(get(), cost, &done.rest));
        return done;
    }
    charged charge_at(instant now, std::uint64_t cost = 1) const noexcept {
        charged done;
        done.answer = verdict(tollbar_limiter_charge_at(get(), cost, now.get(), &done.rest));
        return done;
    }

    /// Takes `cost` permits, and sleeps up to `patience` until they may be used. Callers get them
    /// in the order in which they came. If the wait would be longer, the call refuses at once and
    /// charges nothing. No lock is held during the sleep.
    template <class Rep, class Period>
    decision wait(const std::chrono::duration<Rep, Period> &patience, std::uint64_t cost = 1) const noexcept {
        return decision::of(
            [&](auto *out) { return tollbar_limiter_wait(get(), cost, detail::saturated(patience), out); });
    }
    /// Takes `cost` permits ahead of time. If the result is allowed, the caller must act after
    /// `wait`, and not before. Denied if that wait would be longer than `patience`, or if the
    /// algorithm cannot book ahead.
    template <class Rep, class Period>
    reservation reserve(const std::chrono::duration<Rep, Period> &patience, std::uint64_t cost = 1) const noexcept {
        return reservation::of(
            [&](auto *out) { return tollbar_limiter_reserve(get(), cost, detail::saturated(patience), out); });
    }
    /// The same at the caller's time: the wait counts from `now`.
    template <class Rep, class Period>
    reservation reserve_at(instant now, const std::chrono::duration<Rep, Period> &patience,
                           std::uint64_t cost = 1) const noexcept {
        return reservation::of([&](auto *out) {
            return tollbar_limiter_reserve_at(get(), cost, detail::saturated(patience), now.get(), out);
        });
    }

    /// Gives back the permits of a reservation that the caller does not use, and returns how many
    /// came back. The last reservation comes back whole, and of an earlier one mostly nothing,
    /// because the callers behind it keep their times. Cancel once.
    std::uint64_t cancel(const reservation &booked) const { return try_cancel(booked).value(); }
    result<std::uint64_t> try_cancel(const reservation &booked) const noexcept {
        const tollbar_reservation raw = booked.get();
        std::uint64_t back = 0;
        return detail::done(tollbar_limiter_cancel(get(), &raw, &back), back);
    }
    std::uint64_t cancel_at(instant now, const reservation &booked) const { return try_cancel_at(now, booked).value(); }
    result<std::uint64_t> try_cancel_at(instant now, const reservation &booked) const noexcept {
        const tollbar_reservation raw = booked.get();
        std::uint64_t back = 0;
        return detail::done(tollbar_limiter_cancel_at(get(), &raw, now.get(), &back), back);
    }

    /// Changes the policy while other threads use the limiter. `keep`, a TOLLBAR_KEEP_ number, says
    /// what it keeps: its permits, the time until its debt is paid, or nothing.
    /// errc::policy_changes after 4,096 policies, and errc::option_mismatch for a limiter with
    /// credit; then the policy stays as it was.
    void set_policy(const spec &to, std::uint32_t keep = TOLLBAR_KEEP_COUNT) const { try_set_policy(to, keep).value(); }
    result<void> try_set_policy(const spec &to, std::uint32_t keep = TOLLBAR_KEEP_COUNT) const noexcept {
        return detail::done(tollbar_limiter_set_policy(get(), to.get(), keep));
    }
    /// set_policy at the caller's time, for a limiter that is asked at the caller's time.
    void set_policy_at(instant now, const spec &to, std::uint32_t keep = TOLLBAR_KEEP_COUNT) const {
        try_set_policy_at(now, to, keep).value();
    }
    result<void> try_set_policy_at(instant now, const spec &to, std::uint32_t keep = TOLLBAR_KEEP_COUNT) const noexcept {
        return detail::done(tollbar_limiter_set_policy_at(get(), to.get(), keep, now.get()));
    }

    /// Makes the state fresh and ends a ban. Other calls may run at the same time, and admissions
    /// in the same instant may survive the reset.
    void reset() const { try_reset().value(); }
    result<void> try_reset() const noexcept { return detail::done(tollbar_limiter_reset(get())); }

    /// The state at the current time. It takes nothing.
    limiter_state state() const { return try_state().value(); }
    result<limiter_state> try_state() const noexcept {
        auto raw = detail::blank<tollbar_limiter_state>();
        const std::int32_t code = tollbar_limiter_get_state(get(), &raw);
        return detail::done(code, limiter_state{raw.waiting, detail::from_c(raw.now_ns), raw.remaining,
                                                detail::if_any(raw.retry_after_ns), detail::from_c(raw.reset_after_ns),
                                                raw.backward_steps, raw.allowed, raw.denied, raw.never});
    }

    /// The limiter's policy.
    spec policy() const { return try_policy().value(); }
    result<spec> try_policy() const noexcept {
        auto raw = detail::blank<tollbar_policy_spec>();
        const std::int32_t code = tollbar_limiter_get_policy(get(), &raw);
        return detail::done(code, spec(raw));
    }

    /// Takes the handle of tollbar_limiter_new into ownership.
    static limiter adopt(tollbar_limiter *made) noexcept { return limiter(handle(made, deleter{false})); }
    tollbar_limiter *get() const noexcept { return handle_.get(); }
    /// Gives up the handle. The caller ends it with tollbar_limiter_free, or with
    /// tollbar_limiter_close if it lies in the caller's memory.
    [[nodiscard]] tollbar_limiter *release() noexcept { return handle_.release(); }
    /// Whether this object holds a limiter. It does until it is moved from.
    explicit operator bool() const noexcept { return handle_ != nullptr; }

private:
    struct deleter {
        bool of_the_caller;
        void operator()(tollbar_limiter *made) const noexcept {
            if (of_the_caller)
                tollbar_limiter_close(made);
            else
                tollbar_limiter_free(made);
        }
    };
    using handle = std::unique_ptr<tollbar_limiter, deleter>;
    explicit limiter(handle made) noexcept : handle_(std::move(made)) {}

    static tollbar_limiter_options for_c(const limiter_options &options) noexcept {
        auto raw = detail::blank<tollbar_limiter_options>();
        raw.clock = static_cast<std::uint32_t>(options.clock);
        raw.waiters = options.waiters;
        raw.credit = options.credit ? TOLLBAR_CREDIT_ON : TOLLBAR_CREDIT_OFF;
        return raw;
    }

    result<void> many(const std::uint64_t *costs, std::size_t count, span<verdict> results) const noexcept {
        return detail::done(tollbar_limiter_check_many(get(), costs, count, detail::codes(results)));
    }
    result<void> many_at(instant now, const std::uint64_t *costs, std::size_t count,
                         span<verdict> results) const noexcept {
        return detail::done(tollbar_limiter_check_many_at(get(), costs, count, now.get(), detail::codes(results)));
    }

    handle handle_;
};

} // namespace tollbar

#endif // TOLLBAR_LIMITER_HPP
