/* tollbar/lease.hpp: one limit over many machines, through Redis or Valkey. Part of tollbar_redis.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_LEASE_HPP
#define TOLLBAR_LEASE_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string_view>
#include <thread>
#include <utility>

#include "../tollbar_redis.h"
#include "decision.hpp"
#include "error.hpp"
#include "key.hpp"
#include "policy.hpp"

namespace tollbar {

/// The version of the linked libtollbar-redis as `major << 16 | minor << 8 | patch`, to be compared with TOLLBAR_VERSION.
inline std::uint32_t redis_version_number() noexcept { return tollbar_redis_version(); }
/// The ABI of the linked libtollbar-redis. A program that calls this neither links nor starts with another one.
inline std::uint32_t redis_abi() noexcept { return tollbar_redis_abi_1; }

/// What a machine does while the store does not answer.
enum class fallback : std::uint32_t {
    /// It goes on by itself at its share; what it admits is charged when the store is back.
    share = TOLLBAR_FALLBACK_SHARE,
    /// It refuses what no lease covers.
    deny = TOLLBAR_FALLBACK_DENY,
    /// It admits what no lease covers, uncounted.
    allow = TOLLBAR_FALLBACK_ALLOW,
};

/// Whether the store answers.
enum class circuit : std::uint32_t {
    /// Nobody has reached it yet: a machine is on its own.
    unknown = TOLLBAR_CIRCUIT_UNKNOWN,
    closed = TOLLBAR_CIRCUIT_CLOSED,
    /// It does not: the machine is on its own.
    open = TOLLBAR_CIRCUIT_OPEN,
};

/// How a limit is shared: `tollbar::lease_options options(4); options.without_store = tollbar::fallback::deny;`
struct lease_options {
    /// Between so many machines at most, 1 to 65,535. Implicit: a number will do where nothing else is wanted.
    lease_options(std::uint32_t machines) noexcept : nodes(machines) {}

    std::uint32_t nodes;
    /// Keys of this machine that are to have a place at one time.
    std::uint64_t capacity = 4096;
    /// How long a lease may be spent, 1 ms to 10 min; 0: chosen for the policy, a sixteenth of the time of its burst and 4 s at most.
    nanoseconds life{0};
    /// Permits that a machine admits of a key before the store has been asked; by_policy: chosen for the policy.
    std::uint64_t overdraft = by_policy;
    static constexpr std::uint64_t by_policy = UINT64_MAX;
    fallback without_store = fallback::share;
    /// The store gives out the whole burst. The machines together may exceed the policy by the permits that they hold in leases and reserves.
    bool inexact = false;
};

/// The counts of this machine's leases. tollbar_lease_stats explains each number.
struct lease_stats {
    tollbar::circuit circuit;
    std::uint64_t granted, asked, overdrawn, fallback_permits, uncounted, denied, queue_full, opened, owed;
};

/// This machine's part of a limit. A client asks the store for it.
///
///     tollbar::lease logins("logins", "100/s burst 50", 4);     // machines
///     tollbar::lease_client client(logins, "redis://127.0.0.1");
///     client.start();                                           // a thread; or tick() from an event loop
///     if (!logins.check(address))
///         return try_later();
///
/// A request never waits for the store. The key without bytes, `check()`, is the one limit for all; a key's policy
/// does not count.
class lease {
public:
    /// Of a policy, which may be a text: gcra without `borrow` and `init`. The name is 1 to 64 visible ASCII characters without
    /// braces. Throws policy_error for a text, error for what cannot be leased.
    lease(std::string_view name, const spec &of, const lease_options &options) : lease(try_make(name, of, options).value()) {}
    static result<lease> try_make(std::string_view name, const spec &of, const lease_options &options) noexcept {
        return made(name, of, options, tollbar_lease_new);
    }
    template <class Text, detail::if_text<Text> = 0>
    static result<lease> try_make(std::string_view name, const Text &text, const lease_options &options) noexcept {
        const result<spec> parsed = spec::try_parse(text);
        if (!parsed)
            return parsed.why();
        return try_make(name, *parsed, options);
    }

    /// In memory that is shared with the processes forked from this one later. Together they are one machine.
    static lease shared(std::string_view name, const spec &of, const lease_options &options) {
        return try_shared(name, of, options).value();
    }
    static result<lease> try_shared(std::string_view name, const spec &of, const lease_options &options) noexcept {
        return made(name, of, options, tollbar_lease_new_shared);
    }

    /// In the caller's memory, which is aligned to 64 bytes, has at least bytes(of, options) and must outlive the lease. What was in
    /// it is gone.
    static lease init_in(void *memory, std::size_t size, std::string_view name, const spec &of, const lease_options &options) {
        return try_init_in(memory, size, name, of, options).value();
    }
    static result<lease> try_init_in(void *memory, std::size_t size, std::string_view name, const spec &of,
                                     const lease_options &options) noexcept {
        return made(name, of, options,
                    [memory, size](auto... with) { return tollbar_lease_init_in(memory, size, with...); });
    }
    /// A view of what init_in has made in the caller's memory, here or in another process.
    static lease attach(void *memory, std::size_t size) { return try_attach(memory, size).value(); }
    static result<lease> try_attach(void *memory, std::size_t size) noexcept {
        return detail::made<lease, tollbar_lease>(
            [memory, size](auto **out) { return tollbar_lease_attach(memory, size, out); });
    }

    /// The bytes that it takes, and it never takes more.
    static std::uint64_t bytes(const spec &of, const lease_options &options) { return try_bytes(of, options).value(); }
    static result<std::uint64_t> try_bytes(const spec &of, const lease_options &options) noexcept {
        const tollbar_lease_options raw = for_c(options);
        std::uint64_t count = 0;
        const std::int32_t code = tollbar_lease_bytes(of.get(), &raw, &count);
        return detail::done(code, count);
    }

    /// Takes `cost` permits of the key now, or of the one limit for all. A cost of 0 asks without charging.
    verdict check(const key &of = key(nullptr, 0), std::uint64_t cost = 1) const noexcept {
        return verdict(tollbar_lease_check(get(), of.data(), of.size(), cost, nullptr));
    }
    /// The same at the caller's time, which is on the scale of now().
    verdict check_at(instant now, const key &of = key(nullptr, 0), std::uint64_t cost = 1) const noexcept {
        return verdict(tollbar_lease_check_at(get(), of.data(), of.size(), cost, now.get(), nullptr));
    }
    /// As check, with the answer in full: what remains is this machine's, retry_after an estimate, reset_after 0.
    decision decide(const key &of = key(nullptr, 0), std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) { return tollbar_lease_check(get(), of.data(), of.size(), cost, out); });
    }
    decision decide_at(instant now, const key &of = key(nullptr, 0), std::uint64_t cost = 1) const noexcept {
        return decision::of(
            [&](auto *out) { return tollbar_lease_check_at(get(), of.data(), of.size(), cost, now.get(), out); });
    }
    /// What decide could answer from what this machine has; takes nothing, asks for nothing.
    decision peek(const key &of = key(nullptr, 0), std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) { return tollbar_lease_peek(get(), of.data(), of.size(), cost, out); });
    }

    /// The time that the calls without `_at` read; 0 of one that was moved from.
    nanoseconds now() const noexcept { return detail::from_c(tollbar_lease_now(get())); }

    /// What has happened, and whether the store answers.
    lease_stats stats() const { return try_stats().value(); }
    result<lease_stats> try_stats() const noexcept {
        auto raw = detail::blank<tollbar_lease_stats>();
        const std::int32_t code = tollbar_lease_get_stats(get(), &raw);
        return detail::done(code, lease_stats{static_cast<circuit>(raw.circuit), raw.granted, raw.asked, raw.overdrawn,
                                              raw.fallback_permits, raw.uncounted, raw.denied, raw.queue_full, raw.opened, raw.owed});
    }

    /// Takes over what a C call made.
    static lease adopt(tollbar_lease *made) noexcept { return lease(handle(made)); }
    tollbar_lease *get() const noexcept { return handle_.get(); }
    /// Gives the handle away, to be ended with tollbar_lease_close.
    [[nodiscard]] tollbar_lease *release() noexcept { return handle_.release(); }
    /// Whether it holds one, which it does until it is moved from.
    explicit operator bool() const noexcept { return handle_ != nullptr; }

private:
    struct deleter {
        void operator()(tollbar_lease *made) const noexcept { tollbar_lease_close(made); }
    };
    using handle = std::unique_ptr<tollbar_lease, deleter>;
    explicit lease(handle made) noexcept : handle_(std::move(made)) {}

    template <class Call>
    static result<lease> made(std::string_view name, const spec &of, const lease_options &options,
                              const Call &call) noexcept {
        const tollbar_lease_options raw = for_c(options);
        return detail::made<lease, tollbar_lease>([&](auto **out) {
            return call(name.empty() ? "" : name.data(), name.size(), of.get(), &raw, out);
        });
    }

    static tollbar_lease_options for_c(const lease_options &options) noexcept {
        auto raw = detail::blank<tollbar_lease_options>();
        raw.nodes = options.nodes;
        raw.capacity = options.capacity;
        raw.life_ns = detail::saturated(options.life);
        raw.fallback = static_cast<std::uint32_t>(options.without_store);
        if (options.overdraft != lease_options::by_policy) {
            raw.overdraft = options.overdraft;
            raw.flags |= TOLLBAR_LEASE_HAS_OVERDRAFT;
        }
        if (options.inexact)
            raw.flags |= TOLLBAR_LEASE_INEXACT;
        return raw;
    }

    handle handle_;
};

/// Who asks the store for a lease, which must outlive it: from a thread of its own (start), of the caller's (run), or from an
/// event loop (tick, fd, events). Calls are for one thread at a time; state() and stop() are for all.
class lease_client {
public:
    /// Does not connect yet. `redis://[user[:password]@]host[:port][/db]` or `unix:/path[?db=N&user=...&password=...]`; of a URL that
    /// cannot be read why().column says where.
    lease_client(const lease &of, std::string_view url) : lease_client(try_make(of, url).value()) {}
    static result<lease_client> try_make(const lease &of, std::string_view url) noexcept {
        tollbar_lease_client *made = nullptr;
        std::size_t column = 0;
        const std::int32_t code =
            tollbar_lease_client_new(of.get(), url.empty() ? "" : url.data(), url.size(), &column, &made);
        if (code != 0) {
            failure why = detail::failed(code);
            why.column = column;
            return why;
        }
        lease_client owner = adopt(made);
        if (!owner)
            return detail::failed(TOLLBAR_E_NO_MEMORY);
        return owner;
    }
    lease_client(lease_client &&) noexcept = default;
    lease_client &operator=(lease_client &&) noexcept = default;

    /// As close, with a second for what is to be told.
    ~lease_client() = default;

    /// Has `listener` called whenever the store comes or goes, in the thread that drives the client. It must not throw, nor call the
    /// client. Not while a thread drives it (errc::running).
    void on_change(std::function<void(circuit)> listener) { try_on_change(std::move(listener)).value(); }
    result<void> try_on_change(std::function<void(circuit)> listener) noexcept {
        if (!state_ || driven())
            return failure{state_ ? errc::running : errc::null};
        const std::int32_t code = tollbar_lease_client_on_change(get(), listener ? called : nullptr, state_.get());
        if (code == 0)
            state_->listener = std::move(listener);
        return detail::done(code);
    }

    /// Drives it from a thread of its own until it is closed. std::system_error if there is no thread to be had.
    void start() {
        if (!state_ || driven())
            detail::raise(failure{state_ ? errc::running : errc::null});
        state_->thread = std::thread([handle = get()] { tollbar_lease_client_run(handle); });
    }
    /// Drives it in this thread until stop().
    void run() { try_run().value(); }
    result<void> try_run() noexcept {
        return detail::done(driven() ? TOLLBAR_E_RUNNING : tollbar_lease_client_run(get()));
    }
    /// Lets run() return, within some 10 ms. From any thread, and from signal handlers.
    void stop() const noexcept { tollbar_lease_client_stop(get()); }

    /// Does what there is to do, and never waits; when to be called again, sooner if the descriptor is ready.
    std::chrono::milliseconds tick() { return try_tick().value(); }
    result<std::chrono::milliseconds> try_tick() noexcept {
        std::uint32_t wait = 0;
        const std::int32_t code = driven() ? TOLLBAR_E_RUNNING : tollbar_lease_client_tick(get(), &wait);
        return detail::done(code, std::chrono::milliseconds(wait));
    }
    /// The descriptor to watch until the next tick; -1 if there is none.
    int fd() const noexcept { return driven() ? -1 : tollbar_lease_client_fd(get(), nullptr); }
    /// What to watch it for: TOLLBAR_EVENT_ flags.
    std::uint32_t events() const noexcept {
        std::uint32_t flags = 0;
        if (!driven())
            tollbar_lease_client_fd(get(), &flags);
        return flags;
    }

    /// Whether the store answers.
    circuit state() const noexcept { return static_cast<circuit>(tollbar_lease_client_circuit(get())); }
    /// Why the store last refused; empty if it did not, or while a thread drives it. Good until the next call.
    std::string_view last_error() const noexcept { return driven() ? "" : tollbar_lease_client_error(get()); }

    /// Ends the thread that start() began, tells the store what it has not been told, waiting so long at most, and frees the client,
    /// also if that was not enough: errc::unreported.
    template <class Rep, class Period> void close(const std::chrono::duration<Rep, Period> &patience) {
        try_close(patience).value();
    }
    template <class Rep, class Period>
    result<void> try_close(const std::chrono::duration<Rep, Period> &patience) noexcept {
        const std::uint64_t ms = detail::saturated(patience) / 1000000;
        const std::unique_ptr<owned, ending> owner = std::move(state_);
        if (!owner)
            return {};
        return detail::done(owner->end(ms < UINT32_MAX ? static_cast<std::uint32_t>(ms) : UINT32_MAX));
    }

    /// Takes over what tollbar_lease_client_new made; ended if there is no memory, and then it holds nothing.
    static lease_client adopt(tollbar_lease_client *made) noexcept {
        lease_client owner;
        owner.state_.reset(new (std::nothrow) owned{made, {}, {}});
        if (!owner.state_)
            tollbar_lease_client_close(made, 0);
        return owner;
    }
    tollbar_lease_client *get() const noexcept { return state_ ? state_->handle : nullptr; }
    /// Whether it holds one, which it does until it is moved from or closed.
    explicit operator bool() const noexcept { return state_ != nullptr; }

private:
    /// Where the listener and the thread find it, wherever its owner is moved.
    struct owned {
        tollbar_lease_client *handle;
        std::function<void(circuit)> listener;
        std::thread thread;

        std::int32_t end(std::uint32_t patience) noexcept {
            if (thread.joinable()) {
                // One that comes before the thread has begun is not lost.
                tollbar_lease_client_stop(handle);
                thread.join();
            }
            return tollbar_lease_client_close(std::exchange(handle, nullptr), patience);
        }
    };
    struct ending {
        void operator()(owned *state) const noexcept {
            state->end(1000);
            delete state;
        }
    };

    lease_client() noexcept = default;
    /// Whether start() has begun a thread: from then on the client is that one's.
    bool driven() const noexcept { return state_ && state_->thread.joinable(); }
    static void called(void *state, std::uint32_t to) noexcept {
        static_cast<owned *>(state)->listener(static_cast<circuit>(to));
    }

    std::unique_ptr<owned, ending> state_;
};

} // namespace tollbar

#endif // TOLLBAR_LEASE_HPP
