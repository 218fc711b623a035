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
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "../tollbar_redis.h"
#include "decision.hpp"
#include "error.hpp"
#include "key.hpp"
#include "policy.hpp"

namespace tollbar {

/// The version of the linked libtollbar-redis as `major << 16 | minor << 8 | patch`. Compare it
/// with TOLLBAR_VERSION.
inline std::uint32_t redis_version_number() noexcept { return tollbar_redis_version(); }
/// The ABI of the linked libtollbar-redis. A program that calls this neither links nor starts with
/// a library of another ABI.
inline std::uint32_t redis_abi() noexcept { return tollbar_redis_abi_1; }

/// What the machine does while the store does not answer.
enum class fallback : std::uint32_t {
    /// The machine admits its share by itself. When the store answers again, the client charges
    /// those permits there.
    share = TOLLBAR_FALLBACK_SHARE,
    /// The machine refuses requests that no lease covers.
    deny = TOLLBAR_FALLBACK_DENY,
    /// The machine admits requests that no lease covers, and does not count them.
    allow = TOLLBAR_FALLBACK_ALLOW,
};

/// Whether the store answers.
enum class circuit : std::uint32_t {
    /// The client has not reached the store yet. The machine decides by itself.
    unknown = TOLLBAR_CIRCUIT_UNKNOWN,
    closed = TOLLBAR_CIRCUIT_CLOSED,
    /// The store does not answer. The machine decides by itself.
    open = TOLLBAR_CIRCUIT_OPEN,
};

/// The options of a lease:
/// `tollbar::lease_options options(4); options.without_store = tollbar::fallback::deny;`
struct lease_options {
    /// `machines` is the maximum number of machines that share the limit, 1 to 65,535. The
    /// conversion is implicit, so a number can stand for the options.
    lease_options(std::uint32_t machines) noexcept : nodes(machines) {}

    std::uint32_t nodes;
    /// The number of this machine's keys that can have a slot at one time.
    std::uint64_t capacity = 4096;
    /// The time for which a lease may be spent, 1 ms to 10 min. 0 means the policy's default: a
    /// sixteenth of the time in which its burst refills, 4 s at the most.
    nanoseconds life{0};
    /// Permits of a key that the machine may admit before the store has charged them, at most 127.
    /// by_policy is the policy's default. 0: only the store's permits count.
    std::uint64_t overdraft = by_policy;
    static constexpr std::uint64_t by_policy = UINT64_MAX;
    fallback without_store = fallback::share;
    /// The store grants the whole burst. All machines together may then exceed the policy by the
    /// overdrafts of all of them.
    bool inexact = false;
    /// After the store has lost its data, every key's bucket counts as empty at the loss, and
    /// refills. Without this option such a key has a full bucket.
    bool refill = false;
};

/// The counts of this machine's leases. tollbar_lease_stats explains each number.
struct lease_stats {
    tollbar::circuit circuit;
    std::uint64_t granted, asked, overdrawn, fallback_permits, uncounted, denied, queue_full, opened, owed, full,
        denied_pending, denied_by_store, denied_by_fallback;
};

/// A request that waits for the store (lease::poll). It is plain data: to give up, drop it.
class lease_request {
public:
    /// A request for `cost` permits. `until` is the time at which it gives up, on the scale of
    /// lease::now().
    explicit lease_request(instant until, std::uint64_t cost = 1) noexcept
        : raw_{static_cast<std::uint32_t>(sizeof(tollbar_lease_request)), 0, cost, until.get()} {}
    /// The C struct.
    tollbar_lease_request *get() noexcept { return &raw_; }

private:
    tollbar_lease_request raw_;
};

/// This machine's part of a limit. A client asks the store for it.
///
///     tollbar::lease logins("logins", "100/s burst 50", 4);     // machines
///     tollbar::lease_client client(logins, "redis://127.0.0.1");
///     client.start();                                           // a thread; or tick() from an event loop
///     if (!logins.check(address))
///         return try_later();
///
/// `check()` and `admit()` never wait for the store; `wait()` and `poll()` do where only the store
/// can tell. `check()` without a key charges one limit for all. The policy number of a key is
/// ignored.
class lease {
public:
    /// From a policy, which may be a text: gcra without `borrow` and `init`. The name has 1 to 64
    /// visible ASCII characters without braces. Throws policy_error for a text, and error for a
    /// policy or options that cannot be leased.
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

