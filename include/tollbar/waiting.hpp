/* tollbar/waiting.hpp: waits that hold no thread, for event loops and coroutines. Part of tollbar.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_WAITING_HPP
#define TOLLBAR_WAITING_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#if defined(__cpp_impl_coroutine) && __cpp_impl_coroutine >= 201902L
#include <coroutine>
#endif

#include "decision.hpp"
#include "key.hpp"
#include "limiter.hpp"
#include "table.hpp"

namespace tollbar {

namespace detail {

/// What a waiter asks: a limiter, or one key of a table, whose bytes it copies.
class one_limiter {
public:
    explicit one_limiter(const limiter &of) noexcept : of_(&of) {}
    decision check(std::uint64_t cost) const noexcept { return of_->check(cost); }
    decision peek(std::uint64_t cost) const noexcept { return of_->peek(cost); }
    reservation reserve(nanoseconds patience, std::uint64_t cost) const noexcept { return of_->reserve(patience, cost); }
    void cancel(const reservation &booked) const noexcept { (void)of_->try_cancel(booked); }

private:
    const limiter *of_;
};
class one_key {
public:
    one_key(const table &of, const key &with)
        : of_(&of), bytes_(with.size() == 0 ? "" : static_cast<const char *>(with.data()), with.size()),
          policy_(with.policy()) {}
    decision check(std::uint64_t cost) const noexcept { return of_->check(view(), cost); }
    decision peek(std::uint64_t cost) const noexcept { return of_->peek(view(), cost); }
    reservation reserve(nanoseconds patience, std::uint64_t cost) const noexcept {
        return of_->reserve(view(), patience, cost);
    }
    void cancel(const reservation &booked) const noexcept { (void)of_->try_cancel(view(), booked); }

private:
    key view() const noexcept { return key(bytes_.data(), bytes_.size(), policy_); }

    const table *of_;
    std::string bytes_;
    policy_id policy_;
};

} // namespace detail

/// A caller that waits for `cost` permits of a limiter or of a key, for `patience` at most, and sleeps
/// by what its program has for that:
///
///     tollbar::waiter caller(limiter, 2s);
///     while (const auto pause = caller.pause())
///         co_await sleep(*pause); // or a timer of an event loop
///     if (caller.answer())
///         send();
///
/// Its permits are booked while it sleeps, so the callers depart in the order of their bookings; those
/// of a sliding window or log, which book nothing, ask again when a permit may be there. A waiter that
/// is destroyed before its end gives its booking back, as far as cancel does. The limiter or table must
/// outlive it. One waiter serves one thread at a time.
template <class Target> class waiter {
public:
    explicit waiter(const limiter &of, nanoseconds patience = nanoseconds::max(), std::uint64_t cost = 1) noexcept
        : target_(of), cost_(cost), patience_(patience) {}
    waiter(const table &of, const key &with, nanoseconds patience = nanoseconds::max(), std::uint64_t cost = 1)
        : target_(of, with), cost_(cost), patience_(patience) {}
    waiter(Target of, nanoseconds patience, std::uint64_t cost) : target_(std::move(of)), cost_(cost), patience_(patience) {}
    waiter(const waiter &) = delete;
    waiter &operator=(const waiter &) = delete;
    ~waiter() {
        if (booked_)
            target_.cancel(booked_);
    }

    /// How long to sleep before the next call. Empty once the answer is there, which is at once if the
    /// permits are, or if they would come later than the caller waits.
    std::optional<nanoseconds> pause() noexcept {
        if (done_)
            return std::nullopt;
        const auto now = clock::now();
        if (booked_) {
            // A timer may be early.
            if (now < departs_)
                return std::chrono::duration_cast<nanoseconds>(departs_ - now);
            return finish(depart());
        }
        const nanoseconds left = patience_ - std::chrono::duration_cast<nanoseconds>(now - began_);
        const decision made = target_.check(cost_);
        const auto wait = made.retry_after();
        if (!made.denied() || !wait || *wait > left)
            return finish(made);
        booked_ = target_.reserve(left, cost_);
        if (!booked_)
            return std::max(*wait, nanoseconds(1));
        departs_ = clock::now() + booked_.wait;
        return booked_.wait > nanoseconds::zero() ? std::optional(booked_.wait) : finish(depart());
    }

    /// The decision once pause() has returned nothing, and until then a refusal.
    const decision &answer() const noexcept { return answer_; }

private:
    using clock = std::chrono::steady_clock;

    decision depart() noexcept {
        booked_ = reservation();
        // The permits are the caller's. A peek for none of them says how many are left.
        return target_.peek(0);
    }
    std::optional<nanoseconds> finish(const decision &made) noexcept {
        answer_ = made;
        done_ = true;
        return std::nullopt;
    }

    Target target_;
    std::uint64_t cost_;
    nanoseconds patience_;
    clock::time_point began_ = clock::now();
    clock::time_point departs_;
    reservation booked_;
    decision answer_;
    bool done_ = false;
};

waiter(const limiter &, nanoseconds = nanoseconds::max(), std::uint64_t = 1) -> waiter<detail::one_limiter>;
waiter(const table &, const key &, nanoseconds = nanoseconds::max(), std::uint64_t = 1) -> waiter<detail::one_key>;

#if defined(__cpp_impl_coroutine) && __cpp_impl_coroutine >= 201902L

/// What until_ready returns. A coroutine awaits it once.
template <class Target, class Sleep> class ready {
public:
    ready(Target of, Sleep sleep, nanoseconds patience, std::uint64_t cost)
        : caller_(std::move(of), patience, cost), sleep_(std::move(sleep)) {}
    ready(const ready &) = delete;
    ready &operator=(const ready &) = delete;
    ~ready() {
        if (link_ != nullptr)
            link_->of = nullptr;
    }

    bool await_ready() noexcept {
        pause_ = caller_.pause();
        return !pause_;
    }
    void await_suspend(std::coroutine_handle<> waits) {
        link_ = std::make_shared<link>(link{this, waits});
        rest(link_, sleep_, *pause_);
    }
    decision await_resume() const noexcept { return caller_.answer(); }

private:
    /// What a timer has of this object: nothing once the object is gone.
    struct link {
        ready *of;
        std::coroutine_handle<> waits;
    };

    // The timer may fire on another thread, and end the coroutine and this object, before the call of
    // sleep has returned. So all that the call uses is a copy.
    static void rest(std::shared_ptr<link> to, Sleep sleep, nanoseconds pause) {
        sleep(pause, [to, sleep] {
            if (to->of == nullptr)
                return;
            if (const auto more = to->of->caller_.pause())
                rest(to, sleep, *more);
            else
                to->waits.resume();
        });
    }

    waiter<Target> caller_;
    Sleep sleep_;
    std::optional<nanoseconds> pause_;
    std::shared_ptr<link> link_;
};

/// Takes permits, and suspends the coroutine until they are there. The decision is a refusal if they
/// would come later than `patience`.
///
///     if (const auto made = co_await tollbar::until_ready(limiter, sleep, 2s))
///         send();
///
/// (GCC 12 compiles a wrong program of `if (co_await …)` for any awaitable with a destructor.)
///
/// `sleep(nanoseconds, resume)` is the program's: it calls `resume()` once after that time, on any
/// thread, and the coroutine goes on there. It is copied. A coroutine that is destroyed while it waits
/// gives its booking back; a timer that fires afterwards does nothing, and must not fire meanwhile.
template <class Sleep>
ready<detail::one_limiter, Sleep> until_ready(const limiter &of, Sleep sleep, nanoseconds patience = nanoseconds::max(),
                                              std::uint64_t cost = 1) {
    return {detail::one_limiter(of), std::move(sleep), patience, cost};
}
/// The same for a key, whose bytes are copied.
template <class Sleep>
ready<detail::one_key, Sleep> until_ready(const table &of, const key &with, Sleep sleep,
                                          nanoseconds patience = nanoseconds::max(), std::uint64_t cost = 1) {
    return {detail::one_key(of, with), std::move(sleep), patience, cost};
}

#endif // coroutines

} // namespace tollbar

#endif // TOLLBAR_WAITING_HPP
