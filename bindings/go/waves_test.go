package tollbar_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

// waiters are a limiter and a key, by the clock.
func waiters(t *testing.T, policy string, most uint32) map[string]func(ctx context.Context) error {
	t.Helper()
	limiter, err := tollbar.NewLimiterWith(policy, tollbar.LimiterOptions{Waiters: most})
	if err != nil {
		t.Fatal(err)
	}
	table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 10, Waiters: most}, policy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return map[string]func(ctx context.Context) error{
		"limiter": limiter.Wait, "key": func(ctx context.Context) error { return table.Under(0).Wait(ctx, "key") },
	}
}

// 40 goroutines whose contexts end after 20 ms leave nothing behind: one alone then waits for its
// own permit, not for 40, which would take 4 s. Of three tries, a busy machine may delay two for so
// long.
func TestA2WaitersThatGiveUp(t *testing.T) {
	for name, wait := range waiters(t, "10/s burst 1", 0) {
		took := giveUp(t, name, wait)
		for tries := 1; tries < 3 && took > 2*time.Second; tries++ {
			took = giveUp(t, name, wait)
		}
		if took > 2*time.Second {
			t.Errorf("%s: one alone waits for %v", name, took)
		}
	}
}

// giveUp returns how long one alone waits after the 40.
func giveUp(t *testing.T, name string, wait func(ctx context.Context) error) time.Duration {
	t.Helper()
	// The first permit is taken after this, and the next one comes 100 ms after the first.
	start := time.Now()
	if err := wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	var all sync.WaitGroup
	for range 40 {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := wait(ctx); !errors.Is(err, context.Canceled) && time.Since(start) < 90*time.Millisecond {
				t.Errorf("%s: %v", name, err)
			}
		}()
	}
	all.Wait()
	alone := time.Now()
	if err := wait(context.Background()); err != nil || time.Since(start) < 95*time.Millisecond {
		t.Errorf("%s: %v after %v", name, err, time.Since(start))
	}
	return time.Since(alone)
}

func TestA4TheQueueIsFull(t *testing.T) {
	for name, wait := range waiters(t, "1/h burst 1", 3) {
		if err := wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		for range 8 {
			go func() { ended <- wait(ctx) }()
		}
		for range 5 {
			if err := <-ended; !errors.Is(err, tollbar.ErrQueueFull) || !errors.Is(err, tollbar.ErrDenied) {
				t.Errorf("%s: %v", name, err)
			}
		}
		cancel()
		for range 3 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
