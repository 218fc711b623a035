/* tollbar/metrics.hpp: counts and sizes of limiters and tables for Prometheus, and how long decisions
 * take. Part of tollbar.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_METRICS_HPP
#define TOLLBAR_METRICS_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "decision.hpp"
#include "error.hpp"
#include "limiter.hpp"
#include "table.hpp"

namespace tollbar {

/// A limiter or a table, and the value of the label `limit` of its series. It owns nothing: the
/// name and the limiter or table must live until the call returns.
class metrics_source {
public:
    metrics_source(std::string_view name, const limiter &of) noexcept : raw_{name.data(), name.size(), of.get(), nullptr, 0} {}
    metrics_source(std::string_view name, const table &of) noexcept : raw_{name.data(), name.size(), nullptr, of.get(), 0} {}

private:
    tollbar_metrics_source raw_;
};

static_assert(sizeof(metrics_source) == sizeof(tollbar_metrics_source) && std::is_standard_layout_v<metrics_source>,
              "an array of sources is C's");

enum class metrics_format : std::uint32_t {
    /// Prometheus' text format 0.0.4.
    prometheus = TOLLBAR_METRICS_PROMETHEUS,
    /// OpenMetrics 1.0. The text ends with the line `# EOF`, after which the format allows no
    /// further metrics.
    openmetrics = TOLLBAR_METRICS_OPENMETRICS,
};

/// The metrics of at most TOLLBAR_METRICS_MOST sources as text. tollbar.h ("Metrics") lists them.
///
///     const std::array<tollbar::metrics_source, 2> sources = {{{"api", limiter}, {"logins", table}}};
///     response.body = tollbar::metrics(sources);
inline result<std::string> try_metrics(span<const metrics_source> sources, metrics_format format = metrics_format::prometheus) {
    return detail::printed(4096, [&](char *buffer, std::size_t capacity, std::size_t *length) {
        return tollbar_metrics(reinterpret_cast<const tollbar_metrics_source *>(sources.data()), sources.size(),
                               static_cast<std::uint32_t>(format), buffer, capacity, length);
    });
}
inline std::string metrics(span<const metrics_source> sources, metrics_format format = metrics_format::prometheus) {
    return try_metrics(sources, format).value();
}

/// A histogram of how long calls take, of one in TOLLBAR_TIMES_EVERY. A program puts its decisions
/// into of():
///
///     static tollbar::times times;
///     if (!times.of([&] { return logins.check(address); }))
///         return try_later();
///
/// The other calls add 1 to a counter. Threads may share the object, and then share its cache
/// lines. Of threads that count at the same instant one may be lost.
class times {
public:
    times() noexcept = default;
    times(const times &) = delete;
    times &operator=(const times &) = delete;

    /// Calls `decide` and returns its result.
    template <class Decide> decltype(auto) of(Decide &&decide) {
        // Its end is measured after an exception, too.
        const struct call {
            tollbar_times *times;
            std::uint64_t begin;
            ~call() { TOLLBAR_TIMES_END(times, begin); }
        } measured = {&raw_, TOLLBAR_TIMES_BEGIN(&raw_)};
        return std::forward<Decide>(decide)();
    }
    /// The C struct.
    const tollbar_times *get() const noexcept { return &raw_; }

private:
    tollbar_times raw_{};
};

/// Times, and the value of the label `limit` of their series. It owns nothing: the name and the
/// times must live until the call returns.
class times_source {
public:
    times_source(std::string_view name, const times &of) noexcept : raw_{name.data(), name.size(), of.get()} {}

private:
    tollbar_times_source raw_;
};

static_assert(sizeof(times_source) == sizeof(tollbar_times_source) && std::is_standard_layout_v<times_source>,
              "an array of sources is C's");

/// The histograms tollbar_decision_nanoseconds of at most TOLLBAR_METRICS_MOST sources, in
/// Prometheus' text format. The text goes before that of metrics(), which may end with `# EOF`.
inline result<std::string> try_times_metrics(span<const times_source> sources) {
    return detail::printed(4096, [&](char *buffer, std::size_t capacity, std::size_t *length) {
        return tollbar_times_metrics(reinterpret_cast<const tollbar_times_source *>(sources.data()), sources.size(),
            buffer, capacity,
                                     length);
    });
}
inline std::string times_metrics(span<const times_source> sources) { return try_times_metrics(sources).value(); }

} // namespace tollbar

#endif // TOLLBAR_METRICS_HPP
