package tollbar_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

// These tests hold in all builds. In Go alone a policy that only the library can read or step has
// the error ErrNeedsLibrary.

// vectors reads a file of golden vectors into to.
func vectors(t *testing.T, name string, to any) {
	t.Helper()
	text, err := os.ReadFile("../../ffi-tests/vectors/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, to); err != nil {
		t.Fatal(err)
	}
}

func answer(d tollbar.Decision) [3]uint64 {
	retryAfter := uint64(d.RetryAfter / time.Nanosecond)
	if d.RetryAfter == tollbar.Forever {
		retryAfter = 1<<64 - 1
	}
	return [3]uint64{uint64(d.Verdict), d.Remaining, retryAfter}
}

// The golden vectors: limiters give the decisions of the oracle (tests/algorithm/vectors.rs
// describes the file).
func TestLimitersGiveTheOraclesDecisions(t *testing.T) {
	var all []struct {
		Policy string
		// Each is the time, the cost, the verdict, the permits left and the nanoseconds until the
		// request would be admitted.
		Steps [][5]uint64
	}
	vectors(t, "decisions.json", &all)
	decided := 0
	for _, vector := range all {
		limiter, err := tollbar.NewLimiterWith(vector.Policy, tollbar.LimiterOptions{Clock: tollbar.ClockWall})
		if errors.Is(err, tollbar.ErrNeedsLibrary) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		decided++
		for n, step := range vector.Steps {
			d, err := limiter.CheckAt(step[0], step[1])
			if got := answer(d); err != nil || got != [3]uint64(step[2:]) {
				t.Errorf("%s, step %d: %v, not %v (%v)", vector.Policy, n, got, step[2:], err)
			}
		}
	}
	if decided < 24 {
		t.Errorf("%d policies decided", decided)
	}
}

// The golden vectors of texts: policies, and the errors of texts that are none
// (tests/policy/policy_vectors.rs describes the file).
func TestTextsAreReadAsTheCoreReadsThem(t *testing.T) {
	var all []struct {
		Text string
		// The canonical text, or else the error's number, column and expectation.
		Policy   string
		Last     uint64
		Code     int32
		Column   int
		Expected string
	}
	vectors(t, "policies.json", &all)
	read, refused := 0, 0
	for _, vector := range all {
		policy, err := tollbar.ParsePolicy(vector.Text)
		var why *tollbar.PolicyError
		switch {
		case errors.Is(err, tollbar.ErrNeedsLibrary):
		case errors.As(err, &why) && why.Column != 0:
			refused++
			if int32(why.Code) != vector.Code || why.Column != vector.Column || vector.Expected != "" && why.Expected != vector.Expected {
				t.Errorf("%q: %+v, not %+v", vector.Text, why, vector)
			}
		case err != nil || vector.Code != 0:
			t.Errorf("%q: %v, not %+v", vector.Text, err, vector)
		default:
			read++
			if last, err := policy.LastTime(); err != nil || last != vector.Last || policy.String() != vector.Policy {
				t.Errorf("%q: %s until %d (%v), not %+v", vector.Text, policy, last, err, vector)
			}
		}
	}
	if read < 40 || refused < 50 {
		t.Errorf("%d texts read, %d refused", read, refused)
	}
}

