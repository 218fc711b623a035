//go:build cgo || tollbar_purego

package redis

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

// Eval runs [Script] in the store with these keys and arguments, by the Redis client of the program,
// and returns what the client does. It is not called again before it returns. It should return soon
// after ctx ends. A call that may have reached the store must not be repeated. An error of the store
// itself has a method RedisError, as go-redis' has.
//
// With go-redis, whose UniversalClient is one server, Sentinel or a cluster:
//
//	script := goredis.NewScript(redis.Script())
//	options.Eval = func(ctx context.Context, keys []string, args ...any) (any, error) {
//		return script.Run(ctx, client, keys, args...).Result()
//	}
type Eval func(ctx context.Context, keys []string, args ...any) (any, error)

// Script returns the script of all calls, in Lua. It returns an array of one string. Empty if there is
// no library to call.
func Script() string {
	if libraryError() != nil {
		return ""
	}
	return cCallsScript()
}

// callPatience is the time after which the context of a call ends.
const callPatience = time.Second

// caller asks the store by the program's own client.
type caller struct {
	fault
	lease, calls uintptr
	eval         Eval
	ctx          context.Context
	stop         context.CancelFunc
	closing      atomic.Bool
	done         chan struct{}
}

func newCaller(lease uintptr, eval Eval) (*caller, tollbar.Code) {
	calls, code := newCalls(lease)
	if code != 0 {
		return nil, code
	}
	c := &caller{lease: lease, calls: calls, eval: eval, done: make(chan struct{})}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c, 0
}

func (c *caller) run(onChange func(Circuit)) {
	defer close(c.done)
	circuit := CircuitUnknown
	for !c.closing.Load() {
		if wait, _ := c.turn(c.ctx, 0); wait != 0 {
			callsWait(c.calls, min(wait, 10))
		}
		stats, _ := leaseStats(c.lease)
		if stats.Circuit == circuit {
			continue
		}
		circuit = stats.Circuit
		c.set(callsError(c.calls))
		if onChange != nil {
			onChange(circuit)
		}
	}
}

// turn makes the call that is due. It returns the milliseconds until the next turn, and whether the
// library wants neither a call nor a wait: at the end, when the store knows everything.
func (c *caller) turn(ctx context.Context, flags uint32) (wait uint32, idle bool) {
	keys, args, wait := callsTurn(c.calls, flags)
	if keys == nil {
		return wait, wait == 0
	}
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	reply, err := c.eval(ctx, keys, args...)
	cancel()
	var store interface {
		error
		RedisError()
	}
	switch {
	case errors.As(err, &store):
		callsRefused(c.calls, store.Error())
	case err != nil:
		callsLost(c.calls, err.Error())
	default:
		callsAnswered(c.calls, item(reply))
	}
	return 0, false
}

// item returns the string in the array that the script returned; empty for anything else, which the
// library takes for no answer.
func item(reply any) string {
	if items, ok := reply.([]any); ok && len(items) == 1 {
		reply = items[0]
	}
	switch text := reply.(type) {
	case string:
		return text
	case []byte:
		return string(text)
	}
	return ""
}

func (c *caller) end(patience time.Duration) tollbar.Code {
	c.closing.Store(true)
	c.stop()
	<-c.done
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for ctx.Err() == nil {
		wait, knowsAll := c.turn(ctx, tollbar_lease_closing)
		if knowsAll {
			break
		}
		callsWait(c.calls, min(wait, 1))
	}
	code := closeCalls(c.calls)
	freeLease(c.lease)
	return code
}
