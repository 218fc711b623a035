//go:build go1.25

package rate

import (
	"context"
	"math/rand"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The time of these tests is that of a bubble of testing/synctest.

func emptied(limit Limit, burst int) *Limiter {
	l := NewLimiter(limit, burst)
	l.AllowN(time.Now(), burst)
	return l
}

// A2: 60 goroutines at a time, whose contexts end after 0.85 s: 8 get a token of 10/s in each wave,
// and then one alone its own.
func TestA2Waves(t *testing.T) {
	for _, limited := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := emptied(10, 1)
			for wave := range 6 {
				var all sync.WaitGroup
				var mu sync.Mutex
				got := 0
				start := time.Now()
				for range 60 {
					all.Go(func() {
						ctx, cancel := context.WithCancel(context.Background())
						if limited {
							ctx, cancel = context.WithTimeout(context.Background(), 850*time.Millisecond)
						}
						defer cancel()
						time.AfterFunc(850*time.Millisecond, cancel)
						if l.Wait(ctx) == nil {
							mu.Lock()
							got++
							mu.Unlock()
						}
					})
				}
				all.Wait()
				if refused := time.Since(start); got != 8 || !limited && refused != 850*time.Millisecond {
					t.Errorf("wave %d: %d until %v", wave, got, refused)
				}
				// The tokens are floating-point numbers, so a permit may come a nanosecond earlier
				// or later.
				if err := l.Wait(context.Background()); err != nil || time.Since(start).Round(time.Microsecond) != 900*time.Millisecond {
					t.Errorf("%v after %v", err, time.Since(start))
				}
			}
		})
	}
}

// A2: twenty that give up in any order leave the limiter as it was.
func TestA2InEveryOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rand := rand.New(rand.NewSource(1))
		for trial := range 2000 {
			l := emptied(10, 4)
			time.Sleep(time.Duration(rand.Intn(90e6)))
			before := l.Tokens()
			var all sync.WaitGroup
			cancels := make([]context.CancelFunc, 20)
			for i := range cancels {
				ctx, cancel := context.WithCancel(context.Background())
				cancels[i] = cancel
				n := 1 + rand.Intn(4)
				all.Go(func() { _ = l.WaitN(ctx, n) })
				synctest.Wait()
			}
			rand.Shuffle(len(cancels), func(i, j int) { cancels[i], cancels[j] = cancels[j], cancels[i] })
			for _, cancel := range cancels {
				cancel()
				if rand.Intn(3) == 0 {
					synctest.Wait()
				}
			}
			all.Wait()
			if after := l.Tokens(); after-before > 1e-9 || before-after > 1e-9 {
				t.Fatalf("trial %d: %v tokens, %v before", trial, after, before)
			}
		}
	})
}

// A2: nobody is overtaken, and one that cannot be in time is refused at once.
func TestA2InTheOrderInWhichTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := emptied(10, 3)
		start := time.Now()
		var all sync.WaitGroup
		departed := make([]time.Duration, 10)
		for i := range departed {
			all.Go(func() {
				if err := l.WaitN(context.Background(), 1+i%3); err != nil {
					t.Error(err)
				}
				departed[i] = time.Since(start).Round(time.Microsecond)
			})
			synctest.Wait()
		}
		// 19 tokens are taken before the next one.
		short, cancel := context.WithTimeout(context.Background(), 1990*time.Millisecond)
		defer cancel()
		if err := l.Wait(short); err == nil || time.Now() != start {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		long, stop := context.WithTimeout(context.Background(), 2010*time.Millisecond)
		defer stop()
		if err := l.Wait(long); err != nil || time.Since(start).Round(time.Microsecond) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		all.Wait()
		tenths := []time.Duration{1, 3, 6, 7, 9, 12, 13, 15, 18, 19}
		for i := range tenths {
			tenths[i] *= 100 * time.Millisecond
		}
		if !slices.Equal(departed, tenths) {
			t.Error(departed)
		}
	})
}