// A policy as a struct and as text is the same policy.
func TestPoliciesAreTextAndStruct(t *testing.T) {
	for _, text := range []string{"100/s burst 20", "5/s burst 4 ban 2s after 3", "3/min algo interval anchor first", "10/forever", "7/s borrow init 3"} {
		policy, err := tollbar.ParsePolicy(text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := tollbar.ParsePolicy(policy.String())
		if err != nil || again != policy || policy.Check() != nil {
			t.Errorf("%s: %+v, then %+v (%v)", text, policy, again, err)
		}
	}
	var why *tollbar.PolicyError
	if err := (tollbar.Policy{Limit: 1, Period: time.Second, Burst: 2, Init: 3, HasInit: true}).Check(); !errors.As(err, &why) || why.Code != tollbar.ErrInitAboveBurst {
		t.Errorf("%v", err)
	}
	if err := (tollbar.Policy{Limit: 1, Period: time.Second}).Check(); !errors.Is(err, tollbar.ErrBurstZero) {
		t.Errorf("%v", err)
	}
}

// A time that a time.Duration cannot hold is refused and not shortened.
func TestTimesAboveADurationAreRefused(t *testing.T) {
	for _, text := range []string{"1/18446744073s", "10/s ban 18446744073s", "10/s ban 18446744073s after 3"} {
		if policy, err := tollbar.ParsePolicy(text); !errors.Is(err, tollbar.ErrNumberTooLarge) && !errors.Is(err, tollbar.ErrNeedsLibrary) {
			t.Errorf("%s: %+v (%v)", text, policy, err)
		}
	}
}

// Goroutines with a limiter admit exactly the burst at one instant, and the limiter counts their
// decisions.
func TestGoroutinesShareALimiterExactly(t *testing.T) {
	for _, text := range []string{"1000/day", "1000/day algo fixed-window", "1000/day algo weighted-window", "1000/day ban 1h after 1000", "1000/forever"} {
		limiter, err := tollbar.NewLimiter(text)
		if err != nil {
			t.Fatal(err)
		}
		var admitted atomic.Uint64
		var all sync.WaitGroup
		const now = uint64(1e18)
		for range 8 {
			all.Add(1)
			go func() {
				defer all.Done()
				for range 500 {
					if tollbar.AllowNanos(limiter, now, 1) {
						admitted.Add(1)
					}
				}
			}()
		}
		all.Wait()
		state, err := limiter.State()
		if admitted.Load() != 1000 || err != nil || state.Allowed != 1000 || state.Denied != 3000 {
			t.Errorf("%s: %d admitted, %+v (%v)", text, admitted.Load(), state, err)
		}
	}
}

// Bookings come one after the other, and the latest one comes back whole.
func TestBookingsAndCancels(t *testing.T) {
	limiter, err := tollbar.NewLimiter("1/min burst 1")
	if err != nil {
		t.Fatal(err)
	}
	now, err := limiter.Now()
	if err != nil || now < uint64(365*24*time.Hour) {
		t.Fatalf("%d (%v)", now, err)
	}
	first, err := limiter.ReserveAt(now, 1, 0)
	if err != nil || first.Wait != 0 {
		t.Fatalf("%+v (%v)", first, err)
	}
	if _, err := limiter.ReserveAt(now, 1, 59*time.Second); err != tollbar.ErrDenied {
		t.Fatal(err)
	}
	if _, err := limiter.ReserveAt(now, 2, tollbar.Forever); err != tollbar.ErrNever {
		t.Fatal(err)
	}
	second, err := limiter.ReserveAt(now, 1, tollbar.Forever)
	if err != nil || second.Wait != time.Minute || second.Departs != now+uint64(time.Minute) {
		t.Fatalf("%+v (%v)", second, err)
	}
	if back, err := limiter.CancelAt(now, second); err != nil || back != 1 {
		t.Fatalf("%d (%v)", back, err)
	}
	if again, err := limiter.ReserveAt(now, 1, tollbar.Forever); err != nil || again != second {
		t.Fatalf("%+v (%v)", again, err)
	}
}

// Wait returns in its turn, refuses what would come too late, and ends with the context.
func TestWaitsEnd(t *testing.T) {
	for _, text := range []string{"50/s burst 1", "1/20ms algo fixed-window"} {
		limiter, err := tollbar.NewLimiter(text)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 4 {
			if err := limiter.Wait(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		// Four permits take more than two periods of 20 ms. The machine may be slow.
		if took := time.Since(began); took < 40*time.Millisecond {
			t.Errorf("%s: four waits took %s", text, took)
		}
	}
	slow, err := tollbar.NewLimiter("1/h")
	if err != nil {
		t.Fatal(err)
	}
	if !slow.Allow() || slow.Allow() {
		t.Error("not 1/h")
	}
	soon, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := slow.Wait(soon); !errors.Is(err, tollbar.ErrDenied) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := slow.Wait(cancelled); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := slow.WaitN(context.Background(), 2); err != tollbar.ErrNever {
		t.Error(err)
	}
}

// After Close calls return ErrClosed or false. A batch decides its requests in turn.
func TestBatchesAndClose(t *testing.T) {
	limiter, err := tollbar.NewLimiter("10/h")
	if err != nil {
		t.Fatal(err)
	}
	verdicts := make([]tollbar.Verdict, 3)
	if err := limiter.CheckMany([]uint64{9, 2, 1}, verdicts); err != nil || [3]tollbar.Verdict(verdicts) != [3]tollbar.Verdict{tollbar.Allowed, tollbar.Denied, tollbar.Allowed} {
		t.Errorf("%v (%v)", verdicts, err)
	}
	if rest, err := limiter.Charge(15); err != nil || rest != 5 {
		t.Errorf("%d (%v)", rest, err)
	}
	if err := limiter.Reset(); err != nil {
		t.Error(err)
	}
	if taken, err := limiter.TakeUpTo(20); err != nil || taken != 10 {
		t.Errorf("%d (%v)", taken, err)
	}
	if limiter.Policy().String() != "10/h" {
		t.Error(limiter.Policy())
	}
	limiter.Close()
	if _, err := limiter.Check(1); limiter.Allow() || err != tollbar.ErrClosed {
		t.Error(err)
	}
}

// A quota's period has no number in Go, so a parsed quota is compared with one that is made.
func TestQuotaIsForever(t *testing.T) {
	read, err := tollbar.ParsePolicy("500/forever")
	made := tollbar.Policy{Algorithm: tollbar.Quota, Limit: 500, Period: tollbar.Forever, Burst: 500}
	if err != nil || read != made || made.String() != "500/forever" {
		t.Fatalf("%+v is not %+v (%v)", read, made, err)
	}
	limiter, err := tollbar.NewLimiter(made.String())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := limiter.CheckAt(1, 500); err != nil || !got.Allowed() {
		t.Fatalf("%v (%v)", got, err)
	}
	if got, err := limiter.CheckAt(1<<60, 1); err != nil || got.RetryAfter != tollbar.Forever {
		t.Fatalf("%v (%v)", got, err)
	}
}
