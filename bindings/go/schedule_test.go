//go:build cgo || tollbar_purego

package tollbar_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

func TestScheduleHasAPolicyInForce(t *testing.T) {
	hours, err := tollbar.ParseSchedule("1000/min, mon-fri 09:00-18:00 100/min, zone CET-1CEST,M3.5.0,M10.5.0/3")
	if err != nil {
		t.Fatal(err)
	}
	// 09:00 in Berlin. Clocks are set forward on Sunday.
	friday := time.Date(2026, 3, 27, 8, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		now    time.Time
		policy string
		until  time.Time
	}{
		{friday.Add(-1), "1000/min", friday},
		{friday, "100/min", friday.Add(9 * time.Hour)},
		{friday.Add(9 * time.Hour), "1000/min", friday.Add(71 * time.Hour)},
	} {
		if policy, until := hours.At(c.now); policy.String() != c.policy || !until.Equal(c.until) {
			t.Errorf("at %v: %v until %v", c.now, policy, until)
		}
	}
	if hours.String() != "1000/min, mon-fri 09:00-18:00 100/min, zone STD-1DST,M3.5.0,M10.5.0/3" {
		t.Error(hours)
	}
	constant, err := tollbar.ParseSchedule("5/s")
	if policy, until := constant.At(friday); err != nil || policy.Limit != 5 || !until.IsZero() {
		t.Error(policy, until, err)
	}
}

func TestALimiterFollowsASchedule(t *testing.T) {
	hours, err := tollbar.ParseSchedule("1000/h, 09:00-18:00 100/h")
	if err != nil {
		t.Fatal(err)
	}
	limiter := mustLimiter(t, "1000/h")
	if d, err := limiter.Check(950); err != nil || !d.Allowed() {
		t.Fatal(d, err)
	}
	policy, _ := hours.At(time.Date(2026, 3, 27, 10, 0, 0, 0, time.UTC))
	if err := limiter.SetPolicy(policy.String(), tollbar.KeepCount); err != nil {
		t.Fatal(err)
	}
	if d, err := limiter.Peek(1); err != nil || d.Remaining < 50 || d.Remaining > 60 {
		t.Error(d, err)
	}
}

func TestAScheduleThatIsWrongHasAColumn(t *testing.T) {
	_, err := tollbar.ParseSchedule("1/s, moon 2/s")
	var wrong *tollbar.PolicyError
	if !errors.As(err, &wrong) || wrong.Column != 6 {
		t.Error(err)
	}
}
