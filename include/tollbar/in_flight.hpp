/* tollbar/in_flight.hpp: how many a key has open at one time. Part of tollbar.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_IN_FLIGHT_HPP
#define TOLLBAR_IN_FLIGHT_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "decision.hpp"
#include "error.hpp"
#include "key.hpp"
#include "table_types.hpp"

namespace tollbar {

/// The options of a new in-flight table.
struct in_flight_options {
    in_flight_options(std::uint64_t keys) noexcept : capacity(keys) {}

    /// The number of keys that can have permits in flight at one time.
    std::uint64_t capacity;
    /// The number of processes that have permits of one key at one time. 0 means 8.
    std::uint32_t processes = 0;
    /// The permissions of a new file. 0 means 0600.
    std::uint32_t mode = 0;
    trust whose = trust::owner;
};

/// A permit in flight, or a refusal. The destructor gives the permit back. It must not outlive its
/// table.
class permit {
public:
    /// No permit. take_many can store one in it.
    permit() noexcept : permit(nullptr, 0, TOLLBAR_DENIED) {}
    permit(permit &&other) noexcept
        : table_(other.table_), ticket_(std::exchange(other.ticket_, 0)), code_(other.code_) {}
    permit &operator=(permit &&other) noexcept {
        if (this != &other) {
            give_back();
            table_ = other.table_;
            ticket_ = std::exchange(other.ticket_, 0);
            code_ = other.code_;
        }
        return *this;
    }
    ~permit() { give_back(); }

    /// Whether there is a permit.
    explicit operator bool() const noexcept { return ticket_ != 0; }
    /// The verdict of the call that made it, which is true if that call acquired the permit.
    verdict answer() const noexcept { return verdict(ticket_ != 0 ? TOLLBAR_ALLOWED : code_); }
    /// Gives the permit back. False if there is none, or if this process inherited it by a fork.
    bool give_back() noexcept {
        const tollbar_ticket ticket = std::exchange(ticket_, 0);
        return ticket != 0 && tollbar_in_flight_release(table_, ticket) == TOLLBAR_ALLOWED;
    }
    /// Gives up the permit's ticket. The caller ends it with tollbar_in_flight_release.
    [[nodiscard]] tollbar_ticket release() noexcept { return std::exchange(ticket_, 0); }

    /// For take_many: releases the permit if there is one, and returns the place for the ticket of
    /// a permit of the table.
    tollbar_ticket *place(const tollbar_in_flight *table) noexcept {
        give_back();
        table_ = table;
        code_ = TOLLBAR_DENIED;
        return &ticket_;
    }

private:
    friend class in_flight;
    permit(const tollbar_in_flight *table, tollbar_ticket ticket, std::int32_t code) noexcept
        : table_(table), ticket_(ticket), code_(code) {}

    const tollbar_in_flight *table_;
    tollbar_ticket ticket_;
    std::int32_t code_;
};

/// How many requests, connections or uploads each key has open at one time, in memory that
/// processes can share. tollbar.h ("In flight") is its manual.
///
///     auto uploads = tollbar::in_flight::open("/dev/shm/uploads", 10'000);
///     const auto permit = uploads.enter(user, 4);
///     if (!permit)
///         return too_many();
class in_flight {
public:
    /// Makes a table in this process's own memory.
    in_flight(const in_flight_options &options) : in_flight(try_make(options).value()) {}
    static result<in_flight> try_make(const in_flight_options &options) noexcept {
        return made(options, tollbar_in_flight_new);
    }

    /// Makes a table in memory that this process shares with the processes that it forks later.
    static in_flight shared(const in_flight_options &options) { return try_shared(options).value(); }
    static result<in_flight> try_shared(const in_flight_options &options) noexcept {
        return made(options, tollbar_in_flight_new_shared);
    }

    /// Opens the table in the file at `path` (NUL-terminated), or makes the file if there is none.
    static in_flight open(const char *path, const in_flight_options &options) { return try_open(path, options).value(); }
    static result<in_flight> try_open(const char *path, const in_flight_options &options) noexcept {
        return made(options, [path](auto... with) { return tollbar_in_flight_open(path, with...); });
    }
    /// Opens any table that is in the file. It makes no file.
    static in_flight open(const char *path) { return try_open(path).value(); }
    static result<in_flight> try_open(const char *path) noexcept {
        return detail::made<in_flight, tollbar_in_flight>(
            [path](auto **out) { return tollbar_in_flight_open(path, nullptr, out); });
    }

    /// The bytes of memory that a table of these options takes.
    static std::uint64_t bytes(const in_flight_options &options) { return try_bytes(options).value(); }
    static result<std::uint64_t> try_bytes(const in_flight_options &options) noexcept {
        const auto raw = for_c(options);
        std::uint64_t bytes = 0;
        const std::int32_t code = tollbar_in_flight_bytes(&raw, &bytes);
        return detail::done(code, bytes);
    }
    /// Makes a table in the caller's memory of `size` bytes, which is aligned to 64 bytes and
    /// outlives the table. With capacity 0 the table takes all of it.
    static in_flight init_in(void *memory, std::size_t size, const in_flight_options &options) {
        return try_init_in(memory, size, options).value();
    }
    static result<in_flight> try_init_in(void *memory, std::size_t size, const in_flight_options &options) noexcept {
        return made(options, [=](auto... with) { return tollbar_in_flight_init_in(memory, size, with...); });
    }
    /// Attaches to the table in the caller's memory, which another process or object has made
    /// there.
    static in_flight attach(void *memory, std::size_t size) { return try_attach(memory, size).value(); }
    static result<in_flight> try_attach(void *memory, std::size_t size) noexcept {
        return detail::made<in_flight, tollbar_in_flight>(
            [=](auto **out) { return tollbar_in_flight_attach(memory, size, out); });
    }

    /// Takes a permit of the key, unless `limit` permits of the key are in flight. Each call may
    /// give another limit.
    permit enter(const key &of, std::uint32_t limit) const noexcept {
        tollbar_ticket ticket = 0;
        const std::int32_t code = tollbar_in_flight_acquire(get(), of.data(), of.size(), limit, &ticket);
        return permit(get(), ticket, code);
    }
    /// The number of the key's permits in flight; 0 without a table.
    std::uint64_t count(const key &of) const noexcept {
        std::uint64_t count = 0;
        tollbar_in_flight_count(get(), of.data(), of.size(), &count);
        return count;
    }
    /// Makes this process an owner now, so that its first permit makes no system call.
    void join() const { try_join().value(); }
    result<void> try_join() const noexcept { return detail::done(tollbar_in_flight_join(get())); }

    /// Takes the handle of a C call into ownership.
    static in_flight adopt(tollbar_in_flight *made) noexcept { return in_flight(handle(made)); }
    tollbar_in_flight *get() const noexcept { return handle_.get(); }
    /// Gives up the handle. The caller ends it with tollbar_in_flight_close.
    [[nodiscard]] tollbar_in_flight *release() noexcept { return handle_.release(); }
    /// Whether this object holds a table. It does until it is moved from.
    explicit operator bool() const noexcept { return handle_ != nullptr; }

private:
    struct deleter {
        void operator()(tollbar_in_flight *made) const noexcept { tollbar_in_flight_close(made); }
    };
    using handle = std::unique_ptr<tollbar_in_flight, deleter>;
    explicit in_flight(handle made) noexcept : handle_(std::move(made)) {}

    static tollbar_in_flight_options for_c(const in_flight_options &options) noexcept {
        auto raw = detail::blank<tollbar_in_flight_options>();
        raw.capacity = options.capacity;
        raw.processes = options.processes;
        raw.mode = options.mode;
        raw.flags = options.whose == trust::anyone ? TOLLBAR_IN_FLIGHT_TRUST_ANYONE : 0;
        return raw;
    }

    template <class Call>
    static result<in_flight> made(const in_flight_options &options, const Call &call) noexcept {
        const auto raw = for_c(options);
        const tollbar_in_flight_options *with = &raw;
        return detail::made<in_flight, tollbar_in_flight>([&](auto **out) { return call(with, out); });
    }

    handle handle_;
};

/// A limit on the permits in flight of this process, in one word, as the send window of TCP.
/// Threads share it by reference.
///
///     tollbar::send_window window(4);
///     if (const auto number = window.acquire())
///         send(message, *number);
///     ...
///     window.acknowledge(answer.last_number);
class send_window {
public:
    using state = tollbar_send_window_state;

    /// A window of 0 permits if the limit is out of range (tollbar_send_window_resize).
    explicit send_window(std::uint32_t limit) noexcept { tollbar_send_window_resize(&raw_, limit); }
    send_window(const send_window &) = delete;
    send_window &operator=(const send_window &) = delete;

    /// Takes permits. The result is the number of the last of them, and is empty if fewer are
    /// usable.
    std::optional<std::uint32_t> acquire(std::uint32_t permits = 1) noexcept {
        std::uint32_t last = 0;
        return tollbar_send_window_acquire(&raw_, permits, &last) == TOLLBAR_ALLOWED ? std::optional(last) : std::nullopt;
    }
    /// Releases any permits in flight. False, and nothing changes, if fewer are in flight.
    bool release(std::uint32_t permits = 1) noexcept { return tollbar_send_window_release(&raw_, permits) == TOLLBAR_ALLOWED; }
    /// Releases all permits up to number `last`. False, and nothing changes, if no permit in flight
    /// has this number.
    bool acknowledge(std::uint32_t last) noexcept { return tollbar_send_window_acknowledge(&raw_, last) == TOLLBAR_ALLOWED; }
    /// Sets the limit. If more permits are in flight than the new limit, none is usable until
    /// enough of them are released.
    result<void> resize(std::uint32_t limit) noexcept { return detail::done(tollbar_send_window_resize(&raw_, limit)); }
    /// The window's state.
    state read() const noexcept {
        auto found = detail::blank<state>();
        tollbar_send_window_read(&raw_, &found);
        return found;
    }
    tollbar_send_window *get() noexcept { return &raw_; }

private:
    tollbar_send_window raw_{};
};

} // namespace tollbar

#endif // TOLLBAR_IN_FLIGHT_HPP
