/* tollbar/route.hpp: which of several nodes a key belongs to. Part of tollbar.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_ROUTE_HPP
#define TOLLBAR_ROUTE_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "decision.hpp"
#include "error.hpp"
#include "key.hpp"

namespace tollbar {

/// A node, named by bytes that must live until the call returns. Its share of the keys is its
/// weight by the sum of all weights.
class node {
public:
    node(std::string_view name, std::uint32_t weight = 1) noexcept : raw_{name.data(), name.size(), weight, 0} {}

private:
    tollbar_node raw_;
};

static_assert(sizeof(node) == sizeof(tollbar_node) && std::is_standard_layout_v<node>, "an array of nodes is C's");

/// The index of the node that the key belongs to: the same for all callers that know the same nodes
/// and the seed. Empty if no node has a weight above 0, or with no nodes or more than
/// TOLLBAR_NODES_MOST. tollbar.h ("Routes") is its manual.
///
///     const std::array<tollbar::node, 2> nodes = {{{"10.0.0.1", 1}, {"10.0.0.2", 2}}};   // the second gets two thirds of the keys
///     const auto index = tollbar::route(nodes, user, seed);
inline std::optional<std::size_t> route(span<const node> nodes, const key &of, std::uint64_t seed) noexcept {
    std::size_t index = 0;
    const auto *first = reinterpret_cast<const tollbar_node *>(nodes.data());
    const bool found = tollbar_route(first, nodes.size(), of.data(), of.size(), seed, &index) == TOLLBAR_YES;
    return found ? std::optional(index) : std::nullopt;
}

} // namespace tollbar

#endif // TOLLBAR_ROUTE_HPP
