//go:build go1.25 && (cgo || tollbar_purego)

package tollbar_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

// The times at which a driver admits requests, by a bubble's clock.
type admitted struct {
	began time.Time
	lock  sync.Mutex
	times []time.Duration
}

func (a *admitted) add(wait time.Duration) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.times = append(a.times, time.Since(a.began)+wait)
}

// Requests that come too early are dropped, delayed, wait in their goroutines, or are kept in a
// queue. With the same patience the last three admit the same ones at the same times, and without
// patience so does the first.
func TestS19DriversAdmitTheSame(t *testing.T) {
	const policy = "10/s algo pacer"
	drivers := func(t *testing.T, waiting int) {
		delays, drops, waits := mustLimiter(t, policy), mustLimiter(t, policy), mustLimiter(t, policy)
		queue := newQueue[int](t, policy, uint64(max(waiting, 1)), tollbar.QueueOptions{})
		began := time.Now()
		delayed, dropped, waited, queued := admitted{began: began}, admitted{began: began}, admitted{began: began},
			admitted{began: began}
		go func() {
			for range queue.Items(context.Background()) {
				queued.add(0)
			}
		}()
		// Requests come at whole milliseconds, so a nanosecond changes no answer. It keeps the end of a
		// context apart from the departure.
		patience := time.Duration(waiting)*100*time.Millisecond + 1
		for n := range 1000 {
			time.Sleep(time.Duration(n*n*7919%(120+30*(n/50%2))) * time.Millisecond)
			// What leaves the queue now has left it.
			synctest.Wait()
			if booked, err := delays.Reserve(1, patience); err == nil {
				delayed.add(booked.Wait)
			}
			if drops.Allow() {
				dropped.add(0)
			}
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				if waits.Wait(ctx) == nil {
					waited.add(0)
				}
			}()
			_, _ = queue.Offer(n)
			synctest.Wait()
		}
		queue.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		if !slices.Equal(waited.times, delayed.times) {
			t.Errorf("patience %v: %d delayed, %d waited", patience, len(delayed.times), len(waited.times))
		}
		others := &queued
		if waiting == 0 {
			others = &dropped
		}
		if !slices.Equal(others.times, delayed.times) || len(delayed.times) < 500 {
			t.Errorf("patience %v: %d delayed, %d otherwise", patience, len(delayed.times), len(others.times))
		}
	}
	for _, waiting := range []int{0, 1, 3, 20} {
		synctest.Test(t, func(t *testing.T) { drivers(t, waiting) })
	}
}
