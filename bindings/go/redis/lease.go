//go:build cgo

// Package redis has limits that machines share through Redis or Valkey. It is a package of its own, so that a program without one does
// not link libtollbar-redis.
package redis

import (
	"context"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/internal/guard"
)

// Fallback is what a machine does while the store does not answer.
type Fallback uint32

const (
	// FallbackShare: it goes on by itself at its share of the limit; what it admits is charged when the store is back.
	FallbackShare Fallback = iota
	// FallbackDeny: it refuses what no lease covers.
	FallbackDeny
	// FallbackAllow: it admits what no lease covers, uncounted.
	FallbackAllow
)

// Circuit is whether the store answers.
type Circuit uint32

const (
	// CircuitUnknown: nobody has reached it yet. The machine is on its own.
	CircuitUnknown Circuit = iota
	// CircuitClosed: it answers.
	CircuitClosed
	// CircuitOpen: it does not. The machine is on its own.
	CircuitOpen
)

// String is the circuit in a word.
func (c Circuit) String() string {
	switch c {
	case CircuitClosed:
		return "closed"
	case CircuitOpen:
		return "open"
	}
	return "unknown"
}

// LeaseOptions say how a limit is shared. Nodes and URL are needed. All machines of a limit should have the same options, but for
// URL, Capacity and OnChange; while a change is rolled out, the stricter ones apply.
type LeaseOptions struct {
	// Nodes is how many machines share the limit, at most: 1 to 65,535.
	Nodes uint32
	// URL of the store: redis://[user[:password]@]host[:port][/db] or unix:/path[?db=N&user=...&password=...].
	URL string
	// Capacity is how many keys of this machine are to have a place at one time; 0 is 4096.
	Capacity uint64
	// Life is how long a lease may be spent, 1 ms to 10 min; 0: chosen for the policy, a sixteenth of the time of its
	// burst and 4 s at most.
	Life time.Duration
	// Overdraft is the permits of a key that a machine admits before the store has been asked; nil: chosen for the policy.
	Overdraft *uint64
	// Fallback is what happens while the store does not answer.
	Fallback Fallback
	// Inexact lets the store give out the whole burst: the machines together may exceed the policy by the permits that they hold in leases
	// and reserves.
	Inexact bool
	// OnChange is called when the store comes or goes, from the goroutine that asks it: it should not take long, and not
	// call Close.
	OnChange func(Circuit)
}

// LeaseStats are what has happened on this machine.
type LeaseStats struct {
	// Circuit is whether the store answers.
	Circuit Circuit
	// Granted permits, and questions Asked.
	Granted, Asked uint64
	// Overdrawn and FallbackPermits are permits admitted from the machine's own bucket while the store answered, and while it did
	// not; Uncounted those of [FallbackAllow].
	Overdrawn, FallbackPermits, Uncounted uint64
	// Denied requests, and messages to the client that found no room.
	Denied, QueueFull uint64
	// Opened is how often the store was lost.
	Opened uint64
	// Owed are permits admitted without a lease of which the store has not been told yet.
	Owed uint64
}

// Lease is this machine's part of a limit that many share through Redis or Valkey. No call waits for the store: a goroutine
// of the lease's takes permits from it some at a time, and calls spend them.
//
// A key is bytes, in a string; the empty key is the one limit for all. Any number of goroutines may use it.
type Lease struct {
	handle  uintptr
	policy  tollbar.Policy
	guard   *guard.Guard
	driver  *driver
	cleanup runtime.Cleanup
}

// NewLease makes this machine's part of the limit of that name, which is 1 to 64 visible ASCII characters without braces, and
// begins to ask the store, without waiting for it. The policy is a token bucket without borrow and init. The error is a
// [*tollbar.PolicyError] or a [*tollbar.LeaseError].
func NewLease(name, policy string, options LeaseOptions) (*Lease, error) {
	handle, client, of, err := openLease(name, policy, &options)
	if err != nil {
		return nil, err
	}
	d := &driver{lease: handle, client: client, done: make(chan struct{})}
	l := &Lease{handle: handle, policy: of, guard: new(guard.Guard), driver: d}
	// The goroutine knows the driver only, so that a lease that is forgotten ends.
	l.cleanup = runtime.AddCleanup(l, func(d *driver) { go d.end(0) }, d)
	go d.run(options.OnChange)
	return l, nil
}

// driver is the client of a lease and the goroutine that has it.
//
// That one is in C nearly all of the time, where it waits for the socket, so it has a thread, locked or not: an answer is
// taken in when it comes. A goroutine that ticked by a timer would see it up to a millisecond late, and cross into C a thousand
// times a second to look.
type driver struct {
	lease, client uintptr
	closing       atomic.Bool
	done          chan struct{}
}

