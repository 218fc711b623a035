/* tollbar/lease_calls.hpp: leases by the program's own Redis client. Part of tollbar_redis.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_LEASE_CALLS_HPP
#define TOLLBAR_LEASE_CALLS_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "../tollbar_redis.h"
#include "error.hpp"
#include "lease.hpp"

namespace tollbar {

/// A call of lease_calls::script(): true if there is one to make. Its keys come first.
class lease_call {
public:
    lease_call() noexcept : raw_(detail::blank<tollbar_lease_call>()) {}

    explicit operator bool() const noexcept { return raw_.count != 0; }
    std::size_t keys() const noexcept { return raw_.keys; }
    std::size_t size() const noexcept { return raw_.count; }
    /// A key or an argument, which may have any bytes. The view is valid until the next turn.
    std::string_view operator[](std::size_t n) const noexcept {
        return {static_cast<const char *>(raw_.parts[n].bytes), raw_.parts[n].length};
    }
    /// Without a call, the time until the next turn.
    std::chrono::milliseconds wait() const noexcept { return std::chrono::milliseconds(raw_.wait_ms); }

private:
    friend class lease_calls;
    tollbar_lease_call raw_;
};

/// What the program's own Redis client asks the store for up to 128 leases, which must outlive it:
///
///     tollbar::lease_calls calls(logins);
///     while (!ends) {
///         const auto call = calls.turn();
///         if (!call)
///             calls.wait(call.wait());
///         else if (const auto reply = evalsha(redis, call); !reply)
///             calls.lost(redis.error());
///         else if (reply.is_error())
///             calls.refused(reply.text());
///         else
///             calls.answered(reply.text());
///     }
///
/// Only one thread may call at a time.
class lease_calls {
public:
    explicit lease_calls(const lease &of) : lease_calls(try_make(of).value()) {}
    static result<lease_calls> try_make(const lease &of) noexcept {
        return detail::made<lease_calls, tollbar_lease_calls>([&](auto **out) { return tollbar_lease_calls_new(of.get(), out); });
    }
    /// Makes calls for another limit's lease, too.
    void add(const lease &of) { try_add(of).value(); }
    result<void> try_add(const lease &of) noexcept { return detail::done(tollbar_lease_calls_add(get(), of.get())); }

    /// The script of all calls, in Lua. It returns an array of one string.
    static std::string_view script() noexcept { return tollbar_lease_calls_script(); }

    /// Returns the call that the program must make now, by EVALSHA or EVAL. If the program reports
    /// nothing about a call before the next turn, the call counts as lost. With `closing` the calls
    /// report at once what the store does not know yet. Once it knows everything, turn returns no
    /// call and a wait of 0.
    lease_call turn(bool closing = false) { return try_turn(closing).value(); }
    result<lease_call> try_turn(bool closing = false) noexcept {
        lease_call made;
        const std::uint32_t flags = closing ? TOLLBAR_LEASE_CLOSING : 0;
        return detail::done(tollbar_lease_calls_turn(get(), flags, &made.raw_), made);
    }
    /// Takes the string in the array that the script returned.
    void answered(std::string_view reply) noexcept { tollbar_lease_calls_answered(get(), reply.data(), reply.size()); }
    /// Takes the store's error: it has not run the script.
    void refused(std::string_view error) noexcept { tollbar_lease_calls_refused(get(), error.data(), error.size()); }
    /// Says that there is no reply, and why: the store may have run the script.
    void lost(std::string_view why) noexcept { tollbar_lease_calls_lost(get(), why.data(), why.size()); }
    /// Waits so long, or until a request cannot wait for the next turn.
    void wait(std::chrono::milliseconds time) noexcept {
        const auto ms = time.count() < 0 ? 0 : time.count() < 1000 ? time.count() : 1000;
        tollbar_lease_calls_wait(get(), static_cast<std::uint32_t>(ms));
    }
    /// What is wrong; empty if nothing is. The text is valid until the next call.
    std::string_view last_error() noexcept { return tollbar_lease_calls_error(get()); }
    /// Ends the calls. errc::unreported says that the store does not know all admissions.
    result<void> try_close() noexcept { return detail::done(tollbar_lease_calls_close(handle_.release())); }

    static lease_calls adopt(tollbar_lease_calls *made) noexcept { return lease_calls(handle(made)); }
    tollbar_lease_calls *get() const noexcept { return handle_.get(); }
    explicit operator bool() const noexcept { return handle_ != nullptr; }

private:
    struct deleter {
        void operator()(tollbar_lease_calls *made) const noexcept { tollbar_lease_calls_close(made); }
    };
    using handle = std::unique_ptr<tollbar_lease_calls, deleter>;
    explicit lease_calls(handle made) noexcept : handle_(std::move(made)) {}

    handle handle_;
};

} // namespace tollbar

#endif // TOLLBAR_LEASE_CALLS_HPP
