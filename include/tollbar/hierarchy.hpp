/* tollbar/hierarchy.hpp: classes with guaranteed rates and ceilings, that borrow what is idle. Part of tollbar.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_HIERARCHY_HPP
#define TOLLBAR_HIERARCHY_HPP

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "decision.hpp"
#include "error.hpp"
#include "key.hpp"
#include "policy.hpp"
#include "table.hpp"

namespace tollbar {

/// The answer to a request for a class of a hierarchy. True if the request may pass and has been
/// charged.
class [[nodiscard]] share {
public:
    constexpr explicit operator bool() const noexcept { return answer().allowed(); }
    constexpr bool allowed() const noexcept { return answer().allowed(); }
    constexpr bool denied() const noexcept { return answer().denied(); }
    constexpr bool never() const noexcept { return answer().never(); }
    constexpr bool failed() const noexcept { return answer().failed(); }
    std::error_code error() const noexcept { return answer().error(); }
    constexpr verdict answer() const noexcept { return verdict(code_); }

    /// The class that decided. If the request was refused, it is the class with the longest wait.
    /// If it was admitted, it is the class with the fewest permits left.
    constexpr std::uint32_t bound() const noexcept { return raw_.bound; }
    /// The reason of the decision. reason::fault if the call failed.
    constexpr tollbar::reason why() const noexcept { return static_cast<tollbar::reason>(raw_.reason); }
    /// Permits that the leaf could take at this instant, as long as their interval stays the same.
    /// 0 if the call failed.
    constexpr std::uint64_t remaining() const noexcept { return raw_.remaining; }
    /// The wait of this request. 0 if it was admitted. Empty if no wait would help, or if the call
    /// failed.
    constexpr std::optional<nanoseconds> retry_after() const noexcept { return detail::if_any(raw_.retry_after_ns); }
    /// The time that a permit costs the leaf at present. 0 if the call failed.
    constexpr nanoseconds interval() const noexcept { return detail::from_c(raw_.interval_ns); }
    /// The C struct.
    constexpr const tollbar_share &get() const noexcept { return raw_; }

private:
    friend class hierarchy;
    share() noexcept = default;

    // A call that fails writes nothing, so these values stay.
    tollbar_share raw_ = {static_cast<std::uint32_t>(sizeof(tollbar_share)), TOLLBAR_DENIED, 0, TOLLBAR_NO_TIME, 0, 0,
                          TOLLBAR_REASON_FAULT, 0};
    std::int32_t code_ = TOLLBAR_DENIED;
};

/// A tree of classes, whose nodes are keys of a table. Its manual is in tollbar.h ("Hierarchies").
///
///     tollbar::table table(options, {tollbar::hierarchy::policy()});
///     tollbar::hierarchy shop("1000/s", 100ms, 8);
///     const auto acme = shop.add(tollbar::hierarchy::root, "acme", "400/s");
///     const auto users = shop.add(acme, "users", "1/s", "50/s", 100);
///     if (!shop.take(table, users, name))
///         return too_many();
class hierarchy {
public:
    /// The root's class.
    static constexpr std::uint32_t root = TOLLBAR_HIERARCHY_ROOT;

    /// The policy of a table's nodes.
    static spec policy() { return spec(TOLLBAR_HIERARCHY_POLICY); }

    /// A hierarchy of up to `classes` classes, whose nodes are keys under the policy of that
    /// number. Throws errc::class_rate, errc::out_of_range or errc::capacity.
    template <class Rep, class Period>
    hierarchy(const std::string &rate, const std::chrono::duration<Rep, Period> &burst, std::uint32_t classes,
              policy_id nodes = policy_id::first)
        : hierarchy(try_make(rate, burst, classes, nodes).value()) {}
    template <class Rep, class Period>
    static result<hierarchy> try_make(const std::string &rate, const std::chrono::duration<Rep, Period> &burst,
                                      std::uint32_t classes, policy_id nodes = policy_id::first) noexcept {
        return detail::made<hierarchy, tollbar_hierarchy>([&](tollbar_hierarchy **out) {
            return tollbar_hierarchy_new(rate.c_str(), detail::saturated(burst), classes, static_cast<std::uint32_t>(nodes), out);
        });
    }

    /// Adds a child of `parent`, and returns its number. An empty rate is no guarantee, or the
    /// ceiling of the parent. No other call may use the hierarchy at the same time. Throws
    /// errc::guarantee, errc::class_rate, errc::class_tree, errc::class_number or errc::capacity.
    std::uint32_t add(std::uint32_t parent, const std::string &name, const std::string &guaranteed = "",
                      const std::string &ceiling = "", std::uint32_t keys = 1) {
        return try_add(parent, name, guaranteed, ceiling, keys).value();
    }
    result<std::uint32_t> try_add(std::uint32_t parent, const std::string &name, const std::string &guaranteed = "",
                                  const std::string &ceiling = "", std::uint32_t keys = 1) noexcept {
        std::uint32_t number = 0;
        const std::int32_t code = tollbar_hierarchy_add(handle_.get(), parent, name.c_str(), guaranteed.c_str(),
                                                        ceiling.c_str(), keys, &number);
        return detail::done(code, number);
    }

    /// Takes `cost` permits for a leaf class, or for a key of it, from the leaf and from all
    /// classes above it, or from none.
    share take(const table &in, std::uint32_t leaf, const key &of, std::uint64_t cost = 1) const noexcept {
        share made;
        made.code_ = tollbar_hierarchy_take(handle_.get(), in.get(), leaf, of.data(), of.size(), cost, &made.raw_);
        return made;
    }
    share take(const table &in, std::uint32_t leaf) const noexcept { return take(in, leaf, key(nullptr, 0)); }
    /// take at the caller's time.
    share take_at(instant now, const table &in, std::uint32_t leaf, const key &of, std::uint64_t cost = 1) const noexcept {
        share made;
        made.code_ = tollbar_hierarchy_take_at(handle_.get(), in.get(), leaf, of.data(), of.size(), cost, now.get(), &made.raw_);
        return made;
    }

    /// Takes over a C handle.
    static hierarchy adopt(tollbar_hierarchy *made) noexcept { return hierarchy(handle(made)); }
    tollbar_hierarchy *get() const noexcept { return handle_.get(); }

private:
    struct deleter {
        void operator()(tollbar_hierarchy *made) const noexcept { tollbar_hierarchy_free(made); }
    };
    using handle = std::unique_ptr<tollbar_hierarchy, deleter>;
    explicit hierarchy(handle made) noexcept : handle_(std::move(made)) {}

    handle handle_;
};

} // namespace tollbar

#endif // TOLLBAR_HIERARCHY_HPP