func (d *driver) run(onChange func(Circuit)) {
	defer close(d.done)
	for !d.closing.Load() {
		circuit, changed := runClient(d.client)
		if changed && onChange != nil {
			onChange(circuit)
		}
	}
}

// end ends the goroutine, tells the store what it has not been told, and frees all. Once.
func (d *driver) end(patience time.Duration) tollbar.Code {
	d.closing.Store(true)
	// If it is between two runs this is lost, or ends the next at once; either way it looks at closing then.
	stopClient(d.client)
	<-d.done
	code := closeClient(d.client, uint32(min(max(patience.Milliseconds(), 0), math.MaxUint32)))
	freeLease(d.lease)
	return code
}

// Close tells the store what it has not been told, and ends the lease; later calls get [tollbar.ErrClosed]. It takes as long as ctx
// gives it, and a second if ctx has no deadline. [tollbar.ErrUnreported]: that was not enough. If ctx is done sooner it returns ctx's
// error, and what is left ends by itself. A second Close returns nil.
func (l *Lease) Close(ctx context.Context) error {
	if !l.guard.Close() {
		return nil
	}
	l.cleanup.Stop()
	patience := time.Second
	if deadline, ok := ctx.Deadline(); ok {
		patience = time.Until(deadline)
	}
	code := make(chan tollbar.Code, 1)
	go func() { code <- l.driver.end(patience) }()
	var told tollbar.Code
	if patience <= 0 {
		told = <-code
	} else {
		select {
		case told = <-code:
		case <-ctx.Done():
			select {
			// Both at the same time, as is usual with a deadline.
			case told = <-code:
			case <-time.After(50 * time.Millisecond):
				return ctx.Err()
			}
		}
	}
	if told != 0 {
		return told
	}
	return nil
}

// Allow takes a permit of the key. False: refused.
func (l *Lease) Allow(key string) bool { return l.AllowN(key, 1) }

// AllowN takes n permits of the key, or none. False: refused, or an error.
func (l *Lease) AllowN(key string, n uint64) bool {
	c := l.guard.Enter()
	if c == nil {
		return false
	}
	code := leaseCheck(l.handle, key, n, nil)
	c.Leave()
	runtime.KeepAlive(l)
	return code == 0
}

// Check takes n permits of the key and answers in full: Remaining is this machine's, RetryAfter an estimate, ResetAfter 0. n of 0
// asks without charging. With an error the verdict is [tollbar.Denied].
func (l *Lease) Check(key string, n uint64) (tollbar.Decision, error) {
	d := tollbar.Decision{Verdict: tollbar.Denied, Reason: tollbar.ReasonFault}
	err := l.call(func() tollbar.Code { return leaseCheck(l.handle, key, n, &d) })
	return d, err
}

// CheckAt is [Lease.Check] at the caller's time, on the scale of [Lease.Now].
func (l *Lease) CheckAt(key string, now, n uint64) (tollbar.Decision, error) {
	d := tollbar.Decision{Verdict: tollbar.Denied, Reason: tollbar.ReasonFault}
	err := l.call(func() tollbar.Code { return leaseCheckAt(l.handle, key, now, n, &d) })
	return d, err
}

// Peek is what [Lease.Check] could answer from what this machine has. It takes nothing, and asks for nothing.
func (l *Lease) Peek(key string, n uint64) (tollbar.Decision, error) {
	d := tollbar.Decision{Verdict: tollbar.Denied, Reason: tollbar.ReasonFault}
	err := l.call(func() tollbar.Code { return leasePeek(l.handle, key, n, &d) })
	return d, err
}

// Now is the time of the calls without one, in nanoseconds.
func (l *Lease) Now() (now uint64, err error) {
	err = l.call(func() tollbar.Code {
		now = leaseNow(l.handle)
		return 0
	})
	return now, err
}

// Stats are what has happened on this machine.
func (l *Lease) Stats() (stats LeaseStats, err error) {
	err = l.call(func() (code tollbar.Code) {
		stats, code = leaseStats(l.handle)
		return code
	})
	return stats, err
}

// Circuit is whether the store answers; [CircuitUnknown] after Close.
func (l *Lease) Circuit() Circuit {
	stats, _ := l.Stats()
	return stats.Circuit
}

// Policy is the limit's.
func (l *Lease) Policy() tollbar.Policy { return l.policy }

// call runs f unless the lease is closed. A verdict is no error.
func (l *Lease) call(f func() tollbar.Code) error {
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
