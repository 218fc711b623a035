/* tollbar/store_limit.hpp: limits that a store decides. Part of tollbar_redis.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_STORE_LIMIT_HPP
#define TOLLBAR_STORE_LIMIT_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "../tollbar_redis.h"
#include "decision.hpp"
#include "error.hpp"
#include "key.hpp"
#include "policy.hpp"

namespace tollbar {

/// What the program asks the store for by one call of a script: false if no call is needed.
class store_question {
public:
    explicit operator bool() const noexcept { return raw_.script != nullptr; }
    /// In Lua, NUL-terminated. It returns an array of whole numbers.
    const char *script() const noexcept { return raw_.script; }
    /// The only key of the script, which may have any bytes.
    std::string_view key() const noexcept { return {reinterpret_cast<const char *>(raw_.key), raw_.key_length}; }
    /// The arguments, which the script takes in decimal.
    const std::uint64_t *begin() const noexcept { return raw_.args; }
    const std::uint64_t *end() const noexcept { return raw_.args + raw_.arg_count; }
    std::size_t size() const noexcept { return raw_.arg_count; }
    const tollbar_store_question *get() const noexcept { return &raw_; }

private:
    friend class store_limit;
    store_question() noexcept : raw_(detail::blank<tollbar_store_question>()) {}
    tollbar_store_question raw_;
};

/// A limit that a Redis or Valkey store decides, through the Redis client that the program has:
///
///     const tollbar::store_limit logins("logins", "5/min");
///     const auto question = logins.check(address);
///     const std::vector<std::int64_t> numbers = evalsha(redis, question);
///     if (logins.answer(question, numbers.data(), numbers.size()).allowed())
///
/// Any number of threads may use one limit at once.
class store_limit {
public:
    store_limit(std::string_view name, const spec &policy) : store_limit(try_make(name, policy).value()) {}
    static result<store_limit> try_make(std::string_view name, const spec &policy) noexcept {
        return detail::made<store_limit, tollbar_store_limit>(
            [&](auto **out) { return tollbar_store_limit_new(name.data(), name.size(), policy.get(), out); });
    }

    /// Takes `cost` permits of a key of 1 to 512 bytes, or none.
    store_question check(const key &of, std::uint64_t cost = 1) const { return ask(TOLLBAR_STORE_CHECK, of, cost).value(); }
    /// The decision of check, which takes nothing.
    store_question peek(const key &of, std::uint64_t cost = 1) const { return ask(TOLLBAR_STORE_PEEK, of, cost).value(); }
    /// Takes as many permits as are left, up to `most`.
    store_question take_up_to(const key &of, std::uint64_t most) const { return ask(TOLLBAR_STORE_UP_TO, of, most).value(); }
    /// Forgets the key.
    store_question reset(const key &of) const { return ask(TOLLBAR_STORE_RESET, of, 0).value(); }
    /// The same by a TOLLBAR_STORE_ number, without exceptions.
    result<store_question> ask(std::uint32_t what, const key &of, std::uint64_t cost) const noexcept {
        store_question made;
        return detail::done(tollbar_store_ask(get(), what, of.data(), of.size(), cost, &made.raw_), made);
    }

    /// The decision by the numbers that the script returned. Unless null, `*taken` gets the permits
    /// that the store has charged.
    decision answer(const store_question &to, const std::int64_t *numbers, std::size_t count, std::uint64_t *taken = nullptr) const noexcept {
        return decision::of([&](auto *out) { return tollbar_store_answer(get(), to.get(), numbers, count, out, taken); });
    }

    static store_limit adopt(tollbar_store_limit *made) noexcept { return store_limit(handle(made)); }
    tollbar_store_limit *get() const noexcept { return handle_.get(); }
    explicit operator bool() const noexcept { return handle_ != nullptr; }

private:
    struct deleter {
        void operator()(tollbar_store_limit *made) const noexcept { tollbar_store_limit_free(made); }
    };
    using handle = std::unique_ptr<tollbar_store_limit, deleter>;
    explicit store_limit(handle made) noexcept : handle_(std::move(made)) {}

    handle handle_;
};

} // namespace tollbar

#endif // TOLLBAR_STORE_LIMIT_HPP
