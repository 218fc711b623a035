//go:build cgo || tollbar_purego

package tollbar_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

func mustLimiter(t testing.TB, policy string) *tollbar.Limiter {
	t.Helper()
	limiter, err := tollbar.NewLimiter(policy)
	if err != nil {
		t.Fatal(err)
	}
	return limiter
}

func TestALimiterLetsItsBurstPass(t *testing.T) {
	for _, policy := range []string{
		"3/day", "3/day algo interval anchor first", "3/day algo fixed-window anchor first", "3/day algo weighted-window",
		"3/day algo sliding-window segments 4 mode strict anchor first", "3/day algo sliding-log", "3/day burst 3 init 3",
	} {
		limiter := mustLimiter(t, policy)
		for i, want := range []bool{true, true, true, false, false} {
			if got := limiter.Allow(); got != want {
				t.Errorf("%s: call %d: %v", policy, i, got)
			}
		}
		if err := limiter.Reset(); err != nil || !limiter.AllowN(3) || limiter.AllowN(1) {
			t.Errorf("%s: not as fresh after Reset (%v)", policy, err)
		}
	}
}

// A sender of 100 MB/s in costs of 1,500 bytes is off by less than one cost after 10 s, and one that
// takes what there is by nothing.
func TestS37BytesArePermits(t *testing.T) {
	const policy, cost, bytes = "100mb/s burst 15000 unit bytes", 1500, uint64(15_000 + 10*100_000_000)
	whole, all := mustLimiter(t, policy), mustLimiter(t, policy)
	var sent, got uint64
	for now := uint64(1000 * time.Second); now <= uint64(1010*time.Second); now += uint64(100 * time.Microsecond) {
		for d, _ := whole.CheckAt(now, cost); d.Allowed(); d, _ = whole.CheckAt(now, cost) {
			sent += cost
		}
		taken, err := all.TakeUpToAt(now, math.MaxUint64)
		if err != nil {
			t.Fatal(err)
		}
		got += taken
	}
	if got != bytes || sent > bytes || bytes-sent >= cost {
		t.Errorf("%d in whole costs, %d of what there was; want %d", sent, got, bytes)
	}
}

func TestAnswersInFull(t *testing.T) {
	limiter := mustLimiter(t, "10/s burst 2")
	const second = uint64(time.Second)
	d, err := limiter.CheckAt(second, 2)
	if err != nil || d != (tollbar.Decision{Verdict: tollbar.Allowed, ResetAfter: 200 * time.Millisecond}) ||
		!d.Allowed() {
		t.Errorf("%+v, %v", d, err)
	}
	d, _ = limiter.PeekAt(second, 1)
	if d != (tollbar.Decision{
		Verdict: tollbar.Denied, Reason: tollbar.ReasonRate,
		RetryAfter: 100 * time.Millisecond, ResetAfter: 200 * time.Millisecond,
	}) {
		t.Errorf("%+v", d)
	}
	if d, _ = limiter.CheckAt(second, 3); d.Verdict != tollbar.Never || d.RetryAfter != tollbar.Forever {
		t.Errorf("%+v", d)
	}
	if !tollbar.AllowNanos(limiter, second, 0) || tollbar.AllowNanos(limiter, second+99999999, 1) ||
		!tollbar.AllowNanos(limiter, second+100000000, 1) {
		t.Error("not to the nanosecond")
	}
	if taken, err := limiter.TakeUpToAt(2*second, 5); taken != 2 || err != nil {
		t.Errorf("took %d, %v", taken, err)
	}
	booked, err := limiter.ReserveAt(2*second, 1, time.Second)
	wait := booked.Wait
	if wait != 100*time.Millisecond || err != nil {
		t.Errorf("reserved for %v, %v", wait, err)
	}
	if _, err = limiter.ReserveAt(2*second, 2, 100*time.Millisecond); !errors.Is(err, tollbar.ErrDenied) {
		t.Error(err)
	}
	if _, err = limiter.ReserveAt(2*second, 3, tollbar.Forever); !errors.Is(err, tollbar.ErrNever) {
		t.Error(err)
	}
}

