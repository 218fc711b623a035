//go:build cgo

package tollbar

import (
	"context"
	"math/bits"
	"sync"
	"time"
)

// line is those who wait for permits that cannot be booked ahead. The first checks, sleeps as long as the answer says, and
// checks again; the others sleep until it has left. So a waiter costs two checks, however many wait, and they go in the
// order in which they came.
type line struct {
	mu     sync.Mutex
	places []*place
	// The permits that they wait for.
	cost uint64
}

// place is a goroutine's in a line.
type place struct {
	cost uint64
	// Closed when it is the first.
	turn chan struct{}
}

// join takes the last place.
func (l *line) join(cost uint64) *place {
	p := &place{cost: cost, turn: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.places = append(l.places, p)
	l.cost += cost
	if len(l.places) == 1 {
		close(p.turn)
	}
	return p
}

// leave gives a place up, wherever it is. The one that is the first then, if it was not before, gets the turn.
func (l *line) leave(p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.places {
		if l.places[i] != p {
			continue
		}
		l.places = append(l.places[:i], l.places[i+1:]...)
		l.cost -= p.cost
		if i == 0 && len(l.places) != 0 {
			close(l.places[0].turn)
		}
		return
	}
}

// ahead is the permits that those in the line wait for, and whether there is anybody.
func (l *line) ahead() (uint64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cost, len(l.places) != 0
}

// wait takes cost permits, which ask takes if they are there. earliest is a lower bound of the time until so many permits
// and then the caller's have been taken.
func (l *line) wait(ctx context.Context, cost uint64, ask func() (Decision, error), earliest func(ahead uint64) time.Duration) error {
	after := time.Duration(0)
	if ahead, anybody := l.ahead(); !anybody {
		wait, done, err := askOnce(ctx, ask)
		if done {
			return err
		}
		after = wait
	} else if left, limited := timeLeft(ctx); limited && earliest(ahead) > left {
		return errTooLate
	}
	until := time.Now().Add(after)
	p := l.join(cost)
	defer l.leave(p)
	select {
	case <-p.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		if err := sleep(ctx, max(time.Until(until), 0)); err != nil {
			return err
		}
		wait, done, err := askOnce(ctx, ask)
		if done {
			return err
		}
		until = time.Now().Add(wait)
	}
}

// askOnce is done if the caller has its permits or cannot have them in time. Otherwise it may ask again after wait.
func askOnce(ctx context.Context, ask func() (Decision, error)) (wait time.Duration, done bool, err error) {
	decision, err := ask()
	switch {
	case err != nil:
		return 0, true, err
	case decision.Verdict == Allowed:
		return 0, true, nil
	case decision.Verdict == Never:
		return 0, true, ErrNever
	case decision.RetryAfter == Forever:
		return 0, true, ErrDenied
	}
	if left, limited := timeLeft(ctx); limited && decision.RetryAfter > left {
		return 0, true, errTooLate
	}
	return decision.RetryAfter, false, nil
}

// earliest is a lower bound of the time until a window or a log has admitted ahead permits and then n more, of which own is
// the time of the n alone. All of two windows and of the burst may come at once, and what is beyond comes at the limit.
func (p *Policy) earliest(own time.Duration, ahead, n uint64) time.Duration {
	atOnce := saturated(saturated(p.Limit, p.Limit), p.Burst)
	total := saturated(ahead, n)
	if p.Limit == 0 || total <= atOnce {
		return own
	}
	high, low := bits.Mul64(total-atOnce, uint64(p.Period))
	if high >= p.Limit {
		return Forever
	}
	after, _ := bits.Div64(high, low, p.Limit)
	return max(own, duration(after))
}

func saturated(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return ^uint64(0)
	}
	return sum
}
