//go:build go1.25

package tollbar

// Waits in virtual time: permits of the library, or of the core in Go, at the time of a bubble of
// testing/synctest. Each test counts both faults: permits above the limit, and permits that nobody
// got though somebody waited for them.

import (
	"context"
	"errors"
	"math/rand"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollbar/tollbar/bindings/go/internal/waiting"
)

// booking policies, of which the first two have a word without rounding.
var booking = []string{
	"10/s burst 1", "10/s burst 4", "7/3s burst 5", "10/s algo pacer", "10/s algo pacer slack 3", "1/100ms algo interval", "3/300ms algo interval",
}

var asking = []string{"10/s burst 4 algo interval anchor first", "5/s algo fixed-window", "5/s algo fixed-window anchor first", "5/s algo weighted-window"}

// virtual are a limiter's permits at virtual time.
type virtual struct {
	*Limiter
	began  time.Time
	queue  waiting.Queue[Reservation]
	places waiting.Places
}

// at is the bubble's time by the limiter's clock. It begins with the whole hour, where a window
// begins.
func (v *virtual) at() uint64 { return uint64(time.Hour) + uint64(time.Since(v.began)) }

func (v *virtual) Ask(n uint64, patience time.Duration) (waiting.Turn[Reservation], error) {
	if !v.policy.Load().booksAhead() {
		decision, err := v.CheckAt(v.at(), n)
		return turnAfter(decision, err, patience)
	}
	booked, err := v.ReserveAt(v.at(), n, patience)
	return turnOf(booked, err)
}

func (v *virtual) Cancel(booked Reservation) { _, _ = v.CancelAt(v.at(), booked) }

func (v *virtual) Alone(n uint64) (time.Duration, error) {
	decision, err := v.PeekAt(v.at(), n)
	return aloneAfter(decision, err)
}

func (v *virtual) Behind(head waiting.Head, n uint64) time.Duration {
	return v.policy.Load().behind(head, n)
}

func (v *virtual) wait(ctx context.Context, n uint64) error {
	return waitError(ctx, v.queue.Wait(ctx, n, v, &v.places, nil))
}

// next is the time until a permit is there.
func (v *virtual) next(t *testing.T) time.Duration {
	t.Helper()
	after, err := v.Alone(1)
	if err != nil {
		t.Fatal(err)
	}
	return after
}

// counts is the number of admissions.
func (v *virtual) counts(t *testing.T) uint64 {
	t.Helper()
	state, err := v.State()
	if err != nil {
		t.Fatal(err)
	}
	return state.Allowed
}

// empty is a limiter without permits, in a bubble.
func empty(t *testing.T, policy string) *virtual {
	t.Helper()
	limiter, err := NewLimiter(policy)
	if err != nil {
		t.Fatal(err)
	}
	v := &virtual{Limiter: limiter, began: time.Now()}
	for AllowNanos(v.Limiter, v.at(), 1) {
	}
	return v
}

// bubbles runs a test of each policy.
func bubbles(t *testing.T, policies []string, test func(t *testing.T, policy string)) {
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, policy) })
		})
	}
}

// After twenty that give up, one caller waits as long as if a single booking had been made and
// cancelled: not at all longer where the last booking comes back whole.
func TestA2OneCallerAfterTwenty(t *testing.T) {
	bubbles(t, append(asking, booking...), func(t *testing.T, policy string) {
		v, twin := empty(t, policy), empty(t, policy)
		booked, err := twin.ReserveAt(twin.at(), 1, Forever)
		start := time.Now()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				ctx, cancel := context.WithCancel(context.Background())
				time.AfterFunc(10*time.Millisecond, cancel)
				if err := v.wait(ctx, 1); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if err == nil {
			twin.Cancel(booked)
		}
		expected := time.Since(start) + twin.next(t)
		if err := v.wait(context.Background(), 1); err != nil || time.Since(start) != expected {
			t.Errorf("%v after %v, expected %v", err, time.Since(start), expected)
		}
	})
}

