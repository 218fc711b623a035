/* tollbar/http.hpp: header fields of HTTP, written by servers and read by clients. Part of tollbar.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_HTTP_HPP
#define TOLLBAR_HTTP_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "decision.hpp"
#include "error.hpp"
#include "key.hpp"
#include "limiter.hpp"
#include "policy.hpp"
#include "table.hpp"

namespace tollbar {
namespace http {

/// The fields to write. Join values by |, with at most one of the two `legacy` values and at most
/// one of the three `draft` values.
enum class fields : std::uint32_t {
    /// Retry-After of a refused request, in seconds.
    retry_after = TOLLBAR_HTTP_RETRY_AFTER,
    /// X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset in seconds from now.
    legacy = TOLLBAR_HTTP_LEGACY,
    /// The fields of legacy, with the reset in seconds since 1970.
    legacy_epoch = TOLLBAR_HTTP_LEGACY_EPOCH,
    /// draft-ietf-httpapi-ratelimit-headers 00 to 06.
    draft_06 = TOLLBAR_HTTP_DRAFT_06,
    /// Draft 07.
    draft_07 = TOLLBAR_HTTP_DRAFT_07,
    /// Drafts 08 to 11.
    draft_11 = TOLLBAR_HTTP_DRAFT_11,
};

constexpr fields operator|(fields a, fields b) noexcept {
    return static_cast<fields>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}

/// A limit of a request and its decision, for the fields that tell a client about it. It owns
/// nothing: the name, the policy, the decision and the partition key must live until the call
/// returns.
class limit {
public:
    /// `more` is the time until more permits are left (more_after). `partition` is the partition
    /// key of drafts 08 to 11, which clients see.
    limit(std::string_view name, const spec &policy, const decision &made, std::optional<nanoseconds> more = std::nullopt,
          std::string_view partition = {}) noexcept
        : raw_{name.data(),      name.size(), policy.get(), &made.get(), more ? tollbar::detail::saturated(*more) : TOLLBAR_NO_TIME,
               partition.data(), partition.size()} {}

private:
    tollbar_http_limit raw_;
};

static_assert(sizeof(limit) == sizeof(tollbar_http_limit) && std::is_standard_layout_v<limit>, "an array of limits is C's");

/// The lines of an answer's header for 1 to TOLLBAR_HTTP_LIMITS_MOST limits. A line is a field's
/// name, a colon, a space, the value, CR and LF. Only fields::legacy_epoch uses `since_1970`, the
/// time.
///
///     const auto decision = table.check(user);
///     const tollbar::http::limit limit("per-minute", policy, decision, tollbar::http::more_after(table, user, 1, decision));
///     response.header() += tollbar::http::lines({&limit, 1}, fields::retry_after | fields::draft_11);
inline result<std::string> try_lines(span<const limit> limits, fields what, nanoseconds since_1970 = nanoseconds(0)) {
    return tollbar::detail::printed(512, [&](char *buffer, std::size_t capacity, std::size_t *length) {
        return tollbar_http_fields(reinterpret_cast<const tollbar_http_limit *>(limits.data()), limits.size(),
                                   static_cast<std::uint32_t>(what), tollbar::detail::saturated(since_1970), buffer, capacity, length);
    });
}
inline std::string lines(span<const limit> limits, fields what, nanoseconds since_1970 = nanoseconds(0)) {
    return try_lines(limits, what, since_1970).value();
}

/// The body of a refusal, of the media type application/problem+json (RFC 9457), with the names of
/// the limits that refuse.
inline result<std::string> try_problem(span<const limit> limits, std::uint32_t status = 429) {
    return tollbar::detail::printed(512, [&](char *buffer, std::size_t capacity, std::size_t *length) {
        return tollbar_http_problem(reinterpret_cast<const tollbar_http_limit *>(limits.data()), limits.size(), status, buffer, capacity,
                                    length);
    });
}
inline std::string problem(span<const limit> limits, std::uint32_t status = 429) { return try_problem(limits, status).value(); }

/// The limits that a server's header fields describe. A member is empty if no field gives it.
struct seen {
    /// Permits per window.
    std::optional<std::uint64_t> limit;
    std::optional<nanoseconds> window;
    /// The permits left.
    std::optional<std::uint64_t> remaining;
    /// The time until more permits are left.
    std::optional<nanoseconds> more_after;
    /// The time to wait before the next request.
    std::optional<nanoseconds> retry_after;
};

/// Reads a server's limits from the lines of its answer's header, as tollbar_http_read does.
/// `since_1970` is the time of the answer; dates and epochs are counted from it.
inline seen read(std::string_view lines, nanoseconds since_1970) noexcept {
    auto raw = tollbar::detail::blank<tollbar_http_seen>();
    seen found;
    if (tollbar_http_read(lines.data(), lines.size(), tollbar::detail::saturated(since_1970), &raw) != TOLLBAR_YES)
        return found;
    const auto number = [](std::uint64_t n) { return n == UINT64_MAX ? std::nullopt : std::optional(n); };
    found.limit = number(raw.limit);
    found.remaining = number(raw.remaining);
    found.window = tollbar::detail::if_any(raw.window_ns);
    found.more_after = tollbar::detail::if_any(raw.more_after_ns);
    found.retry_after = tollbar::detail::if_any(raw.retry_after_ns);
    return found;
}

/// The time after a decision until the key has more permits than the decision's `remaining`, as
/// tollbar_table_more_after computes it. Empty: no permit is missing, none will come back, or the
/// time is unknown.
inline std::optional<nanoseconds> more_after(const table &of, const key &with, std::uint64_t cost, const decision &made) noexcept {
    std::uint64_t more = TOLLBAR_NO_TIME;
    tollbar_table_more_after(of.get(), static_cast<std::uint32_t>(with.policy()), with.data(), with.size(), cost, &made.get(), &more);
    return tollbar::detail::if_any(more);
}
/// The same at the time of the decision.
inline std::optional<nanoseconds> more_after_at(instant now, const table &of, const key &with, std::uint64_t cost,
                                                const decision &made) noexcept {
    std::uint64_t more = TOLLBAR_NO_TIME;
    tollbar_table_more_after_at(of.get(), static_cast<std::uint32_t>(with.policy()), with.data(), with.size(), cost, now.get(), &made.get(),
                                &more);
    return tollbar::detail::if_any(more);
}

/// The same for a limiter.
inline std::optional<nanoseconds> more_after(const limiter &of, std::uint64_t cost, const decision &made) noexcept {
    std::uint64_t more = TOLLBAR_NO_TIME;
    tollbar_limiter_more_after(of.get(), cost, &made.get(), &more);
    return tollbar::detail::if_any(more);
}
inline std::optional<nanoseconds> more_after_at(instant now, const limiter &of, std::uint64_t cost, const decision &made) noexcept {
    std::uint64_t more = TOLLBAR_NO_TIME;
    tollbar_limiter_more_after_at(of.get(), cost, now.get(), &made.get(), &more);
    return tollbar::detail::if_any(more);
}

} // namespace http
} // namespace tollbar

#endif // TOLLBAR_HTTP_HPP
