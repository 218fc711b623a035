package tollbar

import (
	"context"
	"fmt"
	"math/bits"
	"time"

	"github.com/tollbar/tollbar/bindings/go/internal/waiting"
)

// errTooLate is the error of a wait that cannot end in time.
var errTooLate = fmt.Errorf("tollbar: it would take longer than the context has (%w; %w)",
	ErrDenied, context.DeadlineExceeded)

// ErrQueueFull is the error of a wait while as many goroutines wait for the limiter, or for keys of
// the table, as its option Waiters allows, and of an offer while a [Queue] has no room. It is also
// [ErrDenied]. Nothing has been charged.
var ErrQueueFull = fmt.Errorf("tollbar: the queue is full (%w)", ErrDenied)

// Wait takes a permit, and waits for it if necessary. See [Limiter.WaitN].
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN takes n permits, and waits for them if necessary. It waits on a timer of Go and blocks no
// thread.
//
// If the permits would come after the context's deadline, the call refuses at once and charges
// nothing. The error then is both [ErrDenied] and [context.DeadlineExceeded]. It is [ErrNever] if n
// is above the burst, and [ErrQueueFull] if as many goroutines wait as [LimiterOptions] allows. If
// the context ends during the wait, the error is the context's.
//
// The goroutines wait in a queue, first in, first out. Only the first one holds a booking
// ([Limiter.Reserve]). If its context ends, the next one takes the booking over, and the last one
// gives it back, so a wait that is cancelled costs the others nothing. A caller behind others is
// refused at once if the permits before it come too late for it. Where the algorithm cannot book
// ahead, as windows and logs cannot, the first goroutine tries again when a permit could be free.
func (l *Limiter) WaitN(ctx context.Context, n uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.ended() {
		return ErrClosed
	}
	if l.places.Nobody() && l.takeNow(n) {
		return nil
	}
	return waitError(ctx, l.queue.Wait(ctx, n, permitsOf{l}, &l.places, nil))
}

// waitError is the error of a wait for the user.
func waitError(ctx context.Context, err error) error {
	switch err {
	case waiting.ErrFull:
		return ErrQueueFull
	case waiting.ErrLate:
		if _, limited := ctx.Deadline(); limited {
			return errTooLate
		}
		return ErrDenied
	}
	return err
}

// waiters is the bound of goroutines that an option says.
func waiters(option uint32) int64 {
	if option == 0 {
		return waiting.Most
	}
	return int64(option)
}

// permitsOf are a limiter's permits.
type permitsOf struct{ *Limiter }

func (l permitsOf) Ask(n uint64, patience time.Duration) (waiting.Turn[Reservation], error) {
	if !l.policy.Load().booksAhead() {
		decision, err := l.Check(n)
		return turnAfter(decision, err, patience)
	}
	booked, err := l.Reserve(n, patience)
	return turnOf(booked, err)
}

func (l permitsOf) Cancel(booked Reservation) { _, _ = l.Limiter.Cancel(booked) }

func (l permitsOf) Alone(n uint64) (time.Duration, error) {
	decision, err := l.Peek(n)
	return aloneAfter(decision, err)
}

func (l permitsOf) Behind(head waiting.Head, n uint64) time.Duration {
	return l.policy.Load().behind(head, n)
}

// turnOf is the turn of a booking.
func turnOf(booked Reservation, err error) (waiting.Turn[Reservation], error) {
	if err == ErrDenied {
		err = waiting.ErrLate
	}
	return waiting.Turn[Reservation]{Wait: booked.Wait, Booked: err == nil, Booking: booked}, err
}

// turnAfter is the turn after a check.
func turnAfter(decision Decision, err error, patience time.Duration) (turn waiting.Turn[Reservation], _ error) {
	switch {
	case err != nil || decision.Verdict == Allowed:
		return turn, err
	case decision.Verdict == Never:
		return turn, ErrNever
	case decision.RetryAfter == Forever || decision.RetryAfter > patience:
		return turn, waiting.ErrLate
	}
	turn.Wait = max(decision.RetryAfter, 1)
	return turn, nil
}

// aloneAfter is the wait after a peek.
func aloneAfter(decision Decision, err error) (time.Duration, error) {
	switch {
	case err != nil:
		return 0, err
	case decision.Verdict == Never:
		return 0, ErrNever
	case decision.Verdict == Denied && decision.RetryAfter == Forever:
		return 0, waiting.ErrLate
	}
	return decision.RetryAfter, nil
}

// behind estimates the time until n permits come behind a queue's head, rather too early than too
// late.
func (p *Policy) behind(head waiting.Head, n uint64) time.Duration {
	if p.Limit == 0 {
		return head.Wait
	}
	total := saturated(head.Ahead, n)
	if !head.Booked {
		// Permits of a window may come in another order than one by one, and all of two windows may
		// come at once, and the burst.
		atOnce := saturated(saturated(p.Limit, p.Limit), p.Burst)
		return p.refill(total - min(atOnce, total))
	}
	// Before the head's departure something was lacking, so nothing is left at it.
	rest := total - min(head.Cost, total)
	switch {
	case p.Algorithm == Interval:
		atOnce := saturated(head.Cost-1, p.Limit)
		periods := (total - min(atOnce, total) + p.Limit - 1) / p.Limit
		rest = saturatedProduct(periods, p.Limit)
	case p.Lends():
		// A request departs when those before it are paid for.
		rest = head.Ahead
	}
	if after := p.refill(rest); after < Forever-head.Wait {
		return head.Wait + after
	}
	return Forever
}

// refill is the time in which so many permits come.
func (p *Policy) refill(permits uint64) time.Duration {
	high, low := bits.Mul64(permits, uint64(p.Period))
	if high >= p.Limit {
		return Forever
	}
	after, _ := bits.Div64(high, low, p.Limit)
	return duration(after)
}

func saturated(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return ^uint64(0)
	}
	return sum
}

func saturatedProduct(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high != 0 {
		return ^uint64(0)
	}
	return low
}