    /// Makes a lease in memory that this process shares with the processes that it forks later.
    /// Together they are one machine.
    static lease shared(std::string_view name, const spec &of, const lease_options &options) {
        return try_shared(name, of, options).value();
    }
    static result<lease> try_shared(std::string_view name, const spec &of, const lease_options &options) noexcept {
        return made(name, of, options, tollbar_lease_new_shared);
    }

    /// Makes a lease in the caller's memory and overwrites it. The memory must be aligned to 64
    /// bytes, have at least bytes(of, options), and outlive the lease.
    static lease init_in(void *memory, std::size_t size, std::string_view name, const spec &of, const lease_options &options) {
        return try_init_in(memory, size, name, of, options).value();
    }
    static result<lease> try_init_in(void *memory, std::size_t size, std::string_view name, const spec &of,
                                     const lease_options &options) noexcept {
        return made(name, of, options,
                    [memory, size](auto... with) { return tollbar_lease_init_in(memory, size, with...); });
    }
    /// Opens the lease that init_in has made in the caller's memory, in this process or another.
    static lease attach(void *memory, std::size_t size) { return try_attach(memory, size).value(); }
    static result<lease> try_attach(void *memory, std::size_t size) noexcept {
        return detail::made<lease, tollbar_lease>(
            [memory, size](auto **out) { return tollbar_lease_attach(memory, size, out); });
    }

    /// The size of a lease in bytes. It never changes.
    static std::uint64_t bytes(const spec &of, const lease_options &options) { return try_bytes(of, options).value(); }
    static result<std::uint64_t> try_bytes(const spec &of, const lease_options &options) noexcept {
        const tollbar_lease_options raw = for_c(options);
        std::uint64_t count = 0;
        const std::int32_t code = tollbar_lease_bytes(of.get(), &raw, &count);
        return detail::done(code, count);
    }