// 60 callers at a time, each of which has 0.9 s, by a deadline or because its context is cancelled:
// 9 get a permit of 10/s in each wave.
func TestA2Waves(t *testing.T) {
	for name, patience := range map[string]func() (context.Context, context.CancelFunc){
		"deadline": func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), 900*time.Millisecond)
		},
		"cancelled": func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(900*time.Millisecond, cancel)
			return ctx, cancel
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := empty(t, "10/s burst 1")
				var times []time.Time
				var mu sync.Mutex
				sum := 0
				for wave := range 6 {
					var all sync.WaitGroup
					got := 0
					for range 60 {
						all.Go(func() {
							ctx, cancel := patience()
							defer cancel()
							if v.wait(ctx, 1) == nil {
								mu.Lock()
								got++
								times = append(times, time.Now())
								mu.Unlock()
							}
						})
					}
					all.Wait()
					// The last permit comes as the contexts end, and may be the next wave's.
					if sum += got; got < 8 || got > 10 || sum < 9*wave+8 || sum > 9*wave+9 {
						t.Errorf("wave %d: %d, in all %d", wave, got, sum)
					}
					time.Sleep(time.Until(v.began.Add(time.Duration(wave+1) * 900 * time.Millisecond)))
				}
				for i := 1; i < len(times); i++ {
					if times[i].Sub(times[i-1]) < 100*time.Millisecond {
						t.Errorf("%v after another one", times[i].Sub(times[i-1]))
					}
				}
			})
		})
	}
}

// Twenty that give up in any order leave the limiter as it was.
func TestA2InEveryOrder(t *testing.T) {
	for _, most := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			rand := rand.New(rand.NewSource(int64(most)))
			for trial := range 5000 {
				v := empty(t, "1000/s burst 4")
				time.Sleep(time.Duration(rand.Intn(1e6)))
				before := time.Now().Add(v.next(t))
				var all sync.WaitGroup
				cancels := make([]context.CancelFunc, 20)
				for i := range cancels {
					ctx, cancel := context.WithCancel(context.Background())
					cancels[i] = cancel
					cost := uint64(1 + rand.Intn(most))
					all.Go(func() { _ = v.wait(ctx, cost) })
				}
				synctest.Wait()
				rand.Shuffle(len(cancels), func(i, j int) { cancels[i], cancels[j] = cancels[j], cancels[i] })
				for _, cancel := range cancels {
					cancel()
					if rand.Intn(3) == 0 {
						synctest.Wait()
					}
				}
				all.Wait()
				if after := time.Now().Add(v.next(t)); !after.Equal(before) || v.queue.Len() != 0 || !v.places.Nobody() {
					t.Fatalf("trial %d: %v later", trial, after.Sub(before))
				}
			}
		})
	}
}

type caller struct {
	arrives, leaves time.Duration
	cost            uint64
}

// exact returns the numbers of those whom a queue without bookings admits, whose head asks at every
// instant at which its permits could come.
func exact(v *virtual, callers []caller) (admitted []int) {
	free := time.Duration(0)
	for i, c := range callers {
		for now := max(c.arrives, free); now < c.leaves; {
			free = now
			d, _ := v.CheckAt(uint64(time.Hour+now), c.cost)
			if d.Allowed() {
				admitted = append(admitted, i)
				break
			}
			now += d.RetryAfter
			free = min(now, c.leaves)
		}
	}
	return admitted
}

// The same callers get permits as from a queue without bookings, in the order in which they came.
func TestA2CallersThatComeAndLeaveAtRandom(t *testing.T) {
	bubbles(t, append(asking, booking...), func(t *testing.T, policy string) {
		rand := rand.New(rand.NewSource(1))
		v, twin := empty(t, policy), empty(t, policy)
		at := time.Duration(0)
		callers := make([]caller, 300)
		for i := range callers {
			at += []time.Duration{time.Microsecond, time.Microsecond, 20 * time.Millisecond, 300 * time.Millisecond}[rand.Intn(4)] + time.Duration(rand.Intn(1e6))
			patience := []time.Duration{50, 200, 1000, 5000}[rand.Intn(4)]*time.Millisecond + time.Duration(rand.Intn(1e7))
			callers[i] = caller{at, at + patience, uint64(1 + rand.Intn(int(min(v.Policy().Burst, 3))))}
		}
		var got []int
		departed := make([]time.Duration, len(callers))
		var mu sync.Mutex
		var all sync.WaitGroup
		for i, c := range callers {
			time.Sleep(time.Until(v.began.Add(c.arrives)))
			all.Go(func() {
				ctx, cancel := context.WithCancel(context.Background())
				time.AfterFunc(time.Until(v.began.Add(c.leaves)), cancel)
				if v.wait(ctx, c.cost) == nil {
					mu.Lock()
					got = append(got, i)
					departed[i] = time.Since(v.began)
					mu.Unlock()
				}
			})
			synctest.Wait()
		}
		all.Wait()
		slices.Sort(got)
		if !slices.IsSortedFunc(got, func(i, j int) int { return int(departed[i] - departed[j]) }) {
			t.Error("somebody was overtaken")
		}
		expected := exact(twin, callers)
		refused, tooMany := 0, 0
		for _, i := range expected {
			if !slices.Contains(got, i) {
				refused++
			}
		}
		for _, i := range got {
			if !slices.Contains(expected, i) {
				tooMany++
			}
		}
		switch whole := policy == booking[0] || policy == booking[1] || slices.Contains(asking, policy); {
		case whole && (refused != 0 || tooMany != 0):
			t.Errorf("%d refused, %d too many of %d", refused, tooMany, len(expected))
		case v.policy.Load().Lends():
			// A request that costs more than is left passes, and a booking of it waits for the
			// rest.
		case refused > len(expected)/4:
			// A permit a caller that gives up as the last is not given back, where a booking
			// departs at a rounded time.
			t.Errorf("%d refused, %d too many of %d", refused, tooMany, len(expected))
		}
	})
}

