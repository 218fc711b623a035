//go:build cgo

package tollbar

import (
	"context"
	"fmt"
	"time"
)

// errTooLate is a wait that cannot end in time.
var errTooLate = fmt.Errorf("tollbar: it would take longer than the context has (%w; %w)", ErrDenied, context.DeadlineExceeded)

// Wait takes a permit, waiting for it if need be. See [Limiter.WaitN].
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN takes n permits, waiting for them if need be. No thread waits: it is a timer of Go's.
//
// What cannot be had before the context's deadline is refused at once with nothing charged; the error then is both
// [ErrDenied] and [context.DeadlineExceeded]. [ErrNever] if n is above the burst. If the context ends during the wait, the
// error is the context's.
//
// Where the algorithm can book ahead (gcra, pacer, warm-up, and interval aligned to time 0), callers take their permits
// when they come and wake one after the other. A wait that is cancelled midway gives its booking back ([Limiter.Cancel]), of
// which mostly nothing comes back if others wait behind it: let contexts have deadlines, by which hopeless waits are not
// begun. With windows and logs callers stand in line: the first sleeps until a permit could be free and tries again, and the
// others sleep until it has left. There a wait that is cancelled loses nothing.
func (l *Limiter) WaitN(ctx context.Context, n uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.closed.Load() {
		return ErrClosed
	}
	if !l.policy.Load().booksAhead() {
		return l.waitInLine(ctx, n)
	}
	patience, limited := timeLeft(ctx)
	booked, code := l.reserve(n, patience)
	switch {
	case code == 0:
		return sleepOrCancel(ctx, booked, func() { _, _ = l.Cancel(booked) })
	case code == ErrDenied && limited:
		return errTooLate
	}
	return code
}

// waitInLine is WaitN of an algorithm that cannot book ahead.
func (l *Limiter) waitInLine(ctx context.Context, n uint64) error {
	ask := func() (Decision, error) { return l.Check(n) }
	return l.line.wait(ctx, n, ask, func(ahead uint64) time.Duration {
		// With an error the turn will tell.
		alone, _ := l.Peek(n)
		return l.policy.Load().earliest(alone.RetryAfter, ahead, n)
	})
}

// timeLeft is how long the context has, and whether that is limited.
func timeLeft(ctx context.Context) (time.Duration, bool) {
	deadline, limited := ctx.Deadline()
	if !limited {
		return Forever, false
	}
	return max(time.Until(deadline), 0), true
}

// sleep returns nil after d, or the context's error if that ends before.
func sleep(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
