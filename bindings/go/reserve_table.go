package tollbar

import (
	"context"
	"sync"
	"time"
)

// Reserve takes n permits of the key ahead of time. Without an error the caller must act after the reservation's Wait, not earlier. The
// error is [ErrDenied] if that would be longer than patience ([Forever] is any time) or if the algorithm cannot book ahead (windows and
// logs), and [ErrNever] if n is above the burst. Then nothing has been charged.
func (k Keys) Reserve(key string, n uint64, patience time.Duration) (booked Reservation, err error) {
	code := Code(0)
	err = k.call(func(table tableHandle) Code {
		booked, code = tableReserve(table, k.policy, key, n, patience)
		return code
	})
	if err == nil {
		err = asError(code)
	}
	return booked, err
}

// Cancel gives back the permits of a reservation of the key, as [Limiter.Cancel] does.
func (k Keys) Cancel(key string, booked Reservation) (back uint64, err error) {
	err = k.call(func(table tableHandle) (code Code) {
		back, code = tableCancel(table, k.policy, key, booked)
		return code
	})
	return back, err
}

// Wait takes a permit of the key, and waits for it if necessary. See [Keys.WaitN].
func (k Keys) Wait(ctx context.Context, key string) error { return k.WaitN(ctx, key, 1) }

// WaitN takes n permits of the key, and waits for them if necessary. It waits on a timer of Go and blocks no thread.
//
// If the permits would come after the context's deadline, the call refuses at once and charges nothing. The error then is both [ErrDenied]
// and [context.DeadlineExceeded]. It is [ErrNever] if n is above the burst. If the context ends during the wait, the error is the
// context's, and the call cancels the booking ([Keys.Cancel]).
//
// Where the algorithm can book ahead, the callers of a key wake one after the other in the order of their bookings, in all
// processes. With windows and logs the goroutines of this process stand in line, as in [Limiter.WaitN].
func (k Keys) WaitN(ctx context.Context, key string, n uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	policy, err := k.table.Policy(k.policy)
	if err != nil {
		return err
	}
	if !policy.booksAhead() {
		return k.waitInLine(ctx, &policy, key, n)
	}
	patience, limited := timeLeft(ctx)
	booked, err := k.Reserve(key, n, patience)
	if err == ErrDenied && limited {
		return errTooLate
	}
	if err != nil {
		return err
	}
	return sleepOrCancel(ctx, booked, func() { _, _ = k.Cancel(key, booked) })
}

// waitInLine is WaitN of an algorithm that cannot book ahead.
func (k Keys) waitInLine(ctx context.Context, policy *Policy, key string, n uint64) error {
	l := k.table.lines.enter(lineKey{k.policy, key})
	defer k.table.lines.leave(lineKey{k.policy, key})
	ask := func() (Decision, error) { return k.Check(key, n) }
	return l.wait(ctx, n, ask, func(ahead uint64) time.Duration {
		// If the peek failed, the goroutine's turn returns the error.
		alone, _ := k.Peek(key, n)
		return policy.earliest(alone.RetryAfter, ahead, n)
	})
}

type lineKey struct {
	policy uint32
	key    string
}

// lines has the lines of a table's keys. A key has a line only while a goroutine waits for it.
type lines struct {
	mu    sync.Mutex
	lines map[lineKey]*countedLine
}

type countedLine struct {
	line
	// The number of goroutines that wait in the line, or are about to.
	users int
}

func (l *lines) enter(of lineKey) *line {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines == nil {
		l.lines = make(map[lineKey]*countedLine)
	}
	found := l.lines[of]
	if found == nil {
		found = new(countedLine)
		l.lines[of] = found
	}
	found.users++
	return &found.line
}

func (l *lines) leave(of lineKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.lines[of]; found != nil {
		if found.users--; found.users == 0 {
			delete(l.lines, of)
		}
	}
}
