//go:build cgo || tollbar_purego

package tollbar_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

const sec = uint64(time.Second)

func keysOf(t testing.TB, policies ...string) *tollbar.Table {
	t.Helper()
	return mustTable(t, tollbar.TableOptions{Capacity: 100}, policies...)
}

func peeked(d tollbar.Decision, err error) bool { return err == nil && d.Allowed() }

// The expectations of ffi-tests/c/take_many_test.c.
func TestTheLongestWaitBinds(t *testing.T) {
	second, hour, table := mustLimiter(t, "2/s"), mustLimiter(t, "5/h"), keysOf(t, "3/min")
	each := make([]tollbar.Decision, 3)
	taken, err := tollbar.TakeManyAt(sec, each, second.Limit(1), table.Limit("k", 1), hour.Limit(1))
	want := tollbar.Taken{Verdict: tollbar.Allowed, Reason: tollbar.ReasonAdmitted, Remaining: 1, ResetAfter: 720 * time.Second}
	if err != nil || taken != want || !taken.Allowed() {
		t.Errorf("%+v, %v", taken, err)
	}
	if each[0].Remaining != 1 || each[1].Remaining != 2 || each[2].Remaining != 4 {
		t.Errorf("%+v", each)
	}
	taken, err = tollbar.TakeManyAt(sec, nil, second.Limit(3), table.Limit("k", 3), hour.Limit(1))
	if err != nil || taken.Verdict != tollbar.Never || taken.Bound != 0 || taken.RetryAfter != tollbar.Forever {
		t.Errorf("%+v, %v", taken, err)
	}
	limits := []tollbar.Limit{second.Limit(2), table.Limit("k", 3), hour.Limit(1)}
	taken, err = tollbar.TakeManyAt(sec, each, limits...)
	if err != nil || taken.Verdict != tollbar.Denied || taken.Bound != 1 || taken.Reason != tollbar.ReasonRate || taken.RetryAfter != 20*time.Second {
		t.Errorf("%+v, %v", taken, err)
	}
	if each[0].RetryAfter != time.Second/2 || !each[2].Allowed() {
		t.Errorf("%+v", each)
	}
	// A refusal has charged none of them.
	if taken, _ = tollbar.TakeManyAt(sec, nil, limits...); taken.Allowed() {
		t.Error("admitted")
	}
	if !peeked(second.PeekAt(sec, 1)) || !peeked(table.Under(0).PeekAt("k", sec, 2)) || !peeked(hour.PeekAt(sec, 4)) {
		t.Error("charged")
	}
}

func TestTakeManyByTheLimitsOwnClocks(t *testing.T) {
	day, table := mustLimiter(t, "1/day"), keysOf(t, "1/min", "1/day")
	limits := []tollbar.Limit{table.Under(1).Limit("k", 1), day.Limit(1)}
	first, _ := tollbar.TakeMany(limits...)
	second, _ := tollbar.TakeMany(limits...)
	third, _ := tollbar.TakeMany(limits[0])
	minute, _ := tollbar.TakeMany(table.Limit("k", 1))
	if !first.Allowed() || second.Allowed() || third.Allowed() || !minute.Allowed() {
		t.Error(first, second, third, minute)
	}
}

func TestBadLimitsChargeNothing(t *testing.T) {
	limiter, table := mustLimiter(t, "3/s"), keysOf(t, "3/s")
	closed, closedTable := mustLimiter(t, "3/s"), keysOf(t, "3/s")
	_, _ = closed.Close(), closedTable.Close()
	many := make([]tollbar.Limit, 17)
	for i := range many {
		many[i] = limiter.Limit(1)
	}
	for name, c := range map[string]struct {
		limits []tollbar.Limit
		want   tollbar.Code
		says   string
	}{
		"none":           {nil, tollbar.ErrLimits, "1 to 16 limits, not 0"},
		"seventeen":      {many, tollbar.ErrLimits, "1 to 16 limits, not 17"},
		"no limit":       {[]tollbar.Limit{limiter.Limit(1), {}}, tollbar.ErrLimits, "limit 1: "},
		"no policy":      {[]tollbar.Limit{limiter.Limit(1), table.Under(7).Limit("k", 1)}, tollbar.ErrNoSuchPolicy, "tollbar: "},
		"closed":         {[]tollbar.Limit{table.Limit("k", 1), closed.Limit(1)}, 0, "limit 1: "},
		"a closed table": {[]tollbar.Limit{limiter.Limit(1), table.Limit("k", 1), closedTable.Limit("k", 1)}, 0, "limit 2: "},
	} {
		taken, err := tollbar.TakeManyAt(sec, nil, c.limits...)
		want := error(c.want)
		if c.want == 0 {
			want = tollbar.ErrClosed
		}
		if taken.Allowed() || taken.Reason != tollbar.ReasonFault || !errors.Is(err, want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %+v, %v", name, taken, err)
		}
	}
	few := make([]tollbar.Decision, 1)
	if _, err := tollbar.TakeManyEach(few, limiter.Limit(1), table.Limit("k", 1)); err != tollbar.ErrBufferTooSmall {
		t.Error(err)
	}
	if !peeked(limiter.PeekAt(sec, 3)) || !peeked(table.Under(0).PeekAt("k", sec, 3)) {
		t.Error("charged")
	}
	// No call is left inside the table, so Close does not wait.
	if taken, err := tollbar.TakeManyAt(sec, nil, limiter.Limit(1), table.Limit("k", 1)); err != nil || !taken.Allowed() || table.Close() != nil {
		t.Error(taken, err)
	}
}

