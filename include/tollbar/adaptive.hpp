/* tollbar/adaptive.hpp: limits in flight that follow the latency. Part of tollbar.hpp; experimental.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_ADAPTIVE_HPP
#define TOLLBAR_ADAPTIVE_HPP
#ifdef TOLLBAR_EXPERIMENTAL

#include <cstdint>
#include <optional>

#include "decision.hpp"
#include "error.hpp"
#include "in_flight.hpp"
#include "key.hpp"

namespace tollbar {

/// The outcome of a request.
enum class flight_outcome : std::uint32_t {
    /// It was answered. Its latency counts.
    answered = TOLLBAR_OUTCOME_ANSWERED,
    /// The server refused it, or it timed out.
    dropped = TOLLBAR_OUTCOME_DROPPED,
    /// It says nothing about the server.
    ignored = TOLLBAR_OUTCOME_IGNORED,
};

/// A limit on the requests that a server has at one time, learned from their latency. Its manual is
/// in tollbar.h ("Limits in flight that follow the latency"), and its options are
/// tollbar_adaptive_options.
///
///     tollbar::adaptive server;
///     const auto ticket = server.acquire();
///     if (!ticket)
///         return overloaded();
///     ...
///     server.release(*ticket, tollbar::flight_outcome::answered, latency);
class adaptive {
public:
    using options = tollbar_adaptive_options;
    using state = tollbar_adaptive_state;

    /// Gradient2 with windows of 100 ms. The limit begins at 20, and stays between 1 and 1000.
    static options defaults() noexcept {
        auto made = detail::blank<options>();
        made.algorithm = TOLLBAR_ADAPTIVE_GRADIENT2;
        made.initial = 20;
        made.least = 1;
        made.most = 1000;
        made.window_ns = 100'000'000;
        return made;
    }

    /// Throws errc::out_of_range unless 1 <= least <= initial <= most.
    explicit adaptive(const options &with = defaults()) { detail::done(tollbar_adaptive_init(&raw_, &with)).value(); }
    adaptive(const adaptive &) = delete;
    adaptive &operator=(const adaptive &) = delete;

    /// Takes a permit. Empty if as many permits as the limit are in flight.
    std::optional<tollbar_ticket> acquire() noexcept {
        tollbar_ticket ticket = 0;
        return tollbar_adaptive_acquire(&raw_, &ticket) == TOLLBAR_ALLOWED ? std::optional(ticket) : std::nullopt;
    }
    /// Releases the permit, and the limit learns from the outcome and the latency. False, and
    /// nothing changes, if no permit is in flight.
    bool release(tollbar_ticket ticket, flight_outcome outcome, nanoseconds latency) noexcept {
        return tollbar_adaptive_release(&raw_, ticket, static_cast<std::uint32_t>(outcome), detail::saturated(latency)) == TOLLBAR_ALLOWED;
    }
    /// release at the caller's time. A window ends by this time.
    bool release_at(instant now, tollbar_ticket ticket, flight_outcome outcome, nanoseconds latency) noexcept {
        return tollbar_adaptive_release_at(&raw_, ticket, static_cast<std::uint32_t>(outcome), detail::saturated(latency), now.get())
            == TOLLBAR_ALLOWED;
    }
    /// Takes a permit of a table's key under this limit. The table counts it. Empty if the limit
    /// refuses it or the table is full.
    std::optional<tollbar_ticket> acquire(const in_flight &table, const key &of) noexcept {
        tollbar_ticket ticket = 0;
        const std::int32_t code = tollbar_adaptive_acquire_key(&raw_, table.get(), of.data(), of.size(), &ticket);
        return code == TOLLBAR_ALLOWED ? std::optional(ticket) : std::nullopt;
    }
    /// Releases a permit of a table's key, and the limit learns from the outcome and the latency.
    bool release(const in_flight &table, const key &of, tollbar_ticket ticket, flight_outcome outcome, nanoseconds latency) noexcept {
        return tollbar_adaptive_release_key(&raw_, table.get(), of.data(), of.size(), ticket, static_cast<std::uint32_t>(outcome),
                                            detail::saturated(latency))
            == TOLLBAR_ALLOWED;
    }
    /// The present limit. With it one call of take_many takes from a rate and opens a request:
    ///
    ///     tollbar::permit request;
    ///     if (!tollbar::take_many({{users, name}, {open, "server", server.limit(), request}}))
    ///         return try_later();
    ///     const auto latency = ask();
    ///     server.release(open, "server", request.release(), flight_outcome::answered, latency);
    std::uint32_t limit() const noexcept { return tollbar_adaptive_limit(&raw_); }
    /// The limit's state.
    state read() const noexcept {
        auto found = detail::blank<state>();
        tollbar_adaptive_read(&raw_, &found);
        return found;
    }
    tollbar_adaptive *get() noexcept { return &raw_; }

private:
    tollbar_adaptive raw_{};
};

} // namespace tollbar

#endif // TOLLBAR_EXPERIMENTAL
#endif // TOLLBAR_ADAPTIVE_HPP
