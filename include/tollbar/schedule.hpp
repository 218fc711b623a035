/* tollbar/schedule.hpp: another policy by time of day and day of the week. Part of tollbar.hpp.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TOLLBAR_SCHEDULE_HPP
#define TOLLBAR_SCHEDULE_HPP

#include <cstdint>
#include <optional>
#include <string>

#include "decision.hpp"
#include "error.hpp"
#include "policy.hpp"

namespace tollbar {

/// The policy that a schedule has in force.
struct in_force {
    /// The policy.
    spec policy;
    /// The time since 1970 at which another policy comes into force. Empty if none does.
    std::optional<nanoseconds> until;
};

/// Which policy is in force at which time of the week. tollbar.h ("Schedules") has the grammar.
///
///     const tollbar::schedule hours = "1000/min, mon-fri 09:00-18:00 100/min, zone Europe/Berlin";
///     table.set_policy(0, hours.at(tollbar::now(tollbar::clock_source::wall)).policy);          // once a second
class schedule {
public:
    /// From text. Throws policy_error, which has the column of the fault.
    template <class Text, detail::if_text<Text> = 0> schedule(const Text &text) : schedule(try_parse(text).value()) {}

    template <class Text, detail::if_text<Text> = 0> static result<schedule> try_parse(const Text &text) {
        const std::string_view view = detail::text_of(text);
        std::string made(TOLLBAR_SCHEDULE_TEXT_MAX, '\0');
        std::size_t length = 0;
        auto error = detail::blank<tollbar_policy_error>();
        const std::int32_t code = tollbar_schedule_print(view.data(), view.size(), &made[0], made.size(), &length, &error);
        if (code != 0)
            return failure{static_cast<errc>(code), 0, error.column, error.expected};
        made.resize(length);
        return schedule(made, checked());
    }

    /// The policy in force at a time since 1970, such as that of clock_source::wall or of
    /// std::chrono::system_clock.
    in_force at(instant unix_time) const noexcept {
        auto raw = detail::blank<tollbar_policy_spec>();
        std::uint64_t until = 0;
        // The constructor has read this text.
        tollbar_schedule_at(text_.data(), text_.size(), unix_time.get(), &raw, &until, nullptr);
        return in_force{spec(raw), detail::if_any(until)};
    }

    /// The canonical text, with the zone's rule in place of its name.
    const std::string &text() const noexcept { return text_; }

private:
    struct checked {};
    schedule(std::string &text, checked) noexcept : text_(std::move(text)) {}

    std::string text_;
};

} // namespace tollbar

#endif // TOLLBAR_SCHEDULE_HPP