// A limiter with credit admits the burst less what threads may have in advance; a burst below 32
// has no credit.
func TestCredit(t *testing.T) {
	for _, one := range []struct {
		policy      string
		least, most uint64
	}{{"800/day", 700, 799}, {"31/day", 31, 31}} {
		limiter, err := tollbar.NewLimiterWith(one.policy, tollbar.LimiterOptions{Credit: true})
		if err != nil {
			t.Fatal(err)
		}
		taken := uint64(0)
		for tollbar.AllowNanos(limiter, 3600e9, 1) {
			taken++
		}
		if state, _ := limiter.State(); taken < one.least || taken > one.most || state.Allowed != taken {
			t.Errorf("%s: %d, %+v", one.policy, taken, state)
		}
	}
	_, err := tollbar.NewLimiterWith("2/min algo pacer", tollbar.LimiterOptions{Credit: true})
	if !errors.Is(err, tollbar.ErrOptionMismatch) {
		t.Error(err)
	}
}

func TestByTheClock(t *testing.T) {
	clocks := []tollbar.Clock{tollbar.ClockCounter, tollbar.ClockMonotonic, tollbar.ClockCoarse, tollbar.ClockWall}
	for _, clock := range clocks {
		limiter, err := tollbar.NewLimiterWith("2/min", tollbar.LimiterOptions{Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		before, _ := limiter.Now()
		if taken, _ := limiter.TakeUpTo(5); taken != 2 {
			t.Errorf("clock %d: took %d", clock, taken)
		}
		d, _ := limiter.Peek(1)
		// The coarse clock moves in steps of milliseconds.
		if took := time.Since(began) + 100*time.Millisecond; d.RetryAfter < 30*time.Second-took ||
			d.RetryAfter > 30*time.Second {
			t.Errorf("clock %d: %+v after %v", clock, d, took)
		}
		state, err := limiter.State()
		now, _ := limiter.Now()
		if err != nil || state.Remaining != 0 || state.Now == 0 || state.Now < before || state.Now > now {
			t.Errorf("clock %d: %+v from %d to %d, %v", clock, state, before, now, err)
		}
		limiter.Allow()
		limiter.AllowN(3)
		if s, _ := limiter.State(); s.Allowed != 1 || s.Denied != 1 || s.Never != 1 {
			t.Errorf("clock %d: %+v", clock, s)
		}
	}
	_, err := tollbar.NewLimiterWith("2/min", tollbar.LimiterOptions{Clock: 9})
	if !errors.Is(err, tollbar.ErrOutOfRange) {
		t.Error(err)
	}
	if _, err := tollbar.Now(9); !errors.Is(err, tollbar.ErrOutOfRange) {
		t.Error(err)
	}
}

func TestBatches(t *testing.T) {
	limiter := mustLimiter(t, "5/day")
	verdicts := make([]tollbar.Verdict, 4)
	if err := limiter.CheckMany([]uint64{2, 9, 2, 2}, verdicts); err != nil {
		t.Fatal(err)
	}
	want := [4]tollbar.Verdict{tollbar.Allowed, tollbar.Never, tollbar.Allowed, tollbar.Denied}
	if [4]tollbar.Verdict(verdicts) != want {
		t.Errorf("%v, want %v", verdicts, want)
	}
	now, _ := limiter.Now()
	if err := limiter.CheckManyAt(now, nil, verdicts[:2]); err != nil || verdicts[0] != tollbar.Allowed ||
		verdicts[1] != tollbar.Denied {
		t.Errorf("%v, %v", verdicts, err)
	}
	if err := limiter.CheckMany(nil, nil); err != nil {
		t.Error(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a batch of fewer costs than verdicts")
		}
	}()
	_ = limiter.CheckMany([]uint64{1}, verdicts)
}

func TestNothingIsAllocated(t *testing.T) {
	limiter, verdicts := mustLimiter(t, "1000/s"), make([]tollbar.Verdict, 64)
	table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 10}, "1000/s")
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	address := []byte("2001:db8::1")
	var batch tollbar.Batch
	for name, f := range map[string]func(){
		"Limiter.Allow":     func() { limiter.Allow() },
		"Limiter.Check":     func() { _, _ = limiter.Check(1) },
		"Limiter.CheckMany": func() { _ = limiter.CheckMany(nil, verdicts) },
		"Limiter.Reserve":   func() { _, _ = limiter.Reserve(1, 0) },
		"Table.Allow":       func() { table.Allow("key") },
		"a key of bytes":    func() { table.Allow(string(address)) },
		"Table.Check":       func() { _, _ = table.Check("key", 1) },
		"Keys.Peek":         func() { _, _ = table.Under(0).Peek("key", 1) },
		"Keys.TakeUpTo":     func() { _, _ = table.Under(0).TakeUpTo("key", 1) },
		"Table.CheckMany": func() {
			batch.Clear()
			for range 64 {
				batch.Add("key")
			}
			_ = table.CheckMany(&batch)
		},
	} {
		if n := testing.AllocsPerRun(100, f); n > allocationsMost {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestTheErrorSaysTheColumn(t *testing.T) {
	for _, c := range []struct {
		text   string
		code   tollbar.Code
		column int
		says   string
	}{
		{"100/x", tollbar.ErrSyntax, 5, "column 5: expected"},
		{"", tollbar.ErrSyntax, 1, "column 1: expected"},
		{"100/s algo fifo", tollbar.ErrAlgorithm, 12, "column 12: expected"},
		{"100/s burst 1 burst 2", tollbar.ErrDuplicateOption, 15, "column 15"},
		{"100/s slack 3", tollbar.ErrOptionMismatch, 0, "100/s slack 3"},
		{"99999999999999999999/s", tollbar.ErrNumberTooLarge, 1, "column 1"},
		{"1/s burst 0", tollbar.ErrBurstZero, 0, "burst"},
		{"100\x00/s", tollbar.ErrSyntax, 4, "column 4"},
	} {
		_, err := tollbar.NewLimiter(c.text)
		var refused *tollbar.PolicyError
		if !errors.As(err, &refused) || !errors.Is(err, c.code) || errors.Is(err, tollbar.ErrNever) {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if c.column != 0 && refused.Column != c.column || refused.Text != c.text ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: column %d: %v", c.text, refused.Column, err)
		}
		if _, parse := tollbar.ParsePolicy(c.text); !errors.Is(parse, c.code) {
			t.Errorf("%q: ParsePolicy: %v", c.text, parse)
		}
	}
}

// M6: the most that a policy admits in a window.
func TestM6WorstCases(t *testing.T) {
	policy, err := tollbar.ParsePolicy("120/min")
	if err != nil {
		t.Fatal(err)
	}
	for window, want := range map[time.Duration]uint64{time.Minute: 239, time.Hour: 7319, 1: 120, 0: 0, -1: 0} {
		if most, err := policy.WorstCase(window); err != nil || most != want {
			t.Errorf("%v: %d (%v), expected %d", window, most, err, want)
		}
	}
	if _, err := (tollbar.Policy{Limit: 1}).WorstCase(time.Second); err == nil {
		t.Error("a policy without a period has a worst case")
	}
}

func TestS54CurvesOfFunctions(t *testing.T) {
	square := func(time float64) float64 { return time * time }
	policy, fit, err := tollbar.CurvePolicy(1_000_000, time.Minute, square)
	if err != nil || fit.Error <= 0 || fit.Error >= 0.001 {
		t.Fatalf("%+v, %v", fit, err)
	}
	if again, err := tollbar.ParsePolicy(policy.String()); err != nil || again != policy {
		t.Errorf("%v is read as %v (%v)", policy, again, err)
	}
	limiter := mustLimiter(t, policy.String())
	var sum uint64
	for n := uint64(1); n <= 1000; n++ {
		at := uint64(time.Hour) + min(n*uint64(time.Minute)/1000, uint64(time.Minute)-1)
		taken, err := limiter.TakeUpToAt(at, 2_000_000)
		if sum += taken; err != nil || sum+1000 < n*n || sum > n*n+1000 {
			t.Fatalf("%d after %d thousandths", sum, n)
		}
	}
	if sum != 1_000_000 {
		t.Errorf("a slice has %d permits", sum)
	}
	_, _, err = tollbar.CurvePolicy(100, time.Minute, func(time float64) float64 { return math.Sqrt(time - 0.25) })
	var why *tollbar.CurveError
	if !errors.As(err, &why) || why.Time != 0 || !math.IsNaN(why.Value) || !errors.Is(err, tollbar.ErrOutOfRange) {
		t.Errorf("%v", err)
	}
	if _, _, err := tollbar.CurvePolicy(100, 0, square); err == nil {
		t.Error("a period of 0 is taken")
	}
}

func TestPoliciesAsText(t *testing.T) {
	for _, text := range []string{
		"100/s burst 20", "3/min algo interval burst 3 anchor first", "10/100ms burst 20 init 0", "5/s borrow",
		"120/min algo sliding-window segments 6 mode strict",
		"10/s algo pacer burst 10 slack 4", "7/h algo sliding-log count rejected",
		"1000000/s burst 5000000 unit bytes", "1000/s algo warm-up warm 2s cold 3",
	} {
		policy, err := tollbar.ParsePolicy(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		again, err := tollbar.ParsePolicy(policy.String())
		if err != nil || again != policy || policy.Check() != nil {
			t.Errorf("%s: %+v, as text %q: %+v, %v", text, policy, policy, again, err)
		}
		var read tollbar.Policy
		written, err := policy.MarshalText()
		if err != nil || read.UnmarshalText(written) != nil || read != policy {
			t.Errorf("%s: %s, %v", text, written, err)
		}
	}
	bucket := tollbar.Policy{Limit: 100, Period: time.Second, Burst: 20}
	if bucket.String() != "100/s burst 20" || bucket.Algorithm.String() != "gcra" {
		t.Errorf("%v", bucket)
	}
	wrong := tollbar.Policy{Algorithm: 99, Limit: 1, Period: 1, Burst: 1}
	if _, err := wrong.MarshalText(); err == nil || wrong.Check() == nil {
		t.Error("a policy of no algorithm has a text")
	}
	if _, err := tollbar.NewLimiter(wrong.String()); err == nil {
		t.Error("its String makes a limiter")
	}
	if _, err := tollbar.ParsePolicy("1/200000d"); !errors.Is(err, tollbar.ErrNumberTooLarge) {
		t.Errorf("a period that Go has no number for: %v", err)
	}
}

func TestAfterClose(t *testing.T) {
	limiter := mustLimiter(t, "100/s")
	for range 2 {
		if err := limiter.Close(); err != nil {
			t.Error(err)
		}
	}
	if limiter.Allow() || limiter.AllowN(1) || tollbar.AllowNanos(limiter, 1, 1) {
		t.Error("allowed")
	}
	verdicts := []tollbar.Verdict{tollbar.Allowed}
	for i, f := range []func() error{
		func() error { _, err := limiter.Check(1); return err },
		func() error { _, err := limiter.CheckAt(1, 1); return err },
		func() error { _, err := limiter.Peek(1); return err },
		func() error { _, err := limiter.PeekAt(1, 1); return err },
		func() error { _, err := limiter.TakeUpTo(1); return err },
		func() error { _, err := limiter.Charge(1); return err },
		func() error { _, err := limiter.ChargeAt(1, 1); return err },
		func() error { _, err := limiter.TakeUpToAt(1, 1); return err },
		func() error { _, err := limiter.Reserve(1, 0); return err },
		func() error { _, err := limiter.ReserveAt(1, 1, 0); return err },
		func() error { _, err := limiter.State(); return err },
		func() error { return limiter.Reset() },
		func() error { return limiter.Wait(context.Background()) },
		func() error { return limiter.CheckMany(nil, verdicts) },
		func() error { return limiter.CheckManyAt(1, nil, verdicts) },
	} {
		if err := f(); !errors.Is(err, tollbar.ErrClosed) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if verdicts[0] != tollbar.Denied {
		t.Error("a batch that failed says allowed")
	}
}

// Calls, Close and the garbage collector at once: nothing is freed under a call.
func TestCloseAmidCalls(t *testing.T) {
	for range 60 {
		limiter := mustLimiter(t, "1000000/s algo sliding-window segments 512")
		var calls atomic.Int64
		var all sync.WaitGroup
		for range 4 {
			all.Add(1)
			go func() {
				defer all.Done()
				for limiter.AllowN(1) || calls.Load() == 0 {
					calls.Add(1)
				}
			}()
		}
		for calls.Load() < 10 {
			runtime.Gosched()
		}
		limiter.Close()
		all.Wait()
	}
	runtime.GC()
}

func TestVersion(t *testing.T) {
	if v := tollbar.Version(); strings.Count(v, ".") != 2 {
		t.Error(v)
	}
}

func TestAPolicyChanges(t *testing.T) {
	limiter := mustLimiter(t, "10/h")
	if !limiter.AllowN(4) || limiter.SetPolicy("100/h", tollbar.KeepCount) != nil {
		t.Fatal("not changed")
	}
	if decision, _ := limiter.Peek(1); decision.Remaining != 6 || limiter.Policy().Limit != 100 {
		t.Errorf("%+v under %+v", decision, limiter.Policy())
	}
	var refused *tollbar.PolicyError
	if err := limiter.SetPolicy("100/mn", tollbar.KeepCount); !errors.As(err, &refused) {
		t.Error(err)
	}
	if err := limiter.SetPolicy("100/h", tollbar.Keep(9)); !errors.Is(err, tollbar.ErrOutOfRange) {
		t.Error(err)
	}
	// From an algorithm that books ahead to one that does not.
	if err := limiter.SetPolicy("20/h algo sliding-log", tollbar.KeepReset); err != nil {
		t.Error(err)
	}
	if taken, _ := limiter.TakeUpTo(99); taken != 20 {
		t.Error(taken)
	}
	if _, err := limiter.Reserve(1, tollbar.Forever); !errors.Is(err, tollbar.ErrDenied) {
		t.Error(err)
	}
	limiter.Close()
	if err := limiter.SetPolicy("1/s", tollbar.KeepCount); !errors.Is(err, tollbar.ErrClosed) {
		t.Error(err)
	}
}

func TestAListOfTwoPolicies(t *testing.T) {
	limiter := mustLimiter(t, "10/s; 25/day")
	const second, day = uint64(time.Second), uint64(24 * time.Hour)
	for n := uint64(0); n < 2; n++ {
		if d, err := limiter.CheckAt(day+n*second, 10); err != nil || !d.Allowed() {
			t.Errorf("%+v, %v", d, err)
		}
	}
	if d, _ := limiter.CheckAt(day+2*second, 6); d.Verdict != tollbar.Denied || d.Bound != 1 || d.Remaining != 5 {
		t.Errorf("%+v", d)
	}
	policy, err := tollbar.ParsePolicy("10 per second; 1000/24 hours")
	if err != nil || policy.SecondLimit != 1000 || policy.SecondPeriod != 24*time.Hour || policy.SecondBurst != 1000 {
		t.Errorf("%+v, %v", policy, err)
	}
	if policy.String() != "10/s; 1000/day" {
		t.Error(policy.String())
	}
	if _, err := policy.Cell(); !errors.Is(err, tollbar.ErrNotOneWord) {
		t.Error("a Go cell has one bucket", err)
	}
	if _, err := tollbar.NewLimiter("100/s; 1000000/day"); !errors.Is(err, tollbar.ErrList) {
		t.Error(err)
	}
}
