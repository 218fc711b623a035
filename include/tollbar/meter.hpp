/* tollbar/meter.hpp: green, yellow and red packets. Part of tollbar.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_METER_HPP
#define TOLLBAR_METER_HPP

#include <cstdint>
#include <optional>

#include "decision.hpp"
#include "error.hpp"

namespace tollbar {

/// The colour of a packet. A later one is worse.
enum class color : std::uint32_t {
    green = TOLLBAR_COLOR_GREEN,
    yellow = TOLLBAR_COLOR_YELLOW,
    red = TOLLBAR_COLOR_RED,
};

/// What a meter measures: RFC 2697 (one rate) or RFC 2698 (two rates), in bytes. tollbar.h
/// ("Meters") is its manual.
///
///     tollbar_meter_state uploads = {};                                       // shared by threads, or by processes in shared memory
///     const auto meter = tollbar::meter::single_rate(1000000, 1s, 100000, 50000);
///     if (meter.color_of(uploads, length) == tollbar::color::red)
///         return drop(packet);
class meter {
public:
    /// `bytes` per period, with the committed and the excess burst. Throws as validate.
    template <class Rep, class Period>
    static meter single_rate(std::uint64_t bytes, const std::chrono::duration<Rep, Period> &period, std::uint64_t committed_burst,
                             std::uint64_t excess_burst) {
        return meter(bytes, detail::saturated(period), committed_burst, 0, excess_burst);
    }
    /// The committed and the peak bytes per period, each with its burst. Throws as validate.
    template <class Rep, class Period>
    static meter two_rates(std::uint64_t bytes, std::uint64_t peak_bytes, const std::chrono::duration<Rep, Period> &period,
                           std::uint64_t committed_burst, std::uint64_t peak_burst) {
        // A peak rate of 0 would be one rate.
        if (peak_bytes == 0)
            result<void>(failure{errc::rate_too_high}).value();
        return meter(bytes, detail::saturated(period), committed_burst, peak_bytes, peak_burst);
    }
    /// From the C struct. Calls with a struct that no meter can have answer red.
    explicit meter(const tollbar_meter &raw) noexcept : raw_(raw) {}

    /// Throws the error of the numbers, if any.
    void validate() const { try_validate().value(); }
    result<void> try_validate() const noexcept { return detail::done(tollbar_meter_validate(&raw_)); }

    /// The colour of a packet, whose bytes are charged to the buckets of that colour. `before` is
    /// the colour that an earlier meter gave. Red also after an error, so a wrong meter passes
    /// nothing.
    color color_of(tollbar_meter_state &state, std::uint64_t bytes, color before = color::green) const noexcept {
        return of(tollbar_meter_color(&raw_, &state, bytes, static_cast<std::uint32_t>(before)));
    }
    color color_at(instant now, tollbar_meter_state &state, std::uint64_t bytes, color before = color::green) const noexcept {
        return of(tollbar_meter_color_at(&raw_, &state, bytes, static_cast<std::uint32_t>(before), now.get()));
    }

    const tollbar_meter *get() const noexcept { return &raw_; }

private:
    meter(std::uint64_t bytes, std::uint64_t period, std::uint64_t burst, std::uint64_t peak, std::uint64_t second)
        : raw_{static_cast<std::uint32_t>(sizeof(tollbar_meter)), 0, bytes, period, burst, peak, second} {
        validate();
    }
    static color of(std::int32_t code) noexcept { return code < 0 ? color::red : static_cast<color>(code); }

    tollbar_meter raw_;
};

} // namespace tollbar

#endif // TOLLBAR_METER_HPP