    /// Takes `cost` permits of the key now, or of the one limit for all without a key. A cost of 0
    /// asks without charging. `remaining` counts this machine's permits, `retry_after` is an
    /// estimate, and `reset_after` is 0.
    decision check(const key &of = key(nullptr, 0), std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) { return tollbar_lease_check(get(), of.data(), of.size(), cost, out); });
    }
    /// The same at the caller's time, on the scale of now().
    decision check_at(instant now, const key &of = key(nullptr, 0), std::uint64_t cost = 1) const noexcept {
        return decision::of(
            [&](auto *out) { return tollbar_lease_check_at(get(), of.data(), of.size(), cost, now.get(), out); });
    }
    /// check that returns the verdict alone, which is faster.
    verdict admit(const key &of = key(nullptr, 0), std::uint64_t cost = 1) const noexcept {
        return verdict(tollbar_lease_check(get(), of.data(), of.size(), cost, nullptr));
    }
    verdict admit_at(instant now, const key &of = key(nullptr, 0), std::uint64_t cost = 1) const noexcept {
        return verdict(tollbar_lease_check_at(get(), of.data(), of.size(), cost, now.get(), nullptr));
    }
    /// check that waits up to `patience` for the store's answer, which takes about a round trip if a
    /// thread drives the client. While the store answers, the call denies only what the store
    /// denies. It denies as reason::pending if no answer came in time; the store may still charge
    /// such a request. While the store does not answer, the call decides at once as check does. The
    /// thread that drives the client must not make this call: it uses poll.
    template <class Rep, class Period>
    decision wait(const key &of, const std::chrono::duration<Rep, Period> &patience,
        std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) {
            return tollbar_lease_wait(get(), of.data(), of.size(), cost, detail::saturated(patience), out);
        });
    }
    /// wait for an event loop: empty as long as the request waits for the store. Call it again with
    /// the same key and request after each tick of the client, or each millisecond if another
    /// process drives the client, and when the request's time is over.
    ///
    ///     tollbar::lease_request request(logins.now() + 100ms);
    ///     if (const auto answer = logins.poll(address, request))    // again after each tick
    ///         return answer->allowed() ? serve() : try_later();
    std::optional<decision> poll(const key &of, lease_request &request) const noexcept {
        const decision made = decision::of(
            [&](auto *out) { return tollbar_lease_poll(get(), of.data(), of.size(), request.get(), out); });
        if (made.answer().get() == static_cast<std::int32_t>(TOLLBAR_LEASE_WAITS))
            return std::nullopt;
        return made;
    }
    /// Returns what check would return from this machine's permits. It takes none, and does not
    /// have the store asked.
    decision peek(const key &of = key(nullptr, 0), std::uint64_t cost = 1) const noexcept {
        return decision::of([&](auto *out) { return tollbar_lease_peek(get(), of.data(), of.size(), cost, out); });
    }

    /// The time that calls without `_at` read. 0 after this object has been moved from.
    nanoseconds now() const noexcept { return detail::from_c(tollbar_lease_now(get())); }

    /// The counts of this machine, and whether the store answers.
    lease_stats stats() const { return try_stats().value(); }
    result<lease_stats> try_stats() const noexcept {
        auto raw = detail::blank<tollbar_lease_stats>();
        const std::int32_t code = tollbar_lease_get_stats(get(), &raw);
        return detail::done(code, lease_stats{static_cast<circuit>(raw.circuit), raw.granted, raw.asked, raw.overdrawn,
                                              raw.fallback_permits, raw.uncounted, raw.denied, raw.queue_full, raw.opened, raw.owed,
                                              raw.full, raw.denied_pending, raw.denied_by_store, raw.denied_by_fallback});
    }

    /// Takes the handle of a C call into ownership.
    static lease adopt(tollbar_lease *made) noexcept { return lease(handle(made)); }
    tollbar_lease *get() const noexcept { return handle_.get(); }
    /// Gives up the handle. The caller ends it with tollbar_lease_close.
    [[nodiscard]] tollbar_lease *release() noexcept { return handle_.release(); }
    /// Whether this object holds a lease. It does until it is moved from.
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
        if (options.refill)
            raw.flags |= TOLLBAR_LEASE_REFILL;
        return raw;
    }

    handle handle_;
};

/// The client that asks the store for the permits of up to 128 leases: from a thread of its own
/// (start), from the caller's thread (run), or from an event loop (tick, fd, events). The leases must
/// outlive their client. Only one thread may call at a time. Every thread may call state() and stop() at any
/// time.
class lease_client {
public:
    /// Makes a client, which does not connect yet. The URL is
    /// `redis://[user[:password]@]host[:port][/db]` or `unix:/path[?db=N&user=...&password=...]`.
    /// For a wrong URL, why().column is the column of the fault.
    lease_client(const lease &of, std::string_view url) : lease_client(try_make(of, url).value()) {}
    static result<lease_client> try_make(const lease &of, std::string_view url) noexcept { return made_with(of, url, nullptr); }

    /// For a URL with TLS (`rediss://`) or without. The table is copied; its functions and its
    /// context must outlive the client. tollbar_openssl.h has one for OpenSSL.
    lease_client(const lease &of, std::string_view url, const tollbar_tls &tls)
        : lease_client(try_make(of, url, tls).value()) {}
    static result<lease_client> try_make(const lease &of, std::string_view url, const tollbar_tls &tls) noexcept {
        return made_with(of, url, &tls);
    }
    lease_client(lease_client &&) noexcept = default;
    lease_client &operator=(lease_client &&) noexcept = default;

