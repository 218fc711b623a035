//go:build cgo

package tollbar

import (
	"context"
	"errors"
	"math/rand"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// counted waits for a limiter's permits and counts how often it is asked.
type counted struct {
	*Limiter
	asked atomic.Int64
}

func newCounted(t *testing.T, policy string) *counted {
	t.Helper()
	limiter, err := NewLimiter(policy)
	if err != nil {
		t.Fatal(err)
	}
	return &counted{Limiter: limiter}
}

func (c *counted) wait(ctx context.Context, n uint64) error {
	ask := func() (Decision, error) {
		c.asked.Add(1)
		return c.Check(n)
	}
	return c.line.wait(ctx, n, ask, func(ahead uint64) time.Duration {
		alone, _ := c.Peek(n)
		return c.policy.Load().earliest(alone.RetryAfter, ahead, n)
	})
}

// inLine returns when so many stand in line.
func (c *counted) inLine(t *testing.T, count int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Microsecond) {
		c.line.mu.Lock()
		now := len(c.line.places)
		c.line.mu.Unlock()
		if now == count {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d in line, not %d", now, count)
		}
	}
}

// A hundred that wait at once: each checks when it is the first, and when its time has come.
func TestWaitersInLineMakeTwoChecksEach(t *testing.T) {
	for _, policy := range []string{"1/2ms algo fixed-window", "20/40ms algo sliding-log"} {
		limiter := newCounted(t, policy)
		var all sync.WaitGroup
		for range 100 {
			all.Add(1)
			go func() {
				defer all.Done()
				if err := limiter.wait(context.Background(), 1); err != nil {
					t.Error(err)
				}
			}()
		}
		all.Wait()
		// A few more where a timer ends some nanoseconds early by the limiter's clock.
		if asked := limiter.asked.Load(); asked < 100 || asked > 230 {
			t.Errorf("%s: %d checks for a hundred", policy, asked)
		}
		limiter.inLine(t, 0)
	}
}

func TestWhoComesFirstGoesFirst(t *testing.T) {
	limiter := newCounted(t, "10/20ms algo sliding-log")
	limiter.AllowN(10)
	var order []uint64
	var all sync.WaitGroup
	// The large one is not overtaken, though each permit that comes back would be enough for the others.
	for i, cost := range []uint64{10, 1, 2, 3} {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := limiter.wait(context.Background(), cost); err != nil {
				t.Error(err)
			}
			// The next is called only when this one has left, which it does before it returns.
			limiter.line.mu.Lock()
			order = append(order, cost)
			limiter.line.mu.Unlock()
		}()
		if i == 0 {
			limiter.inLine(t, 1)
		}
		time.Sleep(time.Millisecond)
	}
	all.Wait()
	if len(order) != 4 || order[0] != 10 {
		t.Error(order)
	}
}

func TestWhoCannotBeInTimeIsRefusedAtOnce(t *testing.T) {
	limiter := newCounted(t, "1/min algo sliding-log")
	limiter.Allow()
	patient, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := limiter.wait(patient, 1); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}()
	}
	limiter.inLine(t, 4)
	asked := limiter.asked.Load()
	for patience, cost := range map[time.Duration]uint64{30 * time.Second: 1, 119 * time.Second: 1} {
		ctx, stop := context.WithTimeout(context.Background(), patience)
		start := time.Now()
		if err := limiter.wait(ctx, cost); !errors.Is(err, ErrDenied) || time.Since(start) > 20*time.Second {
			t.Errorf("%v: %v after %v", patience, err, time.Since(start))
		}
		stop()
	}
	if limiter.asked.Load() != asked {
		t.Error("asked out of turn")
	}
	cancel()
	all.Wait()
	limiter.inLine(t, 0)
}

// Waiters with all kinds of patience: every waiter returns, and together they get no more permits than there are.
func TestLeavingTheLineAtRandom(t *testing.T) {
	limiter := newCounted(t, "5/5ms algo sliding-log")
	var granted atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	patient := int64(0)
	for i := range 400 {
		ctx, cancel := context.Background(), func() {}
		if i%4 == 0 {
			patient++
		} else {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.Intn(100))*time.Millisecond)
		}
		all.Add(1)
		go func() {
			defer all.Done()
			defer cancel()
			if limiter.wait(ctx, 1) == nil {
				granted.Add(1)
			}
		}()
	}
	all.Wait()
	most := 5 + 5*int64(time.Since(start)/(5*time.Millisecond)+1)
	if n := granted.Load(); n < patient || n > most {
		t.Errorf("%d granted, of %d patient ones, %d at most", n, patient, most)
	}
	limiter.inLine(t, 0)
}

// The bound by which a newcomer is refused, beside what a line of callers gets at times of our own.
func TestEarliestIsALowerBound(t *testing.T) {
	for _, policy := range []string{"5/s algo fixed-window", "5/s algo fixed-window anchor first", "5/s algo weighted-window",
		"6/3s algo sliding-window segments 6", "6/3s algo sliding-window segments 6 mode strict", "5/s algo sliding-log",
		"6/s algo interval burst 4 anchor first"} {
		met := false
		// Seeded: whether one of the draws meets the bound is the same in every run.
		rand := rand.New(rand.NewSource(1))
		for range 1000 {
			limiter := newCounted(t, policy)
			now := uint64(rand.Intn(1e6)) * 1_000_003
			for range rand.Intn(8) {
				limiter.AllowAt(now, uint64(1+rand.Intn(3)))
				now += uint64(rand.Intn(250e6))
			}
			ahead, own, at := uint64(0), uint64(1+rand.Intn(3)), now
			alone, _ := limiter.PeekAt(now, own)
			costs := make([]uint64, rand.Intn(40))
			for i := range costs {
				costs[i] = uint64(1 + rand.Intn(3))
				ahead += costs[i]
			}
			bound := limiter.policy.Load().earliest(alone.RetryAfter, ahead, own)
			for _, cost := range append(costs, own) {
				for {
					d, err := limiter.CheckAt(at, cost)
					if err != nil {
						t.Fatal(err)
					}
					if d.Allowed() {
						break
					}
					at += uint64(d.RetryAfter)
				}
			}
			if bound > time.Duration(at-now) {
				t.Fatalf("%s: refused by %v, and it would have been %v; ahead %v, own %d", policy, bound, time.Duration(at-now), costs, own)
			}
			met = met || bound == time.Duration(at-now)
		}
		if !met {
			t.Errorf("%s: the bound was never met", policy)
		}
	}
}
