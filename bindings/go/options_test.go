package tollbar_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

// The times of one limiter may be of any epoch.
func TestAllowAtAnyEpoch(t *testing.T) {
	for _, begin := range []time.Time{
		{}, time.Unix(0, 0), time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(1_700_000_000, 0),
		time.Date(2025, 3, 13, 0, 0, 0, 0, time.UTC), time.Now(),
	} {
		limiter, err := tollbar.NewLimiter("1/s burst 2")
		if err != nil {
			t.Fatal(err)
		}
		at := begin.Add(time.Second)
		if !limiter.AllowAt(at, 2) || limiter.AllowAt(at, 1) || limiter.AllowAt(at.Add(time.Second-1), 1) ||
			!limiter.AllowAt(at.Add(time.Second), 1) {
			t.Errorf("from %v: not a permit each second", begin)
		}
		if !limiter.AllowAt(at, 0) || limiter.AllowAt(at.Add(time.Hour), -1) || limiter.AllowAt(at.Add(time.Hour), 3) {
			t.Errorf("from %v: wrong about 0, -1 or 3 permits", begin)
		}
		if d, err := limiter.CheckAt(limiter.TimeOf(at.Add(time.Hour)), 1); err != nil || d.Remaining != 1 {
			t.Errorf("from %v: %+v, %v", begin, d, err)
		}
	}
}

// Calls with time.Now and calls without a time count on one scale.
func TestAllowAtNow(t *testing.T) {
	for _, clock := range []tollbar.Clock{tollbar.ClockCounter, tollbar.ClockMonotonic, tollbar.ClockWall} {
		limiter, err := tollbar.NewLimiter("2/day", tollbar.WithClock(clock))
		if err != nil {
			t.Fatal(err)
		}
		if now, err := limiter.Now(); err != nil ||
			absolute(int64(limiter.TimeOf(time.Now())-now)) > int64(time.Minute) {
			t.Errorf("clock %d: %d, and time.Now is %d (%v)", clock, now, limiter.TimeOf(time.Now()), err)
		}
		if !limiter.AllowAt(time.Now(), 1) || !limiter.Allow() || limiter.Allow() || limiter.AllowAt(time.Now(), 1) {
			t.Errorf("clock %d: not two permits", clock)
		}
	}
}

func absolute(n int64) int64 { return max(n, -n) }

// A limiter with a clock of the caller goes by that in every call.
func TestWithTime(t *testing.T) {
	now := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	limiter, err := tollbar.NewLimiter("1/min burst 3", tollbar.WithTime(func() time.Time { return now }),
		tollbar.WithWaiters(2))
	if err != nil {
		t.Fatal(err)
	}
	if !limiter.Allow() || !limiter.AllowN(2) || limiter.Allow() {
		t.Error("not three permits at first")
	}
	now = now.Add(time.Minute - 1)
	if d, err := limiter.Peek(1); err != nil || d.RetryAfter != 1 {
		t.Errorf("a nanosecond before the permit: %+v, %v", d, err)
	}
	now = now.Add(1)
	if d, err := limiter.Check(1); err != nil || !d.Allowed() || d.RetryAfter != 0 {
		t.Errorf("with the permit: %+v, %v", d, err)
	}
	now = now.Add(time.Minute)
	if n, err := limiter.TakeUpTo(5); n != 1 || err != nil {
		t.Errorf("took %d, %v", n, err)
	}
	booked, err := limiter.Reserve(1, tollbar.Forever)
	if err != nil || booked.Wait != time.Minute {
		t.Errorf("%+v, %v", booked, err)
	}
	if back, err := limiter.Cancel(booked); back != 1 || err != nil {
		t.Errorf("%d, %v", back, err)
	}
	now = now.Add(time.Minute)
	if err := limiter.Wait(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := limiter.Charge(1); err != nil {
		t.Error(err)
	}
	if s, err := limiter.State(); err != nil || s.Remaining != 0 || s.RetryAfter != 2*time.Minute ||
		s.Now != limiter.TimeOf(now) {
		t.Errorf("%+v, %v", s, err)
	}
	now = now.Add(2 * time.Minute)
	verdicts := make([]tollbar.Verdict, 2)
	if err := limiter.CheckMany(nil, verdicts); err != nil || verdicts[0] != tollbar.Allowed ||
		verdicts[1] != tollbar.Denied {
		t.Errorf("%v, %v", verdicts, err)
	}
	if at, err := limiter.Now(); err != nil || at != limiter.TimeOf(now) {
		t.Errorf("%d, %v", at, err)
	}
	now = now.Add(time.Minute)
	if _, err := tollbar.TakeMany(limiter.Limit(1)); !errors.Is(err, tollbar.ErrOptionMismatch) {
		t.Error(err)
	}
	if taken, err := tollbar.TakeManyAt(limiter.TimeOf(now), nil, limiter.Limit(1)); err != nil || !taken.Allowed() {
		t.Errorf("%+v, %v", taken, err)
	}
	limiter.AllowN(9)
	for limiter.Allow() {
	}
	err = limiter.SetPolicy("2/min algo fixed-window", tollbar.KeepCount)
	if err != nil && !errors.Is(err, tollbar.ErrNeedsLibrary) || limiter.Allow() {
		t.Error(err, "or a permit came back")
	}
	if _, err := limiter.MoreAfter(1, tollbar.Decision{}); !errors.Is(err, tollbar.ErrOptionMismatch) {
		t.Error(err)
	}
}

func TestNewLimiterOf(t *testing.T) {
	policy := tollbar.Policy{Algorithm: tollbar.GCRA, Limit: 5, Period: time.Minute, Burst: 2}
	limiter, err := tollbar.NewLimiterOf(policy)
	if err != nil {
		t.Fatal(err)
	}
	if limiter.Policy() != policy || fmt.Sprint(limiter) != "tollbar.Limiter(5/min burst 2)" {
		t.Errorf("%v", limiter)
	}
	var wrong *tollbar.PolicyError
	if _, err := tollbar.NewLimiterOf(tollbar.Policy{Limit: 5}); !errors.As(err, &wrong) {
		t.Error(err)
	}
	table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 10}, policy.String())
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(table) != "tollbar.Table(5/min burst 2)" {
		t.Errorf("%v", table)
	}
	_ = limiter.Close()
	_ = table.Close()
	if fmt.Sprint(limiter, table) != "tollbar.Limiter(closed) tollbar.Table(closed)" {
		t.Errorf("%v %v", limiter, table)
	}
}

