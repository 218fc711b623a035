/* tollbar/key.hpp: what a table knows requests by. Part of tollbar.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_KEY_HPP
#define TOLLBAR_KEY_HPP

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "error.hpp"

namespace tollbar {

/// The number of a table's policy: its index among the policies that the table was made with, or
/// the result of add_policy.
enum class policy_id : std::uint32_t { first = 0 };

/// The bytes of a key, and the number of its policy. Like std::string_view, a key owns nothing.
/// Make it in the call:
///
///     table.check("192.0.2.1");               // text
///     table.check({address, logins});         // under another policy than the first
///     table.check(tollbar::bytes_of(user_id)) // a number, or a struct without padding
///
/// A key without bytes is a missing key. The table's options say how the table decides on such
/// requests.
class key {
public:
    /// `size` bytes at `data`.
    constexpr key(const void *data, std::size_t size, policy_id policy = policy_id::first) noexcept
        : data_(data), size_(size), policy_(policy) {}
    /// A NUL-terminated text, without the NUL. A null pointer is a missing key.
    key(const char *text, policy_id policy = policy_id::first) noexcept
        : key(text, text == nullptr ? 0 : std::string_view(text).size(), policy) {}
    /// Any type with data() and size(): strings, views, vectors, arrays and spans. Two elements
    /// must be equal if and only if their bytes are equal.
    template <class Range, class Element = std::remove_pointer_t<decltype(std::declval<const Range &>().data())>,
              class = decltype(std::declval<const Range &>().size()),
              std::enable_if_t<std::has_unique_object_representations_v<Element>, int> = 0>
    constexpr key(const Range &range, policy_id policy = policy_id::first) noexcept
        : key(range.data(), range.size() * sizeof(Element), policy) {}

    constexpr const void *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr policy_id policy() const noexcept { return policy_; }

private:
    const void *data_;
    std::size_t size_;
    policy_id policy_;
};

/// The bytes of a value as a key: numbers, enums, and arrays and structs of them. A type that can
/// have different bytes for one value (padding, floating point) does not compile, because one value
/// would be several keys.
template <class T> key bytes_of(const T &value, policy_id policy = policy_id::first) noexcept {
    static_assert(std::has_unique_object_representations_v<T>, "equal values must have equal bytes");
    static_assert(!std::is_pointer_v<T>, "the bytes of a pointer, not of what it points to");
    return key(static_cast<const void *>(&value), sizeof value, policy);
}

/// A network prefix as a key. A host can use another IPv6 address for every request, so a limit for
/// each IPv6 address limits nothing. The default is the /64 of an IPv6 address.
///
///     const auto client = tollbar::prefix::try_parse(text);
///     if (!client || !table.check(*client))
///         return refuse();
class prefix {
public:
    /// The first bits of an address in text, such as "192.0.2.1" or "[2001:db8::1]:80". A port and
    /// a zone do not count. Throws errc::address, or errc::out_of_range for more bits than an
    /// address has.
    explicit prefix(std::string_view text, std::uint32_t ipv4_bits = 32, std::uint32_t ipv6_bits = 64)
        : prefix(try_parse(text, ipv4_bits, ipv6_bits).value()) {}
    static result<prefix> try_parse(std::string_view text, std::uint32_t ipv4_bits = 32,
                                    std::uint32_t ipv6_bits = 64) noexcept {
        prefix made;
        return detail::done(tollbar_prefix_parse(text.empty() ? "" : text.data(), text.size(), ipv4_bits, ipv6_bits,
                                                 &made.raw_),
                            made);
    }

    /// The first bits of an address in network byte order, such as an in_addr (4 bytes) or in6_addr
    /// (16 bytes). IPv4-mapped IPv6 addresses are treated as IPv4.
    template <class Address>
    static prefix from_address(const Address &address, std::uint32_t ipv4_bits = 32, std::uint32_t ipv6_bits = 64) {
        return try_from_address(address, ipv4_bits, ipv6_bits).value();
    }
    template <class Address>
    static result<prefix> try_from_address(const Address &address, std::uint32_t ipv4_bits = 32,
                                 std::uint32_t ipv6_bits = 64) noexcept {
        static_assert(std::is_trivially_copyable_v<Address> && (sizeof(Address) == 4 || sizeof(Address) == 16) &&
                          !std::is_pointer_v<Address>,
                      "an address of 4 or 16 bytes; try_from_address(data, size) takes bytes");
        return try_from_address(&address, sizeof address, ipv4_bits, ipv6_bits);
    }
    /// The same for `size` bytes at `data`.
    static result<prefix> try_from_address(const void *data, std::size_t size, std::uint32_t ipv4_bits,
                                 std::uint32_t ipv6_bits) noexcept {
        prefix made;
        return detail::done(tollbar_prefix_from_address(data, size, ipv4_bits, ipv6_bits, &made.raw_), made);
    }

    /// A network of trusted proxies, for of_client: "10.0.0.0/8", one address, or "unix:" for
    /// connections by a Unix socket. Throws errc::address.
    static prefix network(std::string_view text) { return try_network(text).value(); }
    static result<prefix> try_network(std::string_view text) noexcept {
        prefix made;
        return detail::done(tollbar_network_parse(text.empty() ? "" : text.data(), text.size(), &made.raw_), made);
    }

    /// The client behind trusted proxies, whose `count` networks begin at `proxies`: the peer or,
    /// if it is one of these, the right-most address of `forwarded` (X-Forwarded-For) that none of
    /// them has. Throws errc::address if the client has none.
    static prefix of_client(std::string_view peer, std::string_view forwarded, const prefix *proxies, std::size_t count,
                            std::uint32_t ipv4_bits = 32, std::uint32_t ipv6_bits = 64) {
        return try_of_client(peer, forwarded, proxies, count, ipv4_bits, ipv6_bits).value();
    }
    static result<prefix> try_of_client(std::string_view peer, std::string_view forwarded, const prefix *proxies,
                                        std::size_t count, std::uint32_t ipv4_bits = 32,
                                        std::uint32_t ipv6_bits = 64) noexcept {
        static_assert(sizeof(prefix) == sizeof(tollbar_prefix), "an array of prefixes is one of C's");
        prefix made;
        return detail::done(tollbar_prefix_of_client(peer.empty() ? "" : peer.data(), peer.size(),
                                                     forwarded.empty() ? "" : forwarded.data(), forwarded.size(),
                                                     count == 0 ? nullptr : &proxies->raw_, count, ipv4_bits, ipv6_bits,
                                                     &made.raw_),
                            made);
    }

    /// The bytes of the key: the family (4 or 6), the number of bits that count, those bits of the
    /// address, and zeroes.
    const std::uint8_t *data() const noexcept { return raw_.bytes; }
    std::size_t size() const noexcept { return raw_.length; }
    const tollbar_prefix *get() const noexcept { return &raw_; }

    friend bool operator==(const prefix &a, const prefix &b) noexcept { return a.view() == b.view(); }
    friend bool operator!=(const prefix &a, const prefix &b) noexcept { return !(a == b); }

private:
    prefix() noexcept = default;
    std::string_view view() const noexcept { return {reinterpret_cast<const char *>(raw_.bytes), raw_.length}; }

    tollbar_prefix raw_ = TOLLBAR_PREFIX_INIT;
};

} // namespace tollbar

#endif // TOLLBAR_KEY_HPP
