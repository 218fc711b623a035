package tollbar

import (
	"context"
	"fmt"
	"time"
)

// errTooLate is the error of a wait that cannot end in time.
var errTooLate = fmt.Errorf("tollbar: it would take longer than the context has (%w; %w)", ErrDenied, context.DeadlineExceeded)

// Wait takes a permit, and waits for it if necessary. See [Limiter.WaitN].
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN takes n permits, and waits for them if necessary. It waits on a timer of Go and blocks no thread.
//
// If the permits would come after the context's deadline, the call refuses at once and charges nothing. The error then is both [ErrDenied]
// and [context.DeadlineExceeded]. It is [ErrNever] if n is above the burst. If the context ends during the wait, the error is the
// context's.
//
// Where the algorithm can book ahead (gcra, pacer, warm-up, and interval aligned to time 0), callers take their permits when they come and
// wake one after the other. A cancelled wait gives its booking back ([Limiter.Cancel]), and usually no permit comes back if later callers
// wait. So give contexts deadlines: then a wait that would end too late is refused at once. With windows and logs callers queue: the first
// sleeps until a permit could be free and tries again, and the others sleep until it has left. There a cancelled wait loses nothing.
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
		// If the peek failed, the goroutine's turn returns the error.
		alone, _ := l.Peek(n)
		return l.policy.Load().earliest(alone.RetryAfter, ahead, n)
	})
}

// timeLeft returns the time until the context's deadline, and whether it has one.
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
