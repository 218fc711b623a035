/* tollbar/hot_keys.hpp: keys of a table that many threads ask for. Part of tollbar.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_HOT_KEYS_HPP
#define TOLLBAR_HOT_KEYS_HPP

#include <cstdint>
#include <memory>

#include "decision.hpp"
#include "error.hpp"
#include "key.hpp"
#include "table.hpp"

namespace tollbar {

/// What one thread has in advance for the keys of a table that it asks for most often: requests for those are decided without
/// the table, within the same bound (tollbar_hot_keys in tollbar.h). One a thread; the table must outlive it.
///
///     thread_local tollbar::hot_keys hot(tenants, 1000);
///     if (!hot.check(tenant))
///         return too_many_requests();
class hot_keys {
public:
    /// Room for about so many keys, 64 to 65,536. Throws error where there is no memory.
    hot_keys(const table &of, std::uint32_t keys) : hot_keys(try_make(of, keys).value()) {}
    static result<hot_keys> try_make(const table &of, std::uint32_t keys) noexcept {
        return detail::made<hot_keys, tollbar_hot_keys>([&](auto **out) { return tollbar_hot_keys_new(of.get(), keys, out); });
    }

    /// Takes `cost` permits of the key now. A cost of 0 asks without charging.
    verdict check(const key &of, std::uint64_t cost = 1) noexcept {
        return verdict(tollbar_hot_keys_check(get(), static_cast<std::uint32_t>(of.policy()), of.data(), of.size(), cost));
    }
    /// The same at the caller's time: on the scale of the table's now(), or another that all callers of the table share.
    verdict check_at(instant now, const key &of, std::uint64_t cost = 1) noexcept {
        return verdict(
            tollbar_hot_keys_check_at(get(), static_cast<std::uint32_t>(of.policy()), of.data(), of.size(), cost, now.get()));
    }

    /// Takes over what tollbar_hot_keys_new made.
    static hot_keys adopt(tollbar_hot_keys *made) noexcept { return hot_keys(handle(made)); }
    tollbar_hot_keys *get() noexcept { return handle_.get(); }
    /// Gives the handle away, to be ended with tollbar_hot_keys_free.
    [[nodiscard]] tollbar_hot_keys *release() noexcept { return handle_.release(); }
    /// Whether it holds one, which it does until it is moved from.
    explicit operator bool() const noexcept { return handle_ != nullptr; }

private:
    struct deleter {
        void operator()(tollbar_hot_keys *made) const noexcept { tollbar_hot_keys_free(made); }
    };
    using handle = std::unique_ptr<tollbar_hot_keys, deleter>;
    explicit hot_keys(handle made) noexcept : handle_(std::move(made)) {}

    handle handle_;
};

} // namespace tollbar

#endif // TOLLBAR_HOT_KEYS_HPP
