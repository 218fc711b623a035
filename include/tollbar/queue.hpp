/* tollbar/queue.hpp: items that wait, and leave at a policy's pace. Part of tollbar.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_QUEUE_HPP
#define TOLLBAR_QUEUE_HPP

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "decision.hpp"
#include "error.hpp"
#include "policy.hpp"

namespace tollbar {

/// The options of a new queue.
struct queue_options {
    /// The clock that calls without `_at` read.
    clock_source clock = clock_source::tsc;
    /// The maximum number of callers that sleep in offer_within() at one time. The call refuses
    /// further callers at once. 0 means 1024.
    std::uint32_t waiters = 0;
    /// The maximum number of items that overflow the capacity and wait in the spare. They go into the
    /// first queue when that has room, in the order of the offers.
    std::uint32_t spare = 0;
};

/// An item's place in a queue: its number, the number of items before it when it was offered, and
/// its place in the spare (0: it was put into the first queue).
using queue_ticket = tollbar_queue_ticket;

/// A queue of objects that leave at a policy's pace. Any number of threads may use it at once.
/// tollbar.h ("Queues") is its manual.
///
///     tollbar::queue<message> outbox("10/s algo pacer", 1000);      // up to 1,000 messages wait
///     std::thread worker([&] { outbox.run([&](std::unique_ptr<message> next) { gateway.send(*next); }); });
///     auto greeting = std::make_unique<message>("hello");
///     if (!outbox.offer(greeting))                                  // greeting is empty if the queue has taken it
///         return try_later();
template <class T> class queue {
public:
    using item = std::unique_ptr<T>;

    /// A queue in which up to `capacity` items wait. Items that may leave at once do not wait.
    queue(const spec &of, std::uint64_t capacity, const queue_options &options = {})
        : queue(try_make(of, capacity, options).value()) {}
    static result<queue> try_make(const spec &of, std::uint64_t capacity, const queue_options &options = {}) noexcept {
        auto raw = detail::blank<tollbar_queue_options>();
        raw.clock = static_cast<std::uint32_t>(options.clock);
        raw.waiters = options.waiters;
        raw.spare = options.spare;
        tollbar_queue *made = nullptr;
        const std::int32_t code = tollbar_queue_new(of.get(), capacity, &raw, &made);
        if (code != 0)
            return detail::failed(code);
        return queue(made);
    }
    template <class Text, detail::if_text<Text> = 0>
    static result<queue> try_make(const Text &text, std::uint64_t capacity, const queue_options &options = {}) noexcept {
        const result<spec> parsed = spec::try_parse(text);
        if (!parsed)
            return parsed.why();
        return try_make(*parsed, capacity, options);
    }

    queue(queue &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    queue &operator=(queue &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    queue(const queue &) = delete;
    queue &operator=(const queue &) = delete;
    /// Deletes the items that nobody took.
    ~queue() {
        if (handle_ == nullptr)
            return;
        while (drain())
            continue;
        tollbar_queue_free(handle_);
    }

    /// Puts an item behind all others, and takes it from the caller. If the queue is full or closed
    /// the result is empty, and the item stays the caller's.
    std::optional<queue_ticket> offer(item &what) const noexcept {
        return put(what, [&](auto *ticket) { return tollbar_queue_offer(handle_, what.get(), ticket); });
    }
    std::optional<queue_ticket> offer_at(instant now, item &what) const noexcept {
        return put(what, [&](auto *ticket) { return tollbar_queue_offer_at(handle_, what.get(), now.get(), ticket); });
    }
    /// offer that sleeps up to `patience` for room.
    template <class Rep, class Period>
    std::optional<queue_ticket> offer_within(const std::chrono::duration<Rep, Period> &patience, item &what) const noexcept {
        return put(what, [&](auto *ticket) {
            return tollbar_queue_offer_within(handle_, what.get(), detail::saturated(patience), ticket);
        });
    }

    /// Takes the oldest item if the policy lets it leave now; otherwise the result is empty.
    item take() const noexcept {
        return got([&](auto **out) { return tollbar_queue_take(handle_, out); });
    }
    item take_at(instant now) const noexcept {
        return got([&](auto **out) { return tollbar_queue_take_at(handle_, now.get(), out); });
    }
    /// take that sleeps up to `patience` until an item may leave. It returns at once if the queue
    /// is closed and empty.
    template <class Rep, class Period> item take_within(const std::chrono::duration<Rep, Period> &patience) const noexcept {
        return got([&](auto **out) { return tollbar_queue_take_within(handle_, detail::saturated(patience), out); });
    }
    /// Takes the oldest item at once, without the policy. A program that ends can empty a queue
    /// with it.
    item drain() const noexcept {
        return asked([&](auto **out) { return tollbar_queue_drain(handle_, out); });
    }
    /// Takes an item out of the queue before it leaves. Empty if it has left.
    item cancel(const queue_ticket &ticket) const noexcept {
        return asked([&](auto **out) { return tollbar_queue_cancel(handle_, &ticket, out); });
    }

    /// The time at which take() will next return an item, on the scale of now(). Empty if the queue
    /// has no item.
    std::optional<nanoseconds> next_departure() const noexcept {
        std::uint64_t at = 0;
        return tollbar_queue_next_departure(handle_, &at) == TOLLBAR_YES ? std::optional(detail::from_c(at)) : std::nullopt;
    }
    std::optional<nanoseconds> next_departure_at(instant now) const noexcept {
        std::uint64_t at = 0;
        return tollbar_queue_next_departure_at(handle_, now.get(), &at) == TOLLBAR_YES ? std::optional(detail::from_c(at))
                                                                                       : std::nullopt;
    }

    /// Calls `work(item)` for each item at the policy's pace, until the queue is closed and empty
    /// or stop() is called. It blocks: call it in a thread of your own, or in several. `work` must
    /// not throw.
    template <class Work> result<void> run(Work work) const noexcept {
        return detail::done(tollbar_queue_run(handle_, &queue::call<Work>, &work));
    }
    /// Makes run() return after the call of `work` that it is in. Later calls of run() return at
    /// once. The call does not wait.
    void stop() const noexcept { tollbar_queue_stop(handle_); }

    /// Refuses all offers from now on. Items that are in the queue can still be taken.
    void close() const noexcept { tollbar_queue_close(handle_); }
    /// The number of items.
    std::uint64_t size() const noexcept {
        std::uint64_t items = 0;
        tollbar_queue_length(handle_, &items);
        return items;
    }
    bool empty() const noexcept { return size() == 0; }
    /// The time of the queue's clock.
    nanoseconds now() const noexcept {
        std::uint64_t ns = 0;
        tollbar_queue_now(handle_, &ns);
        return detail::from_c(ns);
    }

    tollbar_queue *get() const noexcept { return handle_; }
    /// Whether this object holds a queue. It does until it is moved from.
    explicit operator bool() const noexcept { return handle_ != nullptr; }

private:
    explicit queue(tollbar_queue *made) noexcept : handle_(made) {}

    template <class Work> static void call(void *context, void *what) {
        (*static_cast<Work *>(context))(item(static_cast<T *>(what)));
    }

    template <class Call> static std::optional<queue_ticket> put(item &what, const Call &call) noexcept {
        queue_ticket ticket{};
        if (call(&ticket) != TOLLBAR_ALLOWED)
            return std::nullopt;
        // Another thread may have taken and deleted it by now.
        static_cast<void>(what.release());
        return ticket;
    }
    template <class Call> static item got(const Call &call) noexcept {
        void *out = nullptr;
        return item(call(&out) == TOLLBAR_ALLOWED ? static_cast<T *>(out) : nullptr);
    }
    template <class Call> static item asked(const Call &call) noexcept {
        void *out = nullptr;
        return item(call(&out) == TOLLBAR_YES ? static_cast<T *>(out) : nullptr);
    }

    tollbar_queue *handle_ = nullptr;
};

} // namespace tollbar

#endif // TOLLBAR_QUEUE_HPP
