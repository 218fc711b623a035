//go:build go1.25

package tollbar_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

// Fifteen goroutines offer at once, with a patience of 10 ms, to a queue of ten that one item
// leaves every 100 ms. By the bubble's clock the times are exact.
func TestElevenOfFifteenLeaveInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := newQueue[int](t, "10/s algo pacer", 10, tollbar.QueueOptions{})
		began := time.Now()
		refused := make(chan time.Duration, 15)
		taken := make([]int, 15)
		for range 15 {
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
				defer cancel()
				ticket, err := queue.OfferWithin(ctx, 0)
				if err == nil {
					taken[ticket.Number]++
				} else if errors.Is(err, tollbar.ErrQueueFull) && errors.Is(err, context.DeadlineExceeded) {
					refused <- time.Since(began)
				} else {
					t.Error(err)
				}
			}()
		}
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		if want := append(slices.Repeat([]int{1}, 11), 0, 0, 0, 0); !slices.Equal(taken, want) {
			t.Error(taken)
		}
		close(refused)
		count := 0
		for after := range refused {
			count++
			if after != 10*time.Millisecond {
				t.Error("refused after", after)
			}
		}
		if count != 4 {
			t.Error(count, "refused")
		}
	})
}

// The same items leave a channel at 0, 100, … 1000 ms in the order of their offers.
func TestAChannelOfWhatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := newQueue[int](t, "10/s algo pacer", 10, tollbar.QueueOptions{})
		for n := range 15 {
			if _, err := queue.Offer(n); (err == nil) != (n < 11) {
				t.Error(n, err)
			}
		}
		queue.Close()
		began, next := time.Now(), 0
		for item := range queue.Items(context.Background()) {
			if at := time.Since(began); item != next || at != time.Duration(item)*100*time.Millisecond {
				t.Error(item, "leaves after", at)
			}
			next++
		}
		if next != 11 {
			t.Error(next, "left")
		}
	})
}

// An offer wakes a taker, and a take, a cancellation or a drained item a producer, at once.
func TestSleepersOfAQueueAreWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := newQueue[int](t, "1/h algo pacer", 1, tollbar.QueueOptions{})
		began := time.Now()
		taken := make(chan int, 1)
		go func() {
			item, err := queue.TakeWithin(context.Background())
			if err != nil {
				t.Error(err)
			}
			taken <- item
		}()
		synctest.Wait()
		ticket, err := queue.Offer(7)
		if err != nil || <-taken != 7 {
			t.Error(ticket, err)
		}
		// The permit of this hour is spent, so one waits and no more.
		for n, remove := range []func() (int, bool){
			queue.Drain,
			func() (int, bool) { return queue.Cancel(ticket) },
		} {
			if ticket, err = queue.Offer(n); err != nil {
				t.Error(err)
			}
			offered := make(chan error, 1)
			go func() {
				_, err := queue.OfferWithin(context.Background(), 9)
				offered <- err
			}()
			synctest.Wait()
			if item, ok := remove(); !ok || item != n {
				t.Error(item, ok)
			}
			if err := <-offered; err != nil {
				t.Error(err)
			}
			if item, ok := queue.Drain(); !ok || item != 9 {
				t.Error(item, ok)
			}
		}
		if time.Since(began) != 0 {
			t.Error("they slept", time.Since(began))
		}
	})
}
