// Green, yellow and red packets.
#include "test.hpp"

#include <chrono>

#include "tollbar.hpp"

using namespace std::chrono_literals;
using tollbar::color;
using tollbar::meter;

TEST(a_meter_of_one_rate) {
    tollbar_meter_state state = {};
    const auto one = meter::single_rate(1000, 1s, 3000, 1500);
    const auto now = 1h;
    CHECK(one.color_at(now, state, 3000) == color::green && one.color_at(now, state, 1500) == color::yellow);
    CHECK(one.color_at(now, state, 1) == color::red);
    CHECK(one.color_at(now + 3s, state, 0) == color::green && one.color_at(now + 4s, state, 1000, color::yellow) == color::yellow);
    CHECK(one.color_at(now + 4s, state, 1, color::red) == color::red);
    tollbar_meter_state other = {};
    CHECK(one.color_of(other, 3000) == color::green && one.get()->committed_burst == 3000);
}

TEST(a_meter_of_two_rates) {
    tollbar_meter_state state = {};
    const auto two = meter::two_rates(1000, 2000, 1s, 3000, 4000);
    CHECK(two.color_at(1h, state, 3000) == color::green && two.color_at(1h, state, 1000) == color::yellow);
    CHECK(two.color_at(1h, state, 1) == color::red);
}

TEST(a_wrong_meter_is_an_error_and_passes_nothing) {
    tollbar_meter_state state = {};
    tollbar_meter raw = *meter::single_rate(1000, 1s, 1, 0).get();
    raw.committed_burst = 0;
    CHECK(meter(raw).try_validate().why().code == tollbar::errc::burst_zero);
    CHECK(meter(raw).color_of(state, 1) == color::red);
    CHECK_THROWS(tollbar::error, meter::single_rate(1000, 0s, 1, 1), e, e.code() == tollbar::errc::period_zero);
    CHECK_THROWS(tollbar::error, meter::two_rates(1000, 999, 1s, 1, 1), e, e.code() == tollbar::errc::rate_too_high);
    CHECK_THROWS(tollbar::error, meter::two_rates(1000, 0, 1s, 1, 1), e, e.code() == tollbar::errc::rate_too_high);
}
