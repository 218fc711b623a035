//go:build cgo || tollbar_purego

package tollbar

import (
	"context"
	"errors"
	"math/rand"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go/internal/waiting"
)

// counted are a limiter's permits, and count how often they are asked for.
type counted struct {
	permitsOf
	asked atomic.Int64
	// got are the numbers of permits that waiters got, in this order.
	mu  sync.Mutex
	got []uint64
}

func newCounted(t *testing.T, policy string) *counted {
	t.Helper()
	limiter, err := NewLimiter(policy)
	if err != nil {
		t.Fatal(err)
	}
	return &counted{permitsOf: permitsOf{limiter}}
}

func (c *counted) Ask(n uint64, patience time.Duration) (waiting.Turn[Reservation], error) {
	c.asked.Add(1)
	turn, err := c.permitsOf.Ask(n, patience)
	if err == nil && turn.Wait == 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.got = append(c.got, n)
	}
	return turn, err
}

func (c *counted) wait(ctx context.Context, n uint64) error {
	return waitError(ctx, c.queue.Wait(ctx, n, c, &c.places, nil))
}

// queued returns when so many wait.
func (c *counted) queued(t *testing.T, count int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); c.queue.Len() != count; time.Sleep(100 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d wait, not %d", c.queue.Len(), count)
		}
	}
}

// A hundred that wait at once: each checks when it is the first, and when its time has come.
func TestWaitersMakeTwoChecksEach(t *testing.T) {
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
		limiter.queued(t, 0)
	}
}

// The first to come is the first to get permits: it wants all ten, and the others would be served
// by the first permit that comes back. The test begins again if the machine lost a whole period
// before the first one waited.
func TestWhoComesFirstGoesFirst(t *testing.T) {
	for tries := 1; tries <= 20; tries++ {
		limiter := newCounted(t, "10/100ms algo sliding-log")
		limiter.AllowN(10)
		began := time.Now()
		var all sync.WaitGroup
		for i, cost := range []uint64{10, 1, 2, 3} {
			all.Add(1)
			go func() {
				defer all.Done()
				if err := limiter.wait(context.Background(), cost); err != nil {
					t.Error(err)
				}
			}()
			// Until the first one waits or has passed.
			for i == 0 && limiter.queue.Len() == 0 && time.Since(began) < 100*time.Millisecond {
				time.Sleep(100 * time.Microsecond)
			}
		}
		late := time.Since(began) >= 100*time.Millisecond
		all.Wait()
		if late {
			continue
		}
		if len(limiter.got) != 4 || limiter.got[0] != 10 {
			t.Error(limiter.got)
		}
		return
	}
	t.Error("the machine was too slow, 20 times")
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
	limiter.queued(t, 4)
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
	limiter.queued(t, 0)
}

// Waiters with all kinds of patience: every waiter returns, and together they get no more permits
// than there are.
func TestLeavingAtRandom(t *testing.T) {
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
	limiter.queued(t, 0)
}
