package rate

import (
	"context"
	"fmt"
	"time"

	"github.com/tollbar/tollbar/bindings/go/internal/waiting"
)

// Reservation holds events that a [Limiter] lets happen after a delay. Cancel may let other events
// happen in their place.
type Reservation struct {
	limiter *Limiter
	ok      bool
	tokens  int
	// The time to act.
	timeToAct time.Time
	// The limit at the time of the reservation: a later limit does not change the tokens that were
	// taken.
	limit Limit
}

// OK reports whether the limiter can provide the tokens. If not, Delay is [InfDuration] and Cancel
// does nothing.
func (r *Reservation) OK() bool { return r.ok }

// Delay returns the time to wait from now before acting; 0 means at once.
func (r *Reservation) Delay() time.Duration { return r.DelayFrom(time.Now()) }

// DelayFrom returns the time to wait from t before acting; 0 means at once, and [InfDuration]
// never.
func (r *Reservation) DelayFrom(t time.Time) time.Duration {
	if !r.ok {
		return InfDuration
	}
	return max(r.timeToAct.Sub(t), 0)
}

// Cancel is CancelAt now.
func (r *Reservation) Cancel() { r.CancelAt(time.Now()) }

// CancelAt cancels the reservation at time t. It gives back the tokens on which no later
// reservation's time depends, and nothing if the time to act is before t.
func (r *Reservation) CancelAt(t time.Time) {
	if !r.ok || r.tokens == 0 {
		return
	}
	l := r.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.instant(t)
	at := instant(r.timeToAct.Sub(l.base))
	if l.limit == Inf || at < now {
		return
	}
	// Later reservations were timed with these tokens taken.
	restored := float64(r.tokens) - r.limit.tokens(l.lastEvent.sub(at))
	if restored <= 0 {
		return
	}
	l.settle(now)
	l.tokens = min(l.tokens+restored, float64(l.burst))
	if at == l.lastEvent {
		if before := at.add(r.limit.duration(-float64(r.tokens))); before >= now {
			l.lastEvent = before
		}
	}
}

// Reserve is ReserveN of one event now.
func (l *Limiter) Reserve() *Reservation { return l.ReserveN(time.Now(), 1) }

// ReserveN takes tokens for n events ahead of time: the caller waits for the reservation's delay
// and then acts. It is not OK if n is above the burst. Use it to slow down without dropping events.
// With a deadline use [Limiter.Wait].
//
//	r := limiter.ReserveN(time.Now(), 1)
//	if !r.OK() {
//		return // not allowed to act: is the burst above 0?
//	}
//	time.Sleep(r.Delay())
//	act()
func (l *Limiter) ReserveN(t time.Time, n int) *Reservation {
	r := l.reserveN(t, n, InfDuration)
	return &r
}

func (l *Limiter) reserveN(t time.Time, n int, patience time.Duration) Reservation {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.instant(t)
	wait, ok := l.take(now, n, patience)
	if !ok {
		return Reservation{limiter: l}
	}
	r := Reservation{limiter: l, ok: true, tokens: n, timeToAct: t.Add(wait)}
	if l.limit != Inf {
		r.limit = l.limit
	}
	return r
}

// Wait is WaitN of one event.
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN returns when n events may happen. It returns an error at once if n is above the burst
// (unless the limit is [Inf]) or if the wait would end after the context's deadline. If the context
// ends during the wait, it returns the context's error.
//
// Goroutines wait in a queue, first in, first out, and only the first one has a reservation. If its
// context ends, the next one takes the reservation over, and the last one cancels it. So waits that
// are cancelled cost the others nothing; in x/time/rate each waiter has a reservation, and one of a
// cancelled wait that others follow is lost.
func (l *Limiter) WaitN(ctx context.Context, n int) error {
	return l.wait(ctx, n, time.Now(), func(d time.Duration) (<-chan time.Time, func() bool, func()) {
		timer := time.NewTimer(d)
		return timer.C, timer.Stop, func() {}
	})
}

// wait is WaitN at now. newTimer makes a timer: its channel, a function that stops it, and one that
// is called before the wait, for tests whose time does not go on by itself.
func (l *Limiter) wait(ctx context.Context, n int, now time.Time, newTimer func(time.Duration) (<-chan time.Time, func() bool, func())) error {
	l.mu.Lock()
	burst, limit := l.burst, l.limit
	l.mu.Unlock()
	if n > burst && limit != Inf {
		return fmt.Errorf("rate: Wait(n=%d) exceeds limiter's burst %d", n, burst)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.places.Nobody() {
		if r := l.reserveN(now, n, 0); r.ok {
			return nil
		}
	}
	p := &permits{limiter: l, now: now, deadline: InfDuration}
	if deadline, ok := ctx.Deadline(); ok {
		p.deadline = deadline.Sub(now)
	}
	err := l.queue.Wait(ctx, uint64(n), p, &l.places, func(d time.Duration) (<-chan time.Time, func() bool) {
		fires, stop, waits := newTimer(d)
		waits()
		return fires, stop
	})
	if err == waiting.ErrLate {
		return fmt.Errorf("rate: Wait(n=%d) would exceed context deadline", n)
	}
	return err
}

// permits are a limiter's tokens, for a queue.
type permits struct {
	limiter *Limiter
	// The time of the call and its patience, for a question that is asked at once. That of a
	// goroutine behind others is asked when they have left.
	now      time.Time
	deadline time.Duration
	later    bool
}

func (p *permits) Ask(n uint64, patience time.Duration) (waiting.Turn[Reservation], error) {
	now := time.Now()
	if !p.later {
		now, patience, p.later = p.now, p.deadline, true
	}
	r := p.limiter.reserveN(now, int(n), patience)
	if !r.ok {
		return waiting.Turn[Reservation]{}, waiting.ErrLate
	}
	return waiting.Turn[Reservation]{Wait: r.DelayFrom(now), Booked: true, Booking: r}, nil
}

func (p *permits) Cancel(r Reservation) { r.Cancel() }

// Alone is called for a goroutine behind others.
func (p *permits) Alone(uint64) (time.Duration, error) {
	p.later = true
	return 0, nil
}

// Behind: when the head's events happen, all tokens are taken.
func (p *permits) Behind(head waiting.Head, n uint64) time.Duration {
	after := p.limiter.Limit().duration(float64(int(head.Ahead-head.Cost) + int(n)))
	if after > InfDuration-head.Wait {
		return InfDuration
	}
	return head.Wait + after
}
