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

// 40 goroutines whose contexts end after 20 ms leave nothing behind: one alone then waits for its own permit, not for
// 40.
func TestA2WaitersThatGiveUp(t *testing.T) {
	for name, wait := range waiters(t, "10/s burst 1", 0) {
		if err := wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
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
		err := wait(context.Background())
		// The permit comes after 100 ms. The machine may be busy for a while, and on one that is, a
		// waiter may have taken the first permit.
		if took := time.Since(start); err != nil || took > 2*time.Second || took < 95*time.Millisecond {
			t.Errorf("%s: %v after %v", name, err, took)
		}
	}
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
