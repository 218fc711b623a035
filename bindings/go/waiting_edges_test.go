//go:build go1.25

package tollbar

// Tests of waits in virtual time: a full queue refuses, permits that another process takes make a
// waiter wait longer, waits end at the same instant, and a newcomer is told how long it would wait.

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

func TestA4AtMostSoManyWait(t *testing.T) {
	bubbles(t, []string{"10/s burst 1", "5/s algo fixed-window"}, func(t *testing.T, policy string) {
		v := empty(t, policy)
		v.places.Most = 3
		var all sync.WaitGroup
		ctx, cancel := context.WithCancel(context.Background())
		for i := range 3 {
			of := context.Background()
			if i == 1 {
				of = ctx
			}
			all.Go(func() { _ = v.wait(of, 1) })
			synctest.Wait()
		}
		for range 2 {
			if err := v.wait(context.Background(), 1); !errors.Is(err, ErrQueueFull) || !errors.Is(err, ErrDenied) {
				t.Error(err)
			}
		}
		impatient, stop := context.WithTimeout(context.Background(), time.Millisecond)
		if err := v.wait(impatient, 1); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrQueueFull) {
			t.Error(err)
		}
		stop()
		cancel()
		synctest.Wait()
		all.Go(func() {
			if err := v.wait(context.Background(), 1); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		if !v.places.Nobody() {
			t.Error("a place is still taken")
		}
	})
}

// Nothing is booked for a caller that has no place: here, others wait for other keys.
func TestA4WithoutAPlaceNothingIsBooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, other := empty(t, "10/s burst 1"), empty(t, "10/s burst 1")
		v.places.Most = 1
		var all sync.WaitGroup
		all.Go(func() { _ = v.wait(context.Background(), 1) })
		synctest.Wait()
		before, counts := other.next(t), other.counts(t)
		if err := other.queue.Wait(context.Background(), 1, other, &v.places, nil); err != waiting.ErrFull ||
			other.next(t) != before ||
			other.counts(t) != counts {
			t.Errorf("%v, and a permit after %v, before %v", err, other.next(t), before)
		}
		all.Wait()
	})
}

// Another process takes what the queue has counted on. One in the midst of the queue is refused
// when the one before it leaves it a booking that departs after its deadline, and at its deadline
// otherwise.
func TestA2ADeadlineThatAnotherProcessBringsNearer(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			v := empty(t, "2/s burst 1")
			second, leave := context.WithCancel(context.Background())
			third, stop := context.WithTimeout(context.Background(), 1700*time.Millisecond)
			defer stop()
			var all sync.WaitGroup
			expected := 1700 * time.Millisecond
			if leaves {
				expected = time.Second
			}
			for i, ctx := range []context.Context{context.Background(), second, third} {
				all.Go(func() {
					err := v.wait(ctx, 1)
					if i == 2 && (!errors.Is(err, context.DeadlineExceeded) || time.Since(v.began) != expected) {
						t.Errorf("%v after %v", err, time.Since(v.began))
					}
				})
				synctest.Wait()
			}
			time.Sleep(100 * time.Millisecond)
			for range 4 {
				if _, err := v.ReserveAt(v.at(), 1, Forever); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(900 * time.Millisecond)
			if leaves {
				leave()
			}
			all.Wait()
			leave()
		})
	}
}

// Contexts end in the instant in which permits come: none is lost, and none is given twice.
func TestA2ContextsThatEndAsPermitsCome(t *testing.T) {
	for _, policy := range []string{"10/s burst 1", "1/100ms algo fixed-window", "2/200ms algo fixed-window"} {
		for trial := range 300 {
			synctest.Test(t, func(t *testing.T) {
				v := empty(t, policy)
				var all sync.WaitGroup
				var mu sync.Mutex
				var got int64
				for i := range 7 {
					ctx, cancel := context.WithCancel(context.Background())
					time.AfterFunc(time.Duration(1+(i+trial)%3)*100*time.Millisecond, cancel)
					all.Go(func() {
						if v.wait(ctx, 1) == nil {
							mu.Lock()
							got++
							mu.Unlock()
						}
					})
				}
				all.Wait()
				since := time.Since(v.began)
				limit, period := int64(v.Policy().Limit), v.Policy().Period
				if v.Policy().Algorithm == GCRA {
					limit, period = 1, period/time.Duration(limit)
				}
				left := int64(0)
				for AllowNanos(v.Limiter, v.at(), 1) {
					left++
				}
				// What has come in windows before the last one and was not wanted is gone.
				if come := int64(since/period) * limit; got+left != come || v.queue.Len() != 0 || !v.places.Nobody() {
					t.Fatalf("%s, trial %d: %d permits and %d left after %v", policy, trial, got, left, since)
				}
			})
		}
	}
}

// A newcomer's estimate beside what a queue of callers gets: it is never too late.
func TestA2WhoIsRefusedCouldNotHaveBeenServed(t *testing.T) {
	for _, policy := range append(asking, booking...) {
		rand := rand.New(rand.NewSource(1))
		waited, met := 0, 0
		for trial := range 1000 {
			limiter, err := NewLimiter(policy)
			if err != nil {
				t.Fatal(err)
			}
			most := int(min(limiter.Policy().Burst, 3))
			v := &virtual{Limiter: limiter}
			now := uint64(time.Hour) + uint64(rand.Intn(1e6))*1_000_003
			for range rand.Intn(12) {
				AllowNanos(v.Limiter, now, uint64(1+rand.Intn(most)))
				now += uint64(rand.Intn(100e6))
			}
			ask := func(at, cost uint64) (waiting.Turn[Reservation], error) {
				if v.policy.Load().booksAhead() {
					booked, err := v.ReserveAt(at, cost, Forever)
					return turnOf(booked, err)
				}
				decision, err := v.CheckAt(at, cost)
				return turnAfter(decision, err, Forever)
			}
			costs := make([]uint64, 2+rand.Intn(20))
			head := waiting.Head{}
			for i := range costs {
				costs[i] = uint64(1 + rand.Intn(most))
				head.Ahead += costs[i]
			}
			own := costs[len(costs)-1]
			head.Ahead -= own
			alone, _ := v.PeekAt(now, own)
			turn, err := ask(now, costs[0])
			if err != nil || turn.Wait == 0 {
				continue
			}
			head.Wait, head.Booked, head.Cost = turn.Wait, turn.Booked, costs[0]
			bound := max(head.Wait, alone.RetryAfter, v.Behind(head, own))
			if turn.Booked {
				costs = costs[1:]
			}
			at := now
			for _, cost := range costs {
				for {
					turn, err = ask(at, cost)
					if err != nil {
						t.Fatal(err)
					}
					if turn.Booked || turn.Wait == 0 {
						break
					}
					at += uint64(turn.Wait)
				}
			}
			served := time.Duration(at-now) + turn.Wait
			if bound > served {
				t.Fatalf("%s, trial %d: refused by %v, and it would have been %v", policy, trial, bound, served)
			}
			waited++
			if served-bound <= time.Duration(len(costs)) {
				met++
			}
		}
		if waited < 5 || met == 0 && slices.Contains(booking, policy) || policy == booking[0] && met != waited {
			t.Errorf("%s: %d of %d estimates were exact", policy, met, waited)
		}
	}
}