// Beside 200 waiters one asks every millisecond: the waiters have their permits in 200 intervals.
func TestA2APollerStarvesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := empty(t, "10/s burst 1")
		ctx, cancel := context.WithCancel(context.Background())
		polled := 0
		var poller, all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				if err := v.wait(context.Background(), 1); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		poller.Go(func() {
			for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
				if AllowNanos(v.Limiter, v.at(), 1) {
					polled++
				}
			}
		})
		all.Wait()
		// The permit that comes as the head departs may be the poller's, if it asks before the next
		// one has booked.
		if took := time.Since(v.began); took != time.Duration(200+polled)*100*time.Millisecond || polled > 20 {
			t.Errorf("%v, and %d polled", took, polled)
		}
		cancel()
		poller.Wait()
	})
}

func TestA2TheImpatientAreRefusedAtOnce(t *testing.T) {
	bubbles(t, []string{"10/s burst 2", "10/s algo pacer", "1/100ms algo interval", "1/100ms algo fixed-window anchor first"}, func(t *testing.T, policy string) {
		v := empty(t, policy)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if err := v.wait(context.Background(), 1); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		// The eleventh permit comes after 1.1 s. Of a window's, three may come at once as far as
		// the queue knows.
		late := 1099 * time.Millisecond
		if !v.policy.Load().booksAhead() {
			late = 799 * time.Millisecond
		}
		for patience, expected := range map[time.Duration]error{late: context.DeadlineExceeded, 0: context.DeadlineExceeded, Forever / 2: ErrNever} {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			cost := uint64(1)
			if expected == ErrNever {
				cost = 99
			}
			if err := v.wait(ctx, cost); !errors.Is(err, expected) || !errors.Is(err, ErrDenied) && expected != ErrNever {
				t.Errorf("%v: %v", patience, err)
			}
			cancel()
		}
		if time.Since(v.began) != 0 {
			t.Error("a refusal took", time.Since(v.began))
		}
		ctx, cancel := context.WithTimeout(context.Background(), 1101*time.Millisecond)
		defer cancel()
		if err := v.wait(ctx, 1); err != nil || time.Since(v.began) != 1100*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(v.began))
		}
		all.Wait()
	})
}

// The head leaves: the next one departs when the head would have. One that wants another number of
// permits books anew.
func TestA2TheBookingIsTheQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := empty(t, "10/s burst 4")
		var all sync.WaitGroup
		departed := make([]time.Duration, 4)
		cancels := make([]context.CancelFunc, 4)
		for i, cost := range []uint64{1, 1, 3, 1} {
			ctx, cancel := context.WithCancel(context.Background())
			cancels[i] = cancel
			all.Go(func() {
				if v.wait(ctx, cost) == nil {
					departed[i] = time.Since(v.began)
				}
			})
			synctest.Wait()
		}
		state, _ := v.State()
		time.Sleep(10 * time.Millisecond)
		cancels[0]()
		synctest.Wait()
		if after, _ := v.State(); after.Allowed != state.Allowed {
			t.Error("the second has booked")
		}
		cancels[1]()
		all.Wait()
		if !slices.Equal(departed, []time.Duration{0, 0, 300 * time.Millisecond, 400 * time.Millisecond}) {
			t.Error(departed)
		}
		cancels[2]()
		cancels[3]()
	})
}
