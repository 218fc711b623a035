//go:build cgo || tollbar_purego

// Package redis has limits that machines share through Redis or Valkey. It is a separate package,
// so that a program without such limits does not link libtollbar-redis.
package redis

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/internal/guard"
)

// Fallback says how a machine decides while the store does not answer.
type Fallback uint32

const (
	// FallbackShare: the machine admits its share of the limit. The lease charges those permits
	// when the store is back.
	FallbackShare Fallback = iota
	// FallbackDeny: the machine refuses requests that no lease covers.
	FallbackDeny
	// FallbackAllow: the machine admits requests that no lease covers, and does not count them.
	FallbackAllow
)

// Circuit says whether the store answers.
type Circuit uint32

const (
	// CircuitUnknown: no client has reached the store yet. The machine follows its fallback.
	CircuitUnknown Circuit = iota
	// CircuitClosed: the store answers.
	CircuitClosed
	// CircuitOpen: the store does not answer. The machine follows its fallback.
	CircuitOpen
)

// String returns the circuit in a word.
func (c Circuit) String() string {
	switch c {
	case CircuitClosed:
		return "closed"
	case CircuitOpen:
		return "open"
	}
	return "unknown"
}

// LeaseOptions say how machines share a limit. Nodes, and URL or Eval, are required. The first machine of a
// limit puts its policy and options into the store's record, and all machines follow the record.
// URL, Eval, Capacity, Fallback and OnChange are each machine's own.
type LeaseOptions struct {
	// Nodes is the maximum number of machines that share the limit, 1 to 65,535.
	Nodes uint32
	// URL of the store: redis://[user[:password]@]host[:port][/db] or
	// unix:/path[?db=N&user=...&password=...].
	URL string
	// Eval, in place of URL, asks the store by the program's own Redis client, which may know
	// Sentinel, clusters, TLS or tokens.
	Eval Eval
	// Capacity is the number of keys that this machine tracks at one time; 0 means 4096.
	Capacity uint64
	// Life is the time for which a machine may spend a lease, 1 ms to 10 min. 0 means a sixteenth
	// of the time that the burst refills in, at most 4 s.
	Life time.Duration
	// Overdraft is the number of permits of a key that a machine may have admitted and the store has
	// not charged yet, at most 127. nil: the library chooses it for the policy.
	Overdraft *uint64
	// Fallback says how the machine decides while the store does not answer.
	Fallback Fallback
	// Inexact lets the store grant the whole burst: the machines together may exceed the policy by
	// the overdrafts of all of them.
	Inexact bool
	// Refill: after the store has lost data, every key's bucket counts as empty at the loss, and
	// refills. Otherwise a key that the store has lost has a full bucket, and may get one burst more
	// for each loss.
	Refill bool
	// OnChange is called when the circuit changes, by the goroutine that asks the store for all leases
	// of the URL. It should return soon, and must not call Close.
	OnChange func(Circuit)
}

// LeaseStats are counters of this machine.
type LeaseStats struct {
	// Circuit says whether the store answers.
	Circuit Circuit
	// Granted permits, and questions Asked.
	Granted, Asked uint64
	// Overdrawn and FallbackPermits count permits that the machine admitted from its own bucket
	// while the store answered, and while it did not. Uncounted counts permits of [FallbackAllow].
	Overdrawn, FallbackPermits, Uncounted uint64
	// Denied counts requests that were denied, and QueueFull messages to the client that the full
	// queue dropped.
	Denied, QueueFull uint64
	// Opened counts how often the circuit opened.
	Opened uint64
	// Owed is the number of permits that the machine admitted without a lease and the store has not
	// charged yet.
	Owed uint64
	// Full counts requests that were denied because other keys used the machine's places
	// ([LeaseOptions] has Capacity).
	Full uint64
	// DeniedPending counts requests that were denied because the store had not answered yet,
	// DeniedByStore those that its last answer denied, and DeniedByFallback those that the fallback
	// denied.
	DeniedPending, DeniedByStore, DeniedByFallback uint64
}

// Lease is this machine's part of a limit that machines share through Redis or Valkey. A goroutine
// takes some permits at a time from the store, and calls spend them. Leases with the same URL have one
// goroutine and one connection. No call but [Lease.Wait] and [Lease.WaitN] waits for the store.
//
// A key is bytes, in a string. The empty key is the one limit for all requests. Any number of
// goroutines may use a lease.
type Lease struct {
	handle  uintptr
	policy  tollbar.Policy
	guard   *guard.Guard
	driver  asker
	cleanup runtime.Cleanup
}

// NewLease makes this machine's part of the limit of that name (1 to 64 visible ASCII characters
// without braces), and begins to ask the store. It does not wait for the store. The policy is a
// token bucket without borrow and init. The error is a [*tollbar.PolicyError] or a
// [*tollbar.LeaseError].
func NewLease(name, policy string, options LeaseOptions) (*Lease, error) {
	handle, of, err := openLease(name, policy, &options)
	if err != nil {
		return nil, err
	}
	d, err := ask(handle, name, &options)
	if err != nil {
		freeLease(handle)
		return nil, err
	}
	l := &Lease{handle: handle, policy: of, guard: new(guard.Guard), driver: d}
	// Neither the asker nor its goroutine refers to the lease. So when the program has dropped the lease,
	// the garbage collector finds it and ends it.
	l.cleanup = runtime.AddCleanup(l, func(d asker) { go d.end(0) }, d)
	return l, nil
}

