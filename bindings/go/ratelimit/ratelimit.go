// Package ratelimit has the API of go.uber.org/ratelimit and its behaviour: a program only changes
// the import. It is pure Go.
//
// The state is a [cell.Cell], so [Limiter.Take] takes no lock and the rate is exact.
// go.uber.org/ratelimit rounds the time of one call down to whole nanoseconds, and so lets 1·10^9
// calls a second pass where the rate is 7·10^8.
package ratelimit

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tollbar/tollbar/bindings/go/cell"
)

// Limiter paces callers. Any number of goroutines may use it at once.
type Limiter interface {
	// Take sleeps until the caller's turn has come, and returns the time of the turn.
	Take() time.Time
}

// Clock is a clock of the caller, such as a mock.
type Clock interface {
	Now() time.Time
	Sleep(time.Duration)
}

// New makes a limiter of rate calls a second, or in the time that [Per] says. Idle time adds up to
// 10 calls that need not wait, or as many as [WithSlack] says. New panics if the rate or the time
// of Per is not positive: its signature has no error.
//
// Above 1.6·10^10 calls a second no call waits.
func New(rate int, options ...Option) Limiter {
	o := settings{slack: 10, per: time.Second, clock: system{}}
	for _, option := range options {
		option.apply(&o)
	}
	switch {
	case rate <= 0:
		panic(fmt.Sprintf("ratelimit: rate %d; expected 1 or more", rate))
	case o.per <= 0:
		panic(fmt.Sprintf("ratelimit: Per(%v); expected a positive time", o.per))
	}
	slack := uint64(max(o.slack, 0))
	for {
		policy, err := cell.New(uint64(rate), o.per, slack+1)
		switch {
		case err == nil:
			return &paced{policy: policy, slack: slack, clock: o.clock}
		case errors.Is(err, cell.ErrRateTooHigh):
			return unlimited{o.clock}
		case slack > 0:
			// Such a slack takes decades to come.
			slack /= 2
		default:
			panic(fmt.Sprintf("ratelimit: %d in %v: %v", rate, o.per, err))
		}
	}
}

// NewUnlimited makes a limiter whose Take never sleeps.
func NewUnlimited() Limiter { return unlimited{system{}} }

// Option is an option of [New].
type Option interface{ apply(*settings) }

type settings struct {
	slack int
	per   time.Duration
	clock Clock
}

type option func(*settings)

func (set option) apply(o *settings) { set(o) }

// Per is the time in which the rate's calls pass: New(2, Per(time.Minute)) is two a minute.
func Per(per time.Duration) Option { return option(func(o *settings) { o.per = per }) }

// WithSlack is the most calls that idle time adds. Below 0 means 0.
func WithSlack(slack int) Option { return option(func(o *settings) { o.slack = slack }) }

// WithoutSlack is WithSlack(0): the time between two calls is never shorter than that of the rate.
var WithoutSlack = WithSlack(0)

// WithClock replaces the system's clock. nil is the system's clock.
func WithClock(clock Clock) Option {
	return option(func(o *settings) {
		if o.clock = clock; clock == nil {
			o.clock = system{}
		}
	})
}

// paced is a token bucket of slack + 1 calls, which begins with one.
type paced struct {
	policy *cell.Policy
	slack  uint64
	clock  Clock
	state  cell.Cell
	begin  sync.Once
	// The time of the first Take, which is 0 in the cell.
	zero time.Time
}

// Take sleeps until the caller's turn has come.
func (l *paced) Take() time.Time {
	now := l.clock.Now()
	l.begin.Do(func() {
		l.zero = now
		l.state.AllowN(l.policy, 0, l.slack)
	})
	at := max(now.Sub(l.zero), 0)
	wait, ok := l.state.Reserve(l.policy, uint64(at), 1, cell.Forever)
	if !ok {
		// The turn is decades away, beyond the policy's last time.
		l.clock.Sleep(cell.Forever)
		return now.Add(cell.Forever)
	}
	turn := l.zero.Add(at + wait)
	if sleep := turn.Sub(now); sleep > 0 {
		l.clock.Sleep(sleep)
	}
	return turn
}

type unlimited struct{ clock Clock }

func (l unlimited) Take() time.Time { return l.clock.Now() }

// system is the system's clock, and in a bubble of testing/synctest the bubble's.
type system struct{}

func (system) Now() time.Time        { return time.Now() }
func (system) Sleep(d time.Duration) { time.Sleep(d) }