    /// close() with a patience of one second.
    ~lease_client() = default;

    /// Makes the client ask for another limit's lease, too. The call fails while a thread drives the
    /// client (errc::running), and for the 129th lease or one of the same limit
    /// (errc::client_leases).
    void add(const lease &of) { try_add(of).value(); }
    result<void> try_add(const lease &of) noexcept {
        return detail::done(driven() ? TOLLBAR_E_RUNNING : tollbar_lease_client_add(get(), of.get()));
    }

    /// Reports to the store the charges of the lease that the store does not know yet. The client asks for
    /// its other leases meanwhile. If the patience is too short, the error is errc::unreported. The call fails
    /// as remove() does.
    template <class Rep, class Period> void report(const lease &of, const std::chrono::duration<Rep, Period> &patience) {
        try_report(of, patience).value();
    }
    template <class Rep, class Period>
    result<void> try_report(const lease &of, const std::chrono::duration<Rep, Period> &patience) noexcept {
        const std::uint32_t ms = milliseconds(patience);
        return detail::done(driven() ? TOLLBAR_E_RUNNING : tollbar_lease_client_report(get(), of.get(), ms));
    }
    /// Reports as report() does, and then makes the client forget the lease, even if the patience was too
    /// short. The call fails while a thread drives the client (errc::running), and for a lease that the
    /// client does not have (errc::client_leases).
    template <class Rep, class Period> void remove(const lease &of, const std::chrono::duration<Rep, Period> &patience) {
        try_remove(of, patience).value();
    }
    template <class Rep, class Period>
    result<void> try_remove(const lease &of, const std::chrono::duration<Rep, Period> &patience) noexcept {
        const std::uint32_t ms = milliseconds(patience);
        return detail::done(driven() ? TOLLBAR_E_RUNNING : tollbar_lease_client_remove(get(), of.get(), ms));
    }

    /// Makes the client call `listener` with state() whenever the circuit of one of its leases changes, in the
    /// thread that drives the client. The listener must neither throw nor call the client. The call
    /// fails while a thread drives the client (errc::running).
    void on_change(std::function<void(circuit)> listener) { try_on_change(std::move(listener)).value(); }
    result<void> try_on_change(std::function<void(circuit)> listener) noexcept {
        if (!state_ || driven())
            return failure{state_ ? errc::running : errc::null};
        const std::int32_t code = tollbar_lease_client_on_change(get(), listener ? called : nullptr, state_.get());
        if (code == 0)
            state_->listener = std::move(listener);
        return detail::done(code);
    }

    /// Drives the client from a thread of its own until close(). Throws std::system_error if the
    /// system starts no thread.
    void start() {
        if (!state_ || driven())
            detail::raise(failure{state_ ? errc::running : errc::null});
        state_->thread = std::thread([handle = get()] { tollbar_lease_client_run(handle); });
    }
    /// Drives the client in this thread until stop().
    void run() { try_run().value(); }
    result<void> try_run() noexcept {
        return detail::done(driven() ? TOLLBAR_E_RUNNING : tollbar_lease_client_run(get()));
    }
    /// Makes run() return within some 10 ms. Every thread and every signal handler may call it.
    void stop() const noexcept { tollbar_lease_client_stop(get()); }