func TestAnEmptyKeyIsNone(t *testing.T) {
	taken, err := tollbar.TakeMany(keysOf(t, "3/s").Limit("", 1))
	if err != nil || taken.Allowed() || taken.Reason != tollbar.ReasonMissingKey {
		t.Error(taken, err)
	}
}

func TestOneLimitManyTimes(t *testing.T) {
	hour := mustLimiter(t, "16/h")
	limits := make([]tollbar.Limit, tollbar.LimitsMost)
	for i := range limits {
		limits[i] = hour.Limit(1)
	}
	if taken, err := tollbar.TakeManyAt(sec, nil, limits...); err != nil || !taken.Allowed() || peeked(hour.PeekAt(sec, 1)) {
		t.Error(taken, err)
	}
}

func TestTakeManyAllocatesNothing(t *testing.T) {
	limiter, table := mustLimiter(t, "1000000000/s burst 1000000000"), keysOf(t, "1000000000/s burst 1000000000")
	each := make([]tollbar.Decision, 3)
	key := strings.Repeat("k", 100)
	for name, f := range map[string]func(){
		"TakeMany":     func() { _, _ = tollbar.TakeMany(limiter.Limit(1), table.Limit("a", 1), table.Limit(key, 1)) },
		"TakeManyEach": func() { _, _ = tollbar.TakeManyEach(each, limiter.Limit(1), table.Limit("a", 1), table.Limit(key, 1)) },
	} {
		if n := testing.AllocsPerRun(100, f); n > takeManyAllocationsMost {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	// Longer keys are copied to memory of their own.
	long := keysOf(t, "2/day")
	first, second := strings.Repeat("k", 5000)+"a", strings.Repeat("k", 5000)+"b"
	for _, want := range []bool{true, true, false} {
		if taken, err := tollbar.TakeMany(long.Limit(first, 1), long.Limit(second, 1)); err != nil || taken.Allowed() != want {
			t.Error(taken, err)
		}
	}
	if d, _ := long.Under(0).Peek(strings.Repeat("k", 5000), 2); !d.Allowed() {
		t.Error(d)
	}
}

// Requests name the same limits in opposite orders. Each limit is charged for the admitted requests
// only.
func TestTakeManyAtOnce(t *testing.T) {
	day, table := mustLimiter(t, "700/day"), keysOf(t, "500/day")
	var passed atomic.Int64
	var wait sync.WaitGroup
	for n := range 8 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			limits := []tollbar.Limit{day.Limit(1), table.Limit("k", 1)}
			if n%2 == 1 {
				limits[0], limits[1] = limits[1], limits[0]
			}
			for range 400 {
				if taken, err := tollbar.TakeManyAt(sec, nil, limits...); err != nil {
					t.Error(err)
				} else if taken.Allowed() {
					passed.Add(1)
				}
			}
		}()
	}
	wait.Wait()
	rest, _ := day.PeekAt(sec, 0)
	if passed.Load() != 500 || rest.Remaining != 200 {
		t.Error(passed.Load(), rest)
	}
}

func TestTenASecondAndFourAtOneTime(t *testing.T) {
	rate := mustLimiter(t, "10/s")
	flights, err := tollbar.NewInFlight(tollbar.InFlightOptions{Capacity: 100})
	if err != nil {
		t.Fatal(err)
	}
	var held [4]tollbar.Ticket
	for i := range held {
		if taken, err := tollbar.TakeManyAt(sec, nil, rate.Limit(1), flights.Limit("ann", 4, &held[i])); err != nil || !taken.Allowed() {
			t.Error(taken, err)
		}
	}
	var ticket tollbar.Ticket
	each := make([]tollbar.Decision, 2)
	taken, err := tollbar.TakeManyAt(sec, each, rate.Limit(1), flights.Limit("ann", 4, &ticket))
	want := tollbar.Taken{Verdict: tollbar.Denied, Reason: tollbar.ReasonInFlight, Bound: 1, RetryAfter: tollbar.Forever, ResetAfter: 400 * time.Millisecond}
	if err != nil || taken != want || each[0].Remaining != 6 || each[1].Remaining != 0 || taken.Reason.String() != "too many in flight" {
		t.Error(taken, each, err)
	}
	for _, held := range held {
		if !held.Release() {
			t.Error("not released")
		}
	}
	// The rate refuses: no permit is in flight, and the ticket is the zero one.
	taken, err = tollbar.TakeManyAt(sec, nil, rate.Limit(7), flights.Limit("ann", 4, &ticket))
	if count, _ := flights.Count("ann"); err != nil || taken.Reason != tollbar.ReasonRate || count != 0 || ticket.Release() {
		t.Error(taken, count, err)
	}
	if taken, err = tollbar.TakeManyAt(sec, nil, rate.Limit(6), flights.Limit("ann", 4, &ticket)); err != nil || !taken.Allowed() || !ticket.Release() {
		t.Error(taken, err)
	}
	if _, err = tollbar.TakeMany(flights.Limit("ann", 4, nil)); !errors.Is(err, tollbar.ErrLimits) {
		t.Error(err)
	}
	flights.Close()
	if _, err = tollbar.TakeMany(flights.Limit("ann", 4, &ticket)); !errors.Is(err, tollbar.ErrClosed) {
		t.Error(err)
	}
}
