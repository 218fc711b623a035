//go:build cgo || tollbar_purego

package tollbar_test

import (
	"context"
	"errors"
	"runtime/pprof"
	"sync"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

func TestWaitTakesItsTime(t *testing.T) {
	for _, policy := range []string{"100/s burst 1", "100/s algo pacer", "1/10ms algo fixed-window", "1/10ms algo sliding-log"} {
		limiter := mustLimiter(t, policy)
		start := time.Now()
		for range 5 {
			if err := limiter.Wait(context.Background()); err != nil {
				t.Fatalf("%s: %v", policy, err)
			}
		}
		// Windows are aligned to the clock: the first may be nearly over.
		if waited := time.Since(start); waited < 30*time.Millisecond {
			t.Errorf("%s: five in %v", policy, waited)
		}
	}
}

// Waiting goroutines wake one after the other, and no thread waits with them.
func TestWaitersLineUp(t *testing.T) {
	limiter := mustLimiter(t, "1000/s burst 1")
	threads := pprof.Lookup("threadcreate")
	before := threads.Count()
	start := time.Now()
	var all sync.WaitGroup
	for range 100 {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := limiter.Wait(context.Background()); err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	if waited := time.Since(start); waited < 99*time.Millisecond {
		t.Errorf("a hundred in %v", waited)
	}
	if made := threads.Count() - before; made > 50 {
		t.Errorf("%d threads for a hundred waiters", made)
	}
}

func TestHopelessWaitsAreRefusedAtOnce(t *testing.T) {
	for _, policy := range []string{"1/min", "1/min algo sliding-log", "1/min algo fixed-window anchor first"} {
		limiter := mustLimiter(t, policy)
		limiter.Allow()
		before, _ := limiter.State()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		start := time.Now()
		err := limiter.Wait(ctx)
		if !errors.Is(err, tollbar.ErrDenied) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 5*time.Second {
			t.Errorf("%s: %v after %v", policy, err, time.Since(start))
		}
		if after, _ := limiter.State(); after.RetryAfter > before.RetryAfter {
			t.Errorf("%s: it has cost something: %v, before %v", policy, after.RetryAfter, before.RetryAfter)
		}
		if err := limiter.WaitN(ctx, 2); !errors.Is(err, tollbar.ErrNever) {
			t.Errorf("%s: %v", policy, err)
		}
		cancel()
		if err := limiter.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", policy, err)
		}
	}
	for _, policy := range []string{"0/s", "0/s algo sliding-log"} {
		if err := mustLimiter(t, policy).Wait(context.Background()); !errors.Is(err, tollbar.ErrDenied) && !errors.Is(err, tollbar.ErrNever) {
			t.Errorf("%s: %v", policy, err)
		}
	}
}

func TestACancelledWaitEnds(t *testing.T) {
	for _, policy := range []string{"1/min", "1/min algo sliding-log"} {
		limiter := mustLimiter(t, policy)
		limiter.Allow()
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(20*time.Millisecond, cancel)
		start := time.Now()
		if err := limiter.Wait(ctx); !errors.Is(err, context.Canceled) || time.Since(start) > 5*time.Second {
			t.Errorf("%s: %v after %v", policy, err, time.Since(start))
		}
	}
}

func TestReserveByTheClock(t *testing.T) {
	limiter := mustLimiter(t, "1/min")
	began := time.Now()
	if booked, err := limiter.Reserve(1, 0); booked.Wait != 0 || booked.Cost != 1 || err != nil {
		t.Errorf("%v, %v", booked, err)
	}
	if _, err := limiter.Reserve(1, 30*time.Second); !errors.Is(err, tollbar.ErrDenied) {
		t.Error(err)
	}
	if booked, err := limiter.Reserve(1, time.Minute); err != nil || booked.Wait < 59*time.Second-time.Since(began) || booked.Wait > time.Minute {
		t.Errorf("%v, %v", booked, err)
	}
	last, err := limiter.Reserve(1, tollbar.Forever)
	if err != nil || last.Wait < 119*time.Second-time.Since(began) || last.Wait > 2*time.Minute {
		t.Errorf("%v, %v", last, err)
	}
	if back, err := limiter.Cancel(last); back != 1 || err != nil {
		t.Errorf("%v, %v", back, err)
	}
}
