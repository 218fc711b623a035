// Package waiting has queues of goroutines that wait for permits.
//
// A [Queue] is first in, first out, and has at most one booking, whose permits the first waiter,
// the head, gets at its departure. So when waiters give up, at most that booking is left, and it is
// the limiter's last, which comes back whole. A head that gives up leaves the booking to the next
// waiter, unless that one wants another number of permits. The head's departure is the turn of the
// next one: it books, and so do those behind it as long as their permits are there at once. Where
// permits cannot be booked, the head asks for them, and the queue has the time of its next question
// in place of the booking.
package waiting

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// Forever is a patience without end.
const Forever = time.Duration(math.MaxInt64)

// ErrLate: the permits cannot be had within the patience.
var ErrLate = errors.New("tollbar: the permits would come too late")

// ErrFull: as many goroutines wait as may.
var ErrFull = errors.New("tollbar: too many goroutines wait")

// Permits are those that the goroutines of a queue wait for. A booking is a B.
type Permits[B any] interface {
	// Ask books n permits, or takes them if they cannot be booked. The error is ErrLate if they
	// cannot be had within the patience.
	Ask(n uint64, patience time.Duration) (Turn[B], error)
	// Cancel gives a booking back.
	Cancel(booking B)
	// Alone returns the time until a caller could take n permits if nobody waited. The error is
	// that of a caller that never can.
	Alone(n uint64) (time.Duration, error)
	// Behind estimates the time until n permits come behind a head, rather too early than too late:
	// if those before take theirs, and nobody else any.
	Behind(head Head, n uint64) time.Duration
}

// Turn is the answer to a head.
type Turn[B any] struct {
	// Wait is the time until its permits may be used or, without a booking, until it may ask again.
	// 0: it has its permits.
	Wait    time.Duration
	Booked  bool
	Booking B
}

// Head is the turn of a queue that others wait behind.
type Head struct {
	// Wait is the time until the head departs or, if it has booked nothing, until it asks again.
	Wait   time.Duration
	Booked bool
	// Cost is the number of its permits.
	Cost uint64
	// Ahead is the number of permits of all in the queue.
	Ahead uint64
}

// NewTimer starts a timer, as time.NewTimer does, and returns a function that stops it.
type NewTimer func(d time.Duration) (fires <-chan time.Time, stop func() bool)

func newTimer(d time.Duration) (<-chan time.Time, func() bool) {
	timer := time.NewTimer(d)
	return timer.C, timer.Stop
}

// Queue is a queue of goroutines. The zero value is an empty one.
type Queue[B any] struct {
	mu          sync.Mutex
	first, last *waiter[B]
	// The permits that all in the queue wait for.
	ahead uint64
	// The head's turn, if the queue is not empty: when, and for how many permits it was asked for.
	turn Turn[B]
	due  time.Time
	cost uint64
	has  bool
}

// waiter is a goroutine in a queue.
type waiter[B any] struct {
	ctx        context.Context
	permits    Permits[B]
	places     *Places
	cost       uint64
	prev, next *waiter[B]
	// Has an item when the goroutine has become the head or is decided.
	wake    chan struct{}
	decided bool
	err     error
}

// Wait takes n permits, and waits for them until the context ends. timer is nil for the usual one.
func (q *Queue[B]) Wait(ctx context.Context, n uint64, permits Permits[B], places *Places, timer NewTimer) error {
	if timer == nil {
		timer = newTimer
	}
	w := &waiter[B]{ctx: ctx, permits: permits, places: places, cost: n}
	q.mu.Lock()
	waits, err := q.enter(w)
	for waits && !w.decided {
		var fires <-chan time.Time
		stop := func() bool { return false }
		if q.first == w {
			fires, stop = timer(time.Until(q.due))
		}
		q.mu.Unlock()
		select {
		case <-fires:
			q.mu.Lock()
			// Another one may have seen first that the context has ended.
			if !w.decided {
				q.depart(w)
			}
		case <-w.wake:
			q.mu.Lock()
		case <-ctx.Done():
			q.mu.Lock()
			// Permits that have come in this instant are used.
			if !w.decided {
				q.decide(w, ctx.Err())
				q.serve()
			}
		}
		stop()
	}
	q.mu.Unlock()
	if !waits {
		return err
	}
	return w.err
}