// Zero values refuse, and say that they are closed.
func TestZeroValues(t *testing.T) {
	var limiter tollbar.Limiter
	var table tollbar.Table
	var keys tollbar.Keys
	if limiter.Allow() || limiter.AllowN(0) || limiter.AllowAt(time.Now(), 1) || table.Allow("k") ||
		keys.Allow("k") || keys.AllowN("k", 0) {
		t.Error("a zero value admits")
	}
	ctx := context.Background()
	for name, call := range map[string]func() error{
		"Limiter.Check":      func() error { _, err := limiter.Check(1); return err },
		"Limiter.Wait":       func() error { return limiter.Wait(ctx) },
		"Limiter.Reserve":    func() error { _, err := limiter.Reserve(1, 0); return err },
		"Limiter.Cancel":     func() error { _, err := limiter.Cancel(tollbar.Reservation{}); return err },
		"Limiter.State":      func() error { _, err := limiter.State(); return err },
		"Limiter.Now":        func() error { _, err := limiter.Now(); return err },
		"Limiter.CheckMany":  func() error { return limiter.CheckMany(nil, make([]tollbar.Verdict, 1)) },
		"Limiter.SetPolicy":  func() error { return limiter.SetPolicy("1/s", tollbar.KeepReset) },
		"Limiter.Reset":      limiter.Reset,
		"Limiter.MoreAfter":  func() error { _, err := limiter.MoreAfter(1, tollbar.Decision{}); return err },
		"TakeMany, limiter":  func() error { _, err := tollbar.TakeMany(limiter.Limit(1)); return err },
		"TakeMany, table":    func() error { _, err := tollbar.TakeMany(table.Limit("k", 1)); return err },
		"Table.Check":        func() error { _, err := table.Check("k", 1); return err },
		"Table.Now":          func() error { _, err := table.Now(); return err },
		"Table.Policy":       func() error { _, err := table.Policy(0); return err },
		"Keys.Check":         func() error { _, err := keys.Check("k", 1); return err },
		"Keys.Peek":          func() error { _, err := keys.Peek("k", 1); return err },
		"Keys.Charge":        func() error { _, err := keys.Charge("k", 1); return err },
		"Keys.Wait":          func() error { return keys.Wait(ctx, "k") },
		"Keys.Reserve":       func() error { _, err := keys.Reserve("k", 1, 0); return err },
		"Table.Under().Wait": func() error { return table.Under(0).Wait(ctx, "k") },
	} {
		if err := call(); !errors.Is(err, tollbar.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if limiter.Policy() != (tollbar.Policy{}) || fmt.Sprint(&limiter, " ",
		&table) != "tollbar.Limiter(closed) tollbar.Table(closed)" {
		t.Errorf("%v %v", &limiter, &table)
	}
	if limiter.Close() != nil || table.Close() != nil {
		t.Error("Close")
	}
}