// ask begins to ask the store for the lease.
func ask(lease uintptr, name string, options *LeaseOptions) (asker, error) {
	if options.Eval != nil {
		c, code := newCaller(lease, options.Eval)
		if code != 0 {
			return nil, &tollbar.LeaseError{Name: name, Code: code}
		}
		go c.run(options.OnChange)
		return c, nil
	}
	m, code, column := join(lease, name, options.URL, options.OnChange)
	if code != 0 {
		return nil, &tollbar.LeaseError{Name: name, Code: code, Column: int(column)}
	}
	return m, nil
}

// asker asks the store for a lease, from a goroutine, until end.
type asker interface {
	err() error
	end(patience time.Duration) tollbar.Code
}

// fault is what was wrong with the store when the circuit last changed.
type fault struct{ text atomic.Pointer[string] }

func (f *fault) set(text string) { f.text.Store(&text) }

func (f *fault) err() error {
	if text := f.text.Load(); text != nil && *text != "" {
		return errors.New("tollbar: " + *text)
	}
	return nil
}

// Close reports to the store the permits that it does not know yet, and ends the lease. Later calls
// return [tollbar.ErrClosed]. Close takes until ctx's deadline, or a second if ctx has none. It
// returns [tollbar.ErrUnreported] if that was too short. If ctx is cancelled before, it returns
// ctx's error, and the lease ends in the background. A second Close returns nil.
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
			// Both happen at the same time, as is usual with a deadline.
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

// Check takes n permits of the key and returns the full decision: Remaining counts this machine's
// permits, RetryAfter is an estimate, and ResetAfter is 0. An n of 0 charges nothing. The reason
// [tollbar.ReasonPending] says that only the store can tell; [Lease.WaitN] waits for its answer.
// With an error the verdict is [tollbar.Denied].
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

// Wait takes a permit of the key, and waits for the store's answer if this machine has no permit.
// See [Lease.WaitN].
func (l *Lease) Wait(ctx context.Context, key string) error { return l.WaitN(ctx, key, 1) }

// WaitN takes n permits of the key, and waits for the store's answer if this machine does not have
// them. The wait is about one round trip. WaitN does not wait until the limit refills: while the
// store answers, the error is [tollbar.ErrDenied] if the store has no n permits now. It is
// [tollbar.ErrNever] if n is more than a lease can have. While the store does not answer, WaitN
// decides at once as [Lease.AllowN] does. The call waits on a timer of Go and blocks no thread.
//
// If the context ends during the wait, the error is the context's. The store may still charge such a
// request. Other requests of this machine may then spend its permits for at most 250 ms, after which
// the permits are lost.
func (l *Lease) WaitN(ctx context.Context, key string, n uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	request := newRequest(n)
	if done, err := l.poll(key, &request); done {
		return err
	}
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			if done, err := l.poll(key, &request); done {
				return err
			}
		}
	}
}

// pollEvery is how often a request that waits looks for the store's answer. tollbar_lease_wait would
// see the answer up to a millisecond earlier, and hold a thread for each goroutine that waits.
const pollEvery = time.Millisecond

// poll returns false as long as the request waits for the store.
func (l *Lease) poll(key string, request *tollbar_lease_request) (done bool, err error) {
	code := tollbar.Code(0)
	err = l.call(func() tollbar.Code {
		code = leasePoll(l.handle, key, request)
		return code
	})
	if err == nil && code > 0 && code != tollbar_lease_waits {
		err = code
	}
	return code != tollbar_lease_waits, err
}

// Peek decides as [Lease.Check] would from this machine's permits. It takes nothing, and requests
// no lease.
func (l *Lease) Peek(key string, n uint64) (tollbar.Decision, error) {
	d := tollbar.Decision{Verdict: tollbar.Denied, Reason: tollbar.ReasonFault}
	err := l.call(func() tollbar.Code { return leasePeek(l.handle, key, n, &d) })
	return d, err
}

// Now returns the time that calls without a time use, in nanoseconds.
func (l *Lease) Now() (now uint64, err error) {
	err = l.call(func() tollbar.Code {
		now = leaseNow(l.handle)
		return 0
	})
	return now, err
}

// Stats returns the counters of this machine.
func (l *Lease) Stats() (stats LeaseStats, err error) {
	err = l.call(func() (code tollbar.Code) {
		stats, code = leaseStats(l.handle)
		return code
	})
	return stats, err
}

// Circuit returns whether the store answers. [CircuitUnknown] after Close.
func (l *Lease) Circuit() Circuit {
	stats, _ := l.Stats()
	return stats.Circuit
}

// Err returns why the store does not answer or refuses, as of the last change of the circuit; nil if it
// does neither.
func (l *Lease) Err() error { return l.driver.err() }

// Policy returns the limit's policy.
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