// enter adds a goroutine to the queue, unless it is decided at once.
func (q *Queue[B]) enter(w *waiter[B]) (waits bool, err error) {
	if q.first != nil {
		if err := q.hopeless(w); err != nil {
			return false, err
		}
		if !w.places.take() {
			return false, ErrFull
		}
		q.last.next, w.prev = w, q.last
	} else {
		turn, err := q.ask(w)
		if err != nil || turn.Wait == 0 {
			return false, err
		}
		if !w.places.take() {
			// Goroutines that wait for other keys have taken the last places meanwhile.
			q.turn, q.has = turn, true
			q.giveBack(w.permits)
			return false, ErrFull
		}
		q.hold(w, turn)
		q.first = w
	}
	q.last = w
	q.ahead += w.cost
	w.wake = make(chan struct{}, 1)
	return true, nil
}

// ask asks for a caller before whom there is nobody. Nothing is booked for one that has no place.
func (q *Queue[B]) ask(w *waiter[B]) (Turn[B], error) {
	patience := w.patience()
	if !w.places.full() {
		return w.permits.Ask(w.cost, patience)
	}
	turn, err := w.permits.Ask(w.cost, 0)
	if err != ErrLate {
		return turn, err
	}
	if alone, never := w.permits.Alone(w.cost); never == nil && alone <= patience {
		err = ErrFull
	}
	return turn, err
}

// hopeless is the error of a newcomer behind others that cannot be served in time.
func (q *Queue[B]) hopeless(w *waiter[B]) error {
	alone, err := w.permits.Alone(w.cost)
	patience := w.patience()
	if err != nil || patience == Forever {
		return err
	}
	head := Head{Wait: max(time.Until(q.due), 0), Booked: q.turn.Booked, Cost: q.cost, Ahead: q.ahead}
	if max(alone, head.Wait, w.permits.Behind(head, w.cost)) > patience {
		return ErrLate
	}
	return nil
}

// depart is the turn of the head.
func (q *Queue[B]) depart(w *waiter[B]) {
	booked := q.turn.Booked
	q.has = false
	if booked {
		q.decide(w, nil)
	}
	q.serve()
}

// serve decides all whose turn it is.
func (q *Queue[B]) serve() {
	for w := q.first; w != nil; w = q.first {
		if err := w.ctx.Err(); err != nil {
			q.decide(w, err)
			continue
		}
		if q.has && (q.cost != w.cost || w.isBefore(q.due)) {
			q.giveBack(w.permits)
		}
		if !q.has {
			turn, err := w.permits.Ask(w.cost, w.patience())
			if err != nil || turn.Wait == 0 {
				q.decide(w, err)
				continue
			}
			q.hold(w, turn)
		}
		w.call()
		return
	}
}

func (q *Queue[B]) hold(w *waiter[B], turn Turn[B]) {
	q.turn, q.cost, q.has = turn, w.cost, true
	q.due = time.Now().Add(turn.Wait)
}

// decide removes a goroutine from the queue. After the last one, the booking is given back.
func (q *Queue[B]) decide(w *waiter[B], err error) {
	w.decided, w.err = true, err
	if w.prev == nil {
		q.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	q.ahead -= w.cost
	w.places.taken.Add(-1)
	if q.first == nil {
		q.giveBack(w.permits)
	}
	w.call()
}

func (q *Queue[B]) giveBack(permits Permits[B]) {
	if q.has && q.turn.Booked {
		permits.Cancel(q.turn.Booking)
	}
	q.turn, q.has = Turn[B]{}, false
}

// Len is the number of goroutines in the queue.
func (q *Queue[B]) Len() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for w := q.first; w != nil; w = w.next {
		n++
	}
	return n
}

// call wakes the goroutine, which looks at the queue.
func (w *waiter[B]) call() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// patience is the time until the context's deadline.
func (w *waiter[B]) patience() time.Duration {
	if deadline, limited := w.ctx.Deadline(); limited {
		return max(time.Until(deadline), 0)
	}
	return Forever
}

// isBefore reports whether the context ends before due.
func (w *waiter[B]) isBefore(due time.Time) bool {
	deadline, limited := w.ctx.Deadline()
	return limited && deadline.Before(due)
}
