//go:build cgo || tollbar_purego

package redis

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/internal/guard"
)

// RunScript runs a script of one key with whole numbers (int64) as arguments in the store, by the
// Redis client of the program, and returns what the client does: an array of whole numbers. Any
// number of goroutines may call it at once. A call that may have reached the store must not be
// repeated.
//
// With go-redis, whose UniversalClient is one server, Sentinel or a cluster:
//
//	run := func(ctx context.Context, script, key string, args ...any) (any, error) {
//		return goredis.NewScript(script).Run(ctx, client, []string{key}, args...).Result()
//	}
//	logins, err := redis.NewStoreLimit("logins", "5/min algo sliding-log", run)
type RunScript func(ctx context.Context, script, key string, args ...any) (any, error)

// StoreLimit is a limit that the store decides. Each decision is one call of a script, and waits
// for the network. The store's clock and state are the only ones, so any number of machines admit
// exactly what one limiter would. A [Lease] does not wait.
//
// A key is 1 to 512 bytes, in a string. Any number of goroutines may use a limit.
//
// An error never admits a request. It wraps the error of [RunScript] if the call failed; the store
// may then have charged the key. [tollbar.ErrStoreValue] says that the key in the store has a value
// that tollbar did not write. Nothing was charged then.
type StoreLimit struct {
	handle  uintptr
	run     RunScript
	guard   *guard.Guard
	cleanup runtime.Cleanup
}

// NewStoreLimit makes the limit of that name (1 to 64 visible ASCII characters without braces), and
// does not call the store. The policy is gcra, interval, fixed-window, weighted-window,
// sliding-log or an aligned sliding-window, without borrow, ban, init, reserve and a second rate.
// The error is a [*tollbar.PolicyError] or a [tollbar.Code].
func NewStoreLimit(name, policy string, run RunScript) (*StoreLimit, error) {
	if run == nil {
		return nil, errors.New("tollbar: a limit in a store has a RunScript")
	}
	handle, err := newStoreLimit(name, policy)
	if err != nil {
		return nil, err
	}
	l := &StoreLimit{handle: handle, run: run, guard: new(guard.Guard)}
	l.cleanup = runtime.AddCleanup(l, freeStoreLimit, handle)
	return l, nil
}

// Close frees the limit, and does not wait for the store. Later calls return [tollbar.ErrClosed].
// So do calls whose script runs during the Close, and the store may have charged their keys. Close
// always returns nil.
func (l *StoreLimit) Close() error {
	if l.guard.Close() {
		l.cleanup.Stop()
		freeStoreLimit(l.handle)
	}
	return nil
}

// Allow takes a permit of the key. False: refused, or an error.
func (l *StoreLimit) Allow(ctx context.Context, key string) (bool, error) {
	d, err := l.Check(ctx, key, 1)
	return d.Allowed(), err
}

// Check takes n permits of the key, or none, and returns the full decision. Its times are whole
// microseconds, rounded up. An n of 0 charges nothing. With an error the verdict is
// [tollbar.Denied].
func (l *StoreLimit) Check(ctx context.Context, key string, n uint64) (tollbar.Decision, error) {
	d, _, err := l.ask(ctx, tollbar_store_check, key, n)
	return d, err
}

// Peek returns the decision that [StoreLimit.Check] would make. It takes nothing.
func (l *StoreLimit) Peek(ctx context.Context, key string, n uint64) (tollbar.Decision, error) {
	d, _, err := l.ask(ctx, tollbar_store_peek, key, n)
	return d, err
}

// TakeUpTo takes as many permits of the key as are left, at most most, and returns their number.
func (l *StoreLimit) TakeUpTo(ctx context.Context, key string, most uint64) (uint64, error) {
	_, taken, err := l.ask(ctx, tollbar_store_up_to, key, most)
	return taken, err
}

// Reset forgets the key, whose next request is decided as that of a new key.
func (l *StoreLimit) Reset(ctx context.Context, key string) error {
	_, _, err := l.ask(ctx, tollbar_store_reset, key, 0)
	return err
}

// ask makes the call of a question, and reads its answer. The limit may be closed during the call.
func (l *StoreLimit) ask(
	ctx context.Context, what uint32, key string, n uint64,
) (d tollbar.Decision, taken uint64, err error) {
	d = tollbar.Decision{Verdict: tollbar.Denied, Reason: tollbar.ReasonFault}
	question := newQuestion()
	err = l.call(func() tollbar.Code { return storeAsk(l.handle, what, key, n, &question) })
	if err != nil {
		return d, 0, err
	}
	var reply []int64
	if question.script != nil {
		script, named, args := question.words()
		found, err := l.run(ctx, script, named, args...)
		if err != nil {
			return d, 0, fmt.Errorf("tollbar: the call of the store failed: %w", err)
		}
		if reply = numbers(found); reply == nil {
			return d, 0, tollbar.ErrStoreReply
		}
	}
	err = l.call(func() (code tollbar.Code) {
		d, taken, code = storeAnswer(l.handle, &question, reply)
		return code
	})
	return d, taken, err
}

// numbers returns the whole numbers of an array that a client returned; nil for anything else.
func numbers(reply any) []int64 {
	items, _ := reply.([]any)
	var found []int64
	for _, item := range items {
		number, err := int64(0), error(nil)
		switch item := item.(type) {
		case int64:
			number = item
		case int:
			number = int64(item)
		case string:
			number, err = strconv.ParseInt(item, 10, 64)
		default:
			return nil
		}
		if err != nil {
			return nil
		}
		found = append(found, number)
	}
	return found
}

// call runs f unless the limit is closed. A verdict is no error.
func (l *StoreLimit) call(f func() tollbar.Code) error {
	c := l.guard.Enter()
	if c == nil {
		return tollbar.ErrClosed
	}
	code := f()
	c.Leave()
	runtime.KeepAlive(l)
	if code < 0 {
		return code
	}
	return nil
}