    /// Does all that can be done now, and never waits. Returns the time until the next call. Call
    /// sooner if the descriptor is ready.
    std::chrono::milliseconds tick() { return try_tick().value(); }
    result<std::chrono::milliseconds> try_tick() noexcept {
        std::uint32_t wait = 0;
        const std::int32_t code = driven() ? TOLLBAR_E_RUNNING : tollbar_lease_client_tick(get(), &wait);
        return detail::done(code, std::chrono::milliseconds(wait));
    }
    /// The descriptor to watch until the next tick, or -1.
    int fd() const noexcept { return driven() ? -1 : tollbar_lease_client_fd(get(), nullptr); }
    /// The events to watch the descriptor for: TOLLBAR_EVENT_ flags.
    std::uint32_t events() const noexcept {
        std::uint32_t flags = 0;
        if (!driven())
            tollbar_lease_client_fd(get(), &flags);
        return flags;
    }

    /// Whether the store answers.
    circuit state() const noexcept { return static_cast<circuit>(tollbar_lease_client_circuit(get())); }
    /// The store's last refusal, in the store's words. Empty if there is none, or while a thread
    /// drives the client. The text is valid until the next call.
    std::string_view last_error() const noexcept { return driven() ? "" : tollbar_lease_client_error(get()); }
    /// last_error(), only as far as it is about one of the client's leases.
    std::string_view last_error(const lease &of) const noexcept {
        return driven() ? "" : tollbar_lease_client_lease_error(get(), of.get());
    }

    /// Ends the thread of start(), reports to the store the charges that it does not know yet, and
    /// frees the client. If the reports take longer than the patience, the call frees the client
    /// all the same and returns errc::unreported.
    template <class Rep, class Period> void close(const std::chrono::duration<Rep, Period> &patience) {
        try_close(patience).value();
    }
    template <class Rep, class Period>
    result<void> try_close(const std::chrono::duration<Rep, Period> &patience) noexcept {
        const std::unique_ptr<owned, ending> owner = std::move(state_);
        return owner ? detail::done(owner->end(milliseconds(patience))) : result<void>();
    }

    /// Takes the handle of tollbar_lease_client_new into ownership. If there is no memory, it ends
    /// the client and holds nothing.
    static lease_client adopt(tollbar_lease_client *made) noexcept {
        lease_client owner;
        owner.state_.reset(new (std::nothrow) owned{made, {}, {}});
        if (!owner.state_)
            tollbar_lease_client_close(made, 0);
        return owner;
    }
    tollbar_lease_client *get() const noexcept { return state_ ? state_->handle : nullptr; }
    /// Whether this object holds a client. It does until it is moved from or closed.
    explicit operator bool() const noexcept { return state_ != nullptr; }

private:
    template <class Rep, class Period>
    static std::uint32_t milliseconds(const std::chrono::duration<Rep, Period> &patience) noexcept {
        const std::uint64_t ms = detail::saturated(patience) / 1000000;
        return ms < UINT32_MAX ? static_cast<std::uint32_t>(ms) : UINT32_MAX;
    }

    static result<lease_client> made_with(const lease &of, std::string_view url, const tollbar_tls *tls) noexcept {
        tollbar_lease_client *made = nullptr;
        std::size_t column = 0;
        const char *const text = url.empty() ? "" : url.data();
        const std::int32_t code = tls == nullptr ? tollbar_lease_client_new(of.get(), text, url.size(), &column, &made)
                                                 : tollbar_lease_client_new_tls(of.get(), text, url.size(), tls, &column, &made);
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

    /// The client's part that does not move with its owner, because the listener and the thread
    /// point to it.
    struct owned {
        tollbar_lease_client *handle;
        std::function<void(circuit)> listener;
        std::thread thread;

        std::int32_t end(std::uint32_t patience) noexcept {
            if (thread.joinable()) {
                // A stop() before the thread has begun is not lost.
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
    /// Whether start() has begun a thread. The client then belongs to that thread.
    bool driven() const noexcept { return state_ && state_->thread.joinable(); }
    static void called(void *state, std::uint32_t to) noexcept {
        static_cast<owned *>(state)->listener(static_cast<circuit>(to));
    }

    std::unique_ptr<owned, ending> state_;
};

} // namespace tollbar

#endif // TOLLBAR_LEASE_HPP
