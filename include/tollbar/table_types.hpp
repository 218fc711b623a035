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
#include <type_traits>

#include "decision.hpp"
#include "error.hpp"
#include "key.hpp"
#include "policy.hpp"

namespace tollbar {

/// What a newcomer gets when there is no place for it.
enum class on_full : std::uint32_t {
    /// The newcomer is admitted as a fresh key would be, in the slot that would have expired first; the key that had it is forgotten.
    evict_nearest = TOLLBAR_ON_FULL_EVICT_NEAREST,
    /// It takes over the slot that would have expired first, together with its debt.
    inherit = TOLLBAR_ON_FULL_INHERIT,
    /// It is admitted as a fresh key would be, and not remembered.
    allow = TOLLBAR_ON_FULL_ALLOW,
    /// It is refused: no key is forgotten, none gets in uncounted. For keys that a stranger cannot invent.
    deny = TOLLBAR_ON_FULL_DENY,
};

/// What a request without a key gets.
enum class missing_key : std::uint32_t {
    deny = TOLLBAR_MISSING_DENY,
    /// It is admitted, and no key is charged.
    allow = TOLLBAR_MISSING_ALLOW,
    /// It fails with errc::missing_key.
    report = TOLLBAR_MISSING_REPORT,
};

/// Whose file is taken for a table.
enum class trust : std::uint32_t {
    /// One of the caller's effective user or of root, which nobody else may write (but whom the mode names) or replace.
    owner,
    /// Any file. Every user who may write it can admit or refuse keys, and its owner can end this process by SIGBUS at any time.
    anyone,
};

/// How a table is made: `tollbar::table_options options(1'000'000); options.mode = 0660;`
struct table_options {
    /// For so many keys that are to have a place at one time. Implicit: a number will do where nothing else is wanted.
    table_options(std::uint64_t keys) noexcept : capacity(keys) {}

    std::uint64_t capacity;
    on_full when_full = on_full::evict_nearest;
    missing_key without_key = missing_key::deny;
    /// For the calls without `_at`.
    clock_source clock = clock_source::tsc;
    /// Permissions of a file that is made; 0: 0600.
    std::uint32_t mode = 0;
    /// What the hash is keyed with, if `seeded`; else it is random. A client that knows it can choose keys that share their buckets.
    std::uint64_t seed = 0;
    bool seeded = false;
    /// Do not advise the system to use huge pages.
    bool small_pages = false;
    /// Whose file is taken.
    trust whose = trust::owner;
};

/// The policies of a table, 1 to 128: `{"5/min burst 3", "100/s"}`, or anything with data() and size() of specs. It
/// views them, and is meant to be made in the call.
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
        // One that is longer is refused for its length before its specs are looked at.
        for (std::size_t i = 0; i < count && i < most; i++)
            specs_[i] = specs[i].get();
    }

    const tollbar_policy_spec *specs_[most];
    std::size_t count_ = 0;
};

/// One request of a batch. It views the key's bytes, which must live until the batch is decided.
class request {
public:
    /// A request without a key, for arrays that are filled in later.
    request() noexcept : request(key(nullptr, 0)) {}
    /// Of a key, or of whatever a key can be made of.
    template <class Key, std::enable_if_t<std::is_convertible_v<const Key &, key>, int> = 0>
    request(const Key &of, std::uint64_t cost = 1) noexcept : request(key(of), cost) {}
    request(const key &of, std::uint64_t cost = 1) noexcept
        : raw_{of.data(), of.size(), cost, static_cast<std::uint32_t>(of.policy()), 0} {}
    const tollbar_request *get() const noexcept { return &raw_; }

private:
    tollbar_request raw_;
};

static_assert(sizeof(request) == sizeof(tollbar_request) && std::is_standard_layout_v<request>,
              "an array of requests is C's");

/// One key of a table.
struct entry {
    policy_id policy;
    /// All that the table knows of the key (table::hash).
    std::uint64_t hash;
    /// The state word.
    std::uint64_t state;
    /// Permits that could be taken.
    std::uint64_t remaining;
    /// How long until it is as good as fresh; 0: it has expired.
    nanoseconds reset_after;
};

/// A policy of a table, with its number.
struct numbered_policy {
    policy_id id;
    spec policy;
};

namespace detail {

/// A range of what `Step::next(T &)` brings forth until it returns false, to be gone through once.
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
        /// All that is asked of an iterator is whether it has come to the end.
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

/// What table::entries and table::policies return, for a range-for or an algorithm that goes through once.
using entry_range = detail::sequence<entry, detail::next_entry>;
using policy_range = detail::sequence<numbered_policy, detail::next_policy>;

/// Counters and sizes, and what came of a sweep or a copy: the C structs, whose fields are explained in tollbar.h.
using table_stats = tollbar_table_stats;
using sweep_result = tollbar_table_sweep_result;
using table_copied = tollbar_table_copy_result;

/// What validate and repair saw.
struct table_health {
    /// Whether there is (or was) anything to repair.
    bool slots_invalid;
    /// What is in the slots; explained in tollbar.h.
    tollbar_table_health slots;
};

} // namespace tollbar

#endif // TOLLBAR_TABLE_TYPES_HPP
