/* tollbar/pacing.hpp: pacing of a client's requests to servers. Part of tollbar.hpp; experimental.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_PACING_HPP
#define TOLLBAR_PACING_HPP
#ifdef TOLLBAR_EXPERIMENTAL

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "decision.hpp"
#include "error.hpp"

namespace tollbar {

/// The rates at which a client sends to its hosts, learned from their answers. Its manual is in
/// tollbar.h ("Pacing of a client's requests to servers"), and its options are
/// tollbar_pacing_options. Threads may share it: a mutex is held in each call, and no call sleeps
/// with it.
///
///     tollbar::pacing pace;
///     const auto ticket = pace.acquire("https://api.example.com");  // sleeps until the request may be sent
///     const auto answer = client.get(...);
///     pace.respond(ticket, answer.status, answer.header);
class pacing {
public:
    using options = tollbar_pacing_options;
    using state = tollbar_pacing_state;
    using ticket = tollbar_pacing_ticket;

    /// Cubic, from 0.5/s up to 10^6/s, bursts of 1, pauses of at most 5 minutes.
    static options defaults() noexcept {
        auto made = detail::blank<options>();
        made.algorithm = TOLLBAR_PACING_CUBIC;
        made.least = 500'000;
        made.most = 1'000'000'000'000;
        made.pause_most_ns = 300'000'000'000;
        made.burst = 1;
        return made;
    }

    /// Room for 1 to 4096 hosts. Throws errc::capacity for another number, and errc::out_of_range
    /// for options that do not fit together.
    explicit pacing(const options &with = defaults(), std::size_t hosts = 256) {
        detail::done(tollbar_pacing_new(&with, hosts, &handle_)).value();
    }
    pacing(const pacing &) = delete;
    pacing &operator=(const pacing &) = delete;
    ~pacing() { tollbar_pacing_free(handle_); }

    /// Takes the host's next turn and sleeps until it has come.
    ticket acquire(std::string_view host) {
        const ticket turn = acquire_at(now(clock_source::monotonic), host);
        for (;;) {
            const nanoseconds wait = wait_at(now(clock_source::monotonic), turn);
            if (wait == nanoseconds::zero())
                return turn;
            std::this_thread::sleep_for(wait);
        }
    }
    /// The host has answered. `header` is the answer's header, one field a line. Throws
    /// errc::out_of_range if the status is above 65535.
    void respond(const ticket &turn, std::uint32_t status, std::string_view header) {
        respond_at(now(clock_source::monotonic), turn, status, header, now(clock_source::wall));
    }

    /// Takes the host's next turn. The other calls with `_at` take times of the same clock.
    ticket acquire_at(instant now, std::string_view host) {
        ticket turn{};
        locked([&] { return tollbar_pacing_acquire_at(handle_, host.data(), host.size(), now.get(), &turn); });
        return turn;
    }
    /// How long to sleep before the next call of wait_at. Zero: the request may be sent now.
    nanoseconds wait_at(instant now, const ticket &turn) {
        std::uint64_t wait = 0;
        locked([&] { return tollbar_pacing_wait_at(handle_, &turn, now.get(), &wait); });
        return detail::from_c(wait);
    }
    /// respond at the caller's time. `utc` is the time of the answer since 1970.
    void respond_at(instant now, const ticket &turn, std::uint32_t status, std::string_view header, instant utc) {
        locked([&] {
            return tollbar_pacing_respond_at(handle_, &turn, status, header.data(), header.size(), utc.get(), now.get());
        });
    }
    /// Gives a turn back before its request was sent. The callers behind it move up.
    void leave_at(instant now, const ticket &turn) {
        locked([&] { return tollbar_pacing_leave_at(handle_, &turn, now.get()); });
    }
    /// The state of a host. Empty if the host is unknown or forgotten.
    std::optional<state> read_at(instant now, std::string_view host) {
        auto found = detail::blank<state>();
        const bool known =
            locked([&] { return tollbar_pacing_read_at(handle_, host.data(), host.size(), now.get(), &found); }) == TOLLBAR_YES;
        return known ? std::optional(found) : std::nullopt;
    }

private:
    template <class Call> std::int32_t locked(Call call) {
        const std::lock_guard<std::mutex> guard(mutex_);
        const std::int32_t code = call();
        if (code < 0)
            detail::done(code).value();
        return code;
    }

    std::mutex mutex_;
    tollbar_pacing *handle_ = nullptr;
};

} // namespace tollbar

#endif // TOLLBAR_EXPERIMENTAL
#endif // TOLLBAR_PACING_HPP
