package tollbar

import (
	"context"
	"math/bits"
	"sync"
	"time"
)

// line is a queue of goroutines that wait for permits that cannot be booked ahead. The first one checks, sleeps for the decision's wait,
// and checks again. The others sleep until it has left. So each waiter makes two checks, however many wait, and they leave in the order in
// which they came.
type line struct {
	mu     sync.Mutex
	places []*place
	// The permits that the goroutines in the line wait for.
	cost uint64
}

// place is a goroutine's place in a line.
type place struct {
	cost uint64
	// Closed when the place is the first.
	turn chan struct{}
}

// join adds a goroutine at the end.
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

// leave removes a place anywhere in the line. If another place becomes the first, its goroutine gets the turn.
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

// ahead returns the permits that the goroutines in the line wait for, and whether the line has any.
func (l *line) ahead() (uint64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cost, len(l.places) != 0
}

// wait takes cost permits by calls of ask, which takes them if they are left. earliest is a lower bound of the time until the permits ahead
// of the caller, and then the caller's, have been taken.
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

// askOnce returns done if the caller has its permits or cannot have them in time. Otherwise the caller may ask again after wait.
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

// earliest is a lower bound of the time until a window or a log has admitted ahead permits and then n more. own is the time for the n
// alone. Two whole windows and the burst may come at once, and further permits come at the limit.
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
