package ratelimit

import (
	"math"
	"sync"
	"testing"
	"time"
)

var began = time.Unix(1_700_000_000, 0)

// manual is a clock that a sleep advances.
type manual struct{ now time.Time }

func (m *manual) Now() time.Time        { return m.now }
func (m *manual) Sleep(d time.Duration) { m.now = m.now.Add(d) }

func TestTake(t *testing.T) {
	clock := &manual{began}
	b := NewBucketWithQuantumAndClock(time.Second, 5, 2, clock)
	if wait := b.Take(5); wait != 0 {
		t.Errorf("a full bucket lets wait %v", wait)
	}
	if wait := b.Take(3); wait != 2*time.Second || b.Available() != -3 {
		t.Errorf("3 tokens in %v, %d are there", wait, b.Available())
	}
	if wait, ok := b.TakeMaxDuration(2, 3*time.Second-1); ok || wait != 0 || b.Available() != -3 {
		t.Errorf("within too short a time: %v, %v, %d are there", wait, ok, b.Available())
	}
	if wait, ok := b.TakeMaxDuration(2, 3*time.Second); !ok || wait != 3*time.Second {
		t.Errorf("within the time: %v, %v", wait, ok)
	}
	if b.Wait(1); clock.now.Sub(began) != 3*time.Second {
		t.Errorf("Wait slept until %v", clock.now.Sub(began))
	}
	if clock.Sleep(time.Second); b.TakeAvailable(9) != 2 || b.Take(0) != 0 || b.Take(-1) != 0 ||
		b.TakeAvailable(-1) != 0 {
		t.Errorf("%v", b)
	}
}

// A time that goes back gives no tokens twice. juju/ratelimit gives them twice.
func TestTimeGoesBack(t *testing.T) {
	clock := &manual{began.Add(time.Hour)}
	b := NewBucketWithClock(time.Second, 10, clock)
	clock.now = began.Add(2 * time.Hour)
	if b.Available() != 10 || b.TakeAvailable(10) != 10 {
		t.Fatalf("%v", b)
	}
	for range 10 {
		clock.now = began
		if n := b.TakeAvailable(10); n != 0 {
			t.Errorf("an hour back %d tokens come", n)
		}
		clock.now = began.Add(2 * time.Hour)
		if n := b.TakeAvailable(10); n != 0 {
			t.Errorf("forward again %d tokens come", n)
		}
	}
}

func TestLargeNumbers(t *testing.T) {
	clock := &manual{began}
	b := NewBucketWithQuantumAndClock(math.MaxInt64, math.MaxInt64, math.MaxInt64, clock)
	if wait := b.Take(math.MaxInt64); wait != 0 {
		t.Errorf("a full bucket lets wait %v", wait)
	}
	if wait := b.Take(math.MaxInt64); wait != math.MaxInt64 {
		t.Errorf("one interval is %v", wait)
	}
	if wait := b.Take(math.MaxInt64); wait != math.MaxInt64 {
		t.Errorf("beyond all tokens it waits %v", wait)
	}
	if _, ok := b.TakeMaxDuration(math.MaxInt64, time.Hour); ok {
		t.Error("tokens beyond all numbers come within an hour")
	}
	fast := NewBucketWithQuantumAndClock(1, math.MaxInt64, math.MaxInt64, clock)
	fast.Take(math.MaxInt64)
	if clock.Sleep(time.Hour); fast.Available() != math.MaxInt64 {
		t.Errorf("%v", fast)
	}
}

func TestRates(t *testing.T) {
	for _, rate := range []float64{1e-9, 1e-5, 1.0 / 3, 1, 7, 999_999, 7e8, 1 << 30, 4e18, 1.2e19} {
		if got := NewBucketWithRate(rate, 1).Rate(); math.Abs(got-rate) > 1e-6*rate {
			t.Errorf("rate %v: %v", rate, got)
		}
	}
	for _, rate := range []float64{0, -1, math.NaN(), math.Inf(1), 1e-10, 1e300} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("rate %v: no panic", rate)
				}
			}()
			NewBucketWithRate(rate, 1)
		}()
	}
}

func TestZeroValue(t *testing.T) {
	var b Bucket
	if b.TakeAvailable(1) != 0 || b.Take(1) != math.MaxInt64 || b.WaitMaxDuration(1, time.Hour) ||
		b.Rate() != 0 || b.Capacity() != 0 || b.Available() != 0 {
		t.Errorf("%v gives tokens", &b)
	}
}

// Goroutines get each token once.
func TestGoroutines(t *testing.T) {
	b := NewBucketWithClock(time.Second, 1000, &manual{began})
	var all sync.WaitGroup
	var mu sync.Mutex
	taken := int64(0)
	for range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 500 {
				n := b.TakeAvailable(1)
				mu.Lock()
				taken += n
				mu.Unlock()
			}
		}()
	}
	if all.Wait(); taken != 1000 {
		t.Errorf("%d of 1000 tokens", taken)
	}
}
