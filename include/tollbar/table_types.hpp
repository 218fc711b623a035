/* tollbar/table_types.hpp: what tables are made with, asked with and gone through with. Part of tollbar.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_TABLE_TYPES_HPP
#define TOLLBAR_TABLE_TYPES_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>

#include "decision.hpp"
#include "error.hpp"
#include "key.hpp"
#include "policy.hpp"

namespace tollbar {

/// What the table does with a new key if no slot is free for it.
enum class on_full : std::uint32_t {
    /// The table admits the key as a fresh one, in the slot that would have expired first, and
    /// forgets the key that had it.
    evict_nearest = TOLLBAR_ON_FULL_EVICT_NEAREST,
    /// The key takes over the slot that would have expired first, together with its debt.
    inherit = TOLLBAR_ON_FULL_INHERIT,
    /// The table admits the key as a fresh one, and does not store it.
    allow = TOLLBAR_ON_FULL_ALLOW,
    /// The table refuses the key. It evicts no key, and admits no key without a count. Use it only
    /// for keys that a stranger cannot invent.
    deny = TOLLBAR_ON_FULL_DENY,
};

/// How the table decides on a request without a key.
enum class missing_key : std::uint32_t {
    deny = TOLLBAR_MISSING_DENY,
    /// The table admits the request and charges no key.
    allow = TOLLBAR_MISSING_ALLOW,
    /// The call fails with errc::missing_key.
    report = TOLLBAR_MISSING_REPORT,
};

/// Whose file the call may open.
enum class trust : std::uint32_t {
    /// A file of the caller's effective user or of root that no other user may replace, and that no
    /// other user may write but those whom the mode lets write.
    owner,
    /// Any file. Every user who may write it can admit or refuse keys, and its owner can end this
    /// process by SIGBUS at any time.
    anyone,
};

/// The options of a table: `tollbar::table_options options(1'000'000); options.mode = 0660;`
struct table_options {
    /// `keys` is the number of keys that can have a debt at one time. The conversion is implicit,
    /// so a number can stand for the options.
    table_options(std::uint64_t keys) noexcept : capacity(keys) {}

    std::uint64_t capacity;
    on_full when_full = on_full::evict_nearest;
    missing_key without_key = missing_key::deny;
    /// The clock that calls without `_at` read.
    clock_source clock = clock_source::tsc;
    /// The permissions of a new file. 0 means 0600.
    std::uint32_t mode = 0;
    /// The seed of the hash, if `seeded`. Otherwise the seed is random. A client that knows the
    /// seed can choose keys that collide.
    std::uint64_t seed = 0;
    bool seeded = false;
    /// Do not advise the system to use huge pages.
    bool small_pages = false;
    /// Whose file the call may open.
    trust whose = trust::owner;
    /// Callers of one table object that may sleep in wait() at one time; 0: 1024. More are refused
    /// at once.
    std::uint32_t waiters = 0;
    /// The keys for which each thread of this process may take permits in advance: those that it
    /// checks most often; 0: none. Faster where many threads check one key (tollbar_table_options
    /// in tollbar.h).
    std::uint32_t hot_keys = 0;
    /// The keys that may have a policy of their own at one time (table::set_override), 32 bytes
    /// each. 0 means 1024.
    std::uint32_t overrides = 0;
    /// The most segments of a sliding window, or permits of a sliding log, for which each slot has
    /// room. With room the table may have any policies, and each may change to any other. 0: none.
    std::uint32_t room = 0;
};

/// The policies of a table, 1 to 128: `{"5/min burst 3", "100/s"}`, or any type with data() and
/// size() of specs. The list owns nothing. Make it in the call.
class policy_list {
public:
    policy_list(std::initializer_list<spec> specs) noexcept { take(specs.begin(), specs.size()); }
    policy_list(span<const spec> specs) noexcept { take(specs.data(), specs.size()); }
    template <class Range, std::enable_if_t<std::is_convertible_v<const Range &, span<const spec>>, int> = 0>
    policy_list(const Range &specs) noexcept : policy_list(span<const spec>(specs)) {}

    std::size_t size() const noexcept { return count_; }
    const tollbar_policy_spec *const *get() const noexcept { return specs_; }

private:
    static constexpr std::size_t most = 128;

    void take(const spec *specs, std::size_t count) noexcept {
        count_ = count;
        // The C call refuses a longer list for its length before it reads a spec.
        for (std::size_t i = 0; i < count && i < most; i++)
            specs_[i] = specs[i].get();
    }

    const tollbar_policy_spec *specs_[most];
    std::size_t count_ = 0;
};

/// One request of a batch. The key's bytes must live until the batch is decided.
class request {
public:
    /// A request without a key, for arrays that the caller fills later.
    request() noexcept : request(key(nullptr, 0)) {}
    /// From a key, or from anything that converts to a key.
    template <class Key, std::enable_if_t<std::is_convertible_v<const Key &, key>, int> = 0>
    request(const Key &of, std::uint64_t cost = 1) noexcept : request(key(of), cost) {}
    request(const key &of, std::uint64_t cost = 1) noexcept
        : raw_{of.data(), of.size(), cost, static_cast<std::uint32_t>(of.policy()), 0} {}
    /// This request as one of a class of the policy, of which the first has the number 1.
    [[nodiscard]] request with_class(std::uint32_t number) const noexcept {
        request copy = *this;
        copy.raw_.class_number = number;
        return copy;
    }
    const tollbar_request *get() const noexcept { return &raw_; }

private:
    tollbar_request raw_;
};

static_assert(sizeof(request) == sizeof(tollbar_request) && std::is_standard_layout_v<request>,
              "an array of requests is C's");

/// The proof of a charge: 32 bytes of plain data, which may be copied, stored, and settled by
/// another process that has the same table.
using receipt = tollbar_receipt;

/// The result of table::take. True if the table took the estimate.
struct [[nodiscard]] estimated {
    decision answer;
    /// What table::settle takes. All zero if the table took nothing.
    tollbar::receipt receipt;

    explicit operator bool() const noexcept { return answer.allowed(); }
};

/// The result of table::settle. True unless a part of the debt could not be charged, or the call
/// failed.
struct [[nodiscard]] settled {
    /// Allowed, denied (the key owes as much as its state can hold), or an error.
    verdict answer;
    /// Whether this call has settled the receipt. If it had been settled before, or is too old,
    /// nothing came back.
    bool first = false;
    /// The permits that came back.
    std::uint64_t given_back = 0;
    /// The permits above the estimate that the call did not charge.
    std::uint64_t rest = 0;

    explicit operator bool() const noexcept { return answer.allowed(); }

    /// Of a C call: `call(tollbar_settled *)` returns its int32_t.
    template <class Call> static settled of(const Call &call) noexcept {
        auto raw = detail::blank<tollbar_settled>();
        settled done;
        done.answer = verdict(call(&raw));
        done.first = raw.first == TOLLBAR_YES;
        done.given_back = raw.given_back;
        done.rest = raw.rest;
        return done;
    }
};

/// One key of a table.
struct entry {
    policy_id policy;
    /// The key's hash. The table stores nothing else of the key (table::hash).
    std::uint64_t hash;
    /// The state word.
    std::uint64_t state;
    /// Permits that the key has left.
    std::uint64_t remaining;
    /// The time until the state is as good as fresh. 0: it has expired.
    nanoseconds reset_after;
};

/// A policy of a table, with its number.
struct numbered_policy {
    policy_id id;
    spec policy;
};

namespace detail {

/// A single-pass range over the values of `Step::next(T &)`. The range ends when that function
/// returns false.
template <class T, class Step> class sequence {
public:
    explicit sequence(const Step &step) noexcept : step_(step) {}

    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        using pointer = const T *;
        using reference = const T &;

        /// The end.
        iterator() noexcept = default;
        explicit iterator(const Step &step) noexcept : step_(step) { ++*this; }

        const T &operator*() const noexcept { return *current_; }
        const T *operator->() const noexcept { return &*current_; }
        iterator &operator++() noexcept {
            current_ = step_->next();
            return *this;
        }
        iterator operator++(int) noexcept {
            iterator before = *this;
            ++*this;
            return before;
        }
        /// Two iterators are compared only to find the end.
        friend bool operator==(const iterator &a, const iterator &b) noexcept {
            return a.current_.has_value() == b.current_.has_value();
        }
        friend bool operator!=(const iterator &a, const iterator &b) noexcept { return !(a == b); }

    private:
        std::optional<Step> step_;
        std::optional<T> current_;
    };

    iterator begin() const noexcept { return iterator(step_); }
    iterator end() const noexcept { return iterator(); }

private:
    Step step_;
};

struct next_entry {
    const tollbar_table *table;
    std::uint64_t now_ns;
    std::uint64_t from;

    std::optional<entry> next() noexcept {
        auto raw = detail::blank<tollbar_table_entry>();
        if (tollbar_table_next(table, from, now_ns, &raw) != TOLLBAR_YES)
            return std::nullopt;
        from = raw.next;
        return entry{static_cast<policy_id>(raw.policy), raw.hash, raw.state, raw.remaining, from_c(raw.reset_after_ns)};
    }
};

struct next_policy {
    const tollbar_table *table;
    std::uint32_t number;

    std::optional<numbered_policy> next() noexcept {
        auto raw = detail::blank<tollbar_policy_spec>();
        if (tollbar_table_get_policy(table, number, &raw) != 0)
            return std::nullopt;
        return numbered_policy{static_cast<policy_id>(number++), spec(raw)};
    }
};

} // namespace detail

/// The results of table::entries and table::policies: single-pass ranges.
using entry_range = detail::sequence<entry, detail::next_entry>;
using policy_range = detail::sequence<numbered_policy, detail::next_policy>;

/// Counters and sizes, and the results of a sweep and of a copy: C structs, whose fields tollbar.h
/// explains.
using table_stats = tollbar_table_stats;
using sweep_result = tollbar_table_sweep_result;
using table_copied = tollbar_table_copy_result;

/// A key that a table has refused.
struct refused_key {
    /// The policy under which the table refused the key.
    policy_id policy = policy_id{};
    /// About the number of refusals in the last two minutes.
    std::uint64_t count = 0;
    /// The key's first bytes, 48 at most.
    std::string key;
    /// Whether the key is longer.
    bool is_cut = false;
};

/// The result of validate and repair.
struct table_health {
    /// Whether the call found anything to repair.
    bool slots_invalid;
    /// The content of the slots. tollbar.h explains the fields.
    tollbar_table_health slots;
};

} // namespace tollbar

#endif // TOLLBAR_TABLE_TYPES_HPP
