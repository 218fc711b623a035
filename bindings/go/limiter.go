// Package tollbar limits rates in nanoseconds, exact and lock-free. With cgo it calls the C library
// libtollbar, and so it does without cgo in a program that imports tollpurego and is built with
// -tags tollbar_purego. Without both it decides in Go as the library does, in limiters and in
// tables of this process; what only the library can do returns [ErrNeedsLibrary].
//
//	limiter, err := tollbar.NewLimiter("100/s burst 20")
//	if err != nil {
//		return err // has the column of the fault
//	}
//	if !limiter.Allow() {
//		return errTooManyRequests
//	}
//
// A [Limiter] has one state under any policy. A [Table] has a state for each of millions of keys,
// in memory that processes may share. Sub-package cell is a token bucket in pure Go, tollhttp is
// middleware for net/http, and rate has the API of golang.org/x/time/rate.
//
// A call into C costs some tens of nanoseconds, more than the decision itself. [Limiter.CheckMany]
// and [Table.CheckMany] spread that over many requests, and cell makes no call into C. [TakeMany]
// is one request with several limits: it charges all of them, or none.
//
// Any number of goroutines may make any call at once, Close included. A call after Close returns
// [ErrClosed], or false if it returns a bool.
package tollbar

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollbar/tollbar/bindings/go/cell"
	"github.com/tollbar/tollbar/bindings/go/internal/library"
	"github.com/tollbar/tollbar/bindings/go/internal/waiting"
)

// Forever means that no wait would help, or that the wait is longer than 292 years.
const Forever = cell.Forever

// Decision is a full decision.
type Decision = cell.Decision

// Verdict says whether a request may pass. In the results of a batch a negative one is a [Code].
type Verdict = cell.Verdict

// The verdicts.
const (
	// Allowed: the request may pass, and its cost has been charged.
	Allowed = cell.Allowed
	// Denied: the request is refused now. Nothing has been charged.
	Denied = cell.Denied
	// Never: the request can never pass. Nothing has been charged.
	Never = cell.Never
)

// Clock is the clock of calls without a time. Limiters and tables count it in UTC since 2025-03-13
// ([Limiter.Now]).
type Clock uint32

const (
	// ClockCounter is the processor's counter on the monotonic clock's scale, or ClockMonotonic if
	// the processor or the kernel does not trust the counter.
	ClockCounter Clock = iota
	// ClockMonotonic is the system's CLOCK_MONOTONIC.
	ClockMonotonic
	// ClockCoarse is the system's CLOCK_MONOTONIC_COARSE: cheap, in steps of the kernel's tick (1
	// to 10 ms).
	ClockCoarse
	// ClockWall is the system's CLOCK_REALTIME, in Unix nanoseconds: it steps when the system's
	// clock is set.
	ClockWall
)

// Limiter has one state under any policy, and a clock. The zero value is a closed limiter.
type Limiter struct {
	handle handle
	// The option Time.
	time func() time.Time
	// The zero of the times of [Limiter.TimeOf], once it is known.
	zero   atomic.Pointer[time.Time]
	wall   bool
	closed atomic.Bool
	policy atomic.Pointer[Policy]
	// A change of policy holds this, so that policy is the one in C.
	changing sync.Mutex
	// The goroutines that wait.
	queue  waiting.Queue[Reservation]
	places waiting.Places
}

// LimiterState is a limiter's state, for people and metrics.
type LimiterState struct {
	// Now is the time at which the state was read, in nanoseconds of the limiter's clock.
	Now uint64
	// Remaining permits that could be taken.
	Remaining uint64
	// RetryAfter is the time until one permit could be taken; 0 if one can.
	RetryAfter time.Duration
	// ResetAfter is the time until the state is as good as fresh.
	ResetAfter time.Duration
	// BackwardSteps counts requests whose time was earlier than that of a request admitted before
	// them.
	BackwardSteps uint64
	// Allowed, Denied and Never count the decisions of all threads by verdict. Peeks and errors do
	// not count, and Reset keeps the counts.
	Allowed, Denied, Never uint64
}

// NewLimiter makes a limiter for a policy such as "100/s burst 20" (see [ParsePolicy]), with
// [ClockCounter] and the options given:
//
//	limiter, err := tollbar.NewLimiter("100/s burst 20", tollbar.WithTime(clock.Now))
//
// The error is a [*PolicyError].
func NewLimiter(policy string, options ...LimiterOption) (*Limiter, error) {
	var all LimiterOptions
	for _, option := range options {
		option(&all)
	}
	return NewLimiterWith(policy, all)
}

// NewLimiterOf is [NewLimiter] for a policy that a program has put together.
func NewLimiterOf(policy Policy, options ...LimiterOption) (*Limiter, error) {
	if err := policy.Check(); err != nil {
		return nil, err
	}
	return NewLimiter(policy.String(), options...)
}

// LimiterOptions are the options of a limiter. The zero value has the defaults.
type LimiterOptions struct {
	// Clock of the calls without a time.
	Clock Clock
	// Credit lets threads take permits in advance. A thread spends them without the cache line that
	// all threads share, and without reading the clock unless the call returns a full decision. It
	// is for a limit that many threads check all the time. The bound stays the policy's, but up to
	// an eighth of the burst may be refused early. Only gcra has credit; another policy is refused
	// with [ErrOptionMismatch].
	Credit bool
	// Waiters is the most goroutines that wait for the limiter at one time ([Limiter.WaitN]). 0
	// means 1,024.
	Waiters uint32
	// Time, unless nil, is read in place of Clock. Waits still last as long as Go's timers say. With
	// Time the error is [ErrOptionMismatch] for [TakeMany], where [TakeManyAt] works, and for
	// [Limiter.MoreAfter].
	Time func() time.Time
}

// LimiterOption is an option of [NewLimiter].
type LimiterOption func(*LimiterOptions)

// WithClock is the option Clock.
func WithClock(clock Clock) LimiterOption { return func(o *LimiterOptions) { o.Clock = clock } }

// WithTime is the option Time: the limiter goes by a clock of the caller, such as a test's.
func WithTime(now func() time.Time) LimiterOption { return func(o *LimiterOptions) { o.Time = now } }

// WithCredit is the option Credit.
func WithCredit() LimiterOption { return func(o *LimiterOptions) { o.Credit = true } }

// WithWaiters is the option Waiters.
func WithWaiters(most uint32) LimiterOption { return func(o *LimiterOptions) { o.Waiters = most } }

// NewLimiterWith is [NewLimiter] with all options in one value.
func NewLimiterWith(policy string, options LimiterOptions) (*Limiter, error) {
	handle, read, err := newLimiter(policy, options)
	if err != nil {
		return nil, err
	}
	l := &Limiter{handle: handle, time: options.Time, wall: options.Clock == ClockWall}
	l.places.Most = waiters(options.Waiters)
	l.policy.Store(&read)
	l.freed()
	return l, nil
}

// Close ends the limiter: calls under way finish, and later calls get [ErrClosed]. The garbage
// collector frees its memory. A limiter need not be closed. Close returns nil.
func (l *Limiter) Close() error {
	l.closed.Store(true)
	return nil
}

// ended reports whether the limiter is closed, or the zero value.
func (l *Limiter) ended() bool { return l.closed.Load() || l.handle == *new(handle) }

// Policy returns the limiter's policy, and of the zero value the zero Policy.
func (l *Limiter) Policy() Policy {
	if policy := l.policy.Load(); policy != nil {
		return *policy
	}
	return Policy{}
}

// String describes the limiter for people and logs.
func (l *Limiter) String() string {
	if l.ended() {
		return "tollbar.Limiter(closed)"
	}
	policy := l.Policy()
	return "tollbar.Limiter(" + policy.String() + ")"
}

// SetPolicy changes the policy while other goroutines use the limiter. keep says what the limiter
// keeps of its state. Calls that run at the same time neither wait nor fail, and bookings keep
// their departures. A limiter can be changed to 4,096 different policies, and a limiter with Credit
// to none. After an error, a [*PolicyError], the policy is unchanged.
func (l *Limiter) SetPolicy(policy string, keep Keep) error {
	if l.ended() {
		return ErrClosed
	}
	l.changing.Lock()
	defer l.changing.Unlock()
	read, err := l.setPolicy(policy, keep)
	if err == nil {
		l.policy.Store(&read)
	}
	return err
}

// Allow takes a permit now, if there is one.
func (l *Limiter) Allow() bool { return !l.ended() && l.allow(1) }

// AllowN takes n permits now, or none. An n of 0 charges nothing and is allowed until Close.
func (l *Limiter) AllowN(n uint64) bool { return !l.ended() && l.allow(n) }

// AllowAt is [Limiter.AllowN] at the caller's time. Use either times of one clock of your own for all
// calls, or time.Now. An n below 0 is refused.
func (l *Limiter) AllowAt(t time.Time, n int) bool {
	return n >= 0 && !l.ended() && l.allowAt(l.TimeOf(t), uint64(n))
}

// Check takes n permits now and returns the full decision. An n of 0 charges nothing. The error is
// [ErrClosed] or nil.
func (l *Limiter) Check(n uint64) (Decision, error) {
	if l.ended() {
		return Decision{Verdict: Denied, Reason: ReasonFault}, ErrClosed
	}
	return l.check(n)
}

// CheckAt is [Limiter.Check] at the caller's time, in nanoseconds.
func (l *Limiter) CheckAt(now, n uint64) (Decision, error) {
	if l.ended() {
		return Decision{Verdict: Denied, Reason: ReasonFault}, ErrClosed
	}
	return l.checkAt(now, n)
}

// Peek returns what [Limiter.Check] would return. It changes nothing.
func (l *Limiter) Peek(n uint64) (Decision, error) {
	if l.ended() {
		return Decision{Verdict: Denied, Reason: ReasonFault}, ErrClosed
	}
	return l.peek(n)
}

// PeekAt is [Limiter.Peek] at the caller's time, in nanoseconds.
func (l *Limiter) PeekAt(now, n uint64) (Decision, error) {
	if l.ended() {
		return Decision{Verdict: Denied, Reason: ReasonFault}, ErrClosed
	}
	return l.peekAt(now, n)
}

// CheckMany decides on len(verdicts) requests with one call into C and one reading of the clock.
// costs may be nil, for a cost of 1 each; otherwise there are as many as verdicts, or it panics.
// With an error nothing has been charged and all verdicts are [Denied].
func (l *Limiter) CheckMany(costs []uint64, verdicts []Verdict) error {
	return l.checkMany(false, 0, costs, verdicts)
}

// CheckManyAt is [Limiter.CheckMany] at the caller's time, in nanoseconds.
func (l *Limiter) CheckManyAt(now uint64, costs []uint64, verdicts []Verdict) error {
	return l.checkMany(true, now, costs, verdicts)
}

func (l *Limiter) checkMany(at bool, now uint64, costs []uint64, verdicts []Verdict) error {
	if costs != nil && len(costs) != len(verdicts) {
		panic("tollbar: a batch of as many verdicts as costs is wanted")
	}
	err := error(ErrClosed)
	if !l.ended() {
		err = asError(l.many(at, now, costs, verdicts))
	}
	if err != nil {
		denyAll(verdicts)
	}
	return err
}

// TakeUpTo takes all permits that are left, most at the most, and returns their number.
func (l *Limiter) TakeUpTo(most uint64) (uint64, error) {
	if l.ended() {
		return 0, ErrClosed
	}
	taken, code := l.takeUpTo(most)
	if code < 0 {
		return 0, code
	}
	return taken, nil
}

// TakeUpToAt is [Limiter.TakeUpTo] at the caller's time, in nanoseconds.
func (l *Limiter) TakeUpToAt(now, most uint64) (uint64, error) {
	if l.ended() {
		return 0, ErrClosed
	}
	taken, code := l.takeUpToAt(now, most)
	if code < 0 {
		return 0, code
	}
	return taken, nil
}

// Charge charges n permits without a decision, after the work, when the cost or the failure is
// known. Later requests are refused until the debt is paid. It returns the rest that the state has
// no room for: a token bucket holds a debt of one burst, and windows and logs hold none. Under a
// policy with Ban a charge that leaves no permit counts as a refusal.
func (l *Limiter) Charge(n uint64) (rest uint64, err error) {
	if l.ended() {
		return 0, ErrClosed
	}
	rest, code := l.charge(n)
	if code < 0 {
		return 0, code
	}
	return rest, nil
}

// ChargeAt is [Limiter.Charge] at the caller's time, in nanoseconds.
func (l *Limiter) ChargeAt(now, n uint64) (rest uint64, err error) {
	if l.ended() {
		return 0, ErrClosed
	}
	rest, code := l.chargeAt(now, n)
	if code < 0 {
		return 0, code
	}
	return rest, nil
}

// Reserve takes n permits ahead of time. Without an error the caller must act after the
// reservation's Wait, not earlier. The error is [ErrDenied] if that would be longer than patience
// ([Forever] is any time) or if the algorithm cannot book ahead, as
//
//	a window or a log, and
//
// [ErrNever] if n is above the burst. Then nothing has been charged.
//
// [Limiter.Cancel] cancels a reservation.
func (l *Limiter) Reserve(n uint64, patience time.Duration) (Reservation, error) {
	if l.ended() {
		return Reservation{}, ErrClosed
	}
	booked, code := l.reserve(n, patience)
	return booked, asError(code)
}

// Now returns the time that calls without a time use: nanoseconds of UTC since 2025-03-13, or since
// 1970 on [ClockWall].
func (l *Limiter) Now() (uint64, error) {
	if l.ended() {
		return 0, ErrClosed
	}
	now, code := l.now()
	return now, asError(code)
}

// ReserveAt is [Limiter.Reserve] at the caller's time, in nanoseconds.
func (l *Limiter) ReserveAt(now, n uint64, patience time.Duration) (Reservation, error) {
	if l.ended() {
		return Reservation{}, ErrClosed
	}
	booked, code := l.reserveAt(now, n, patience)
	return booked, asError(code)
}

// Reset makes the state fresh. Admissions in the same instant may survive it.
func (l *Limiter) Reset() error {
	if l.ended() {
		return ErrClosed
	}
	return asError(l.reset())
}

// State returns the present state, and takes no permits.
func (l *Limiter) State() (LimiterState, error) {
	if l.ended() {
		return LimiterState{}, ErrClosed
	}
	state, code := l.state()
	return state, asError(code)
}

// asError returns the error of a result, or nil for 0.
func asError(code Code) error {
	switch code {
	case 0:
		return nil
	case needsLibraryCode:
		return libraryError()
	}
	return code
}

// needsLibraryCode stands for libraryError() where a call returns a code. The library has no such
// code.
const needsLibraryCode Code = library.Missing

// duration converts nanoseconds. It returns Forever for times above the range of a time.Duration.
func duration(ns uint64) time.Duration {
	if ns > math.MaxInt64 {
		return Forever
	}
	return time.Duration(ns)
}

func denyAll(verdicts []Verdict) {
	for i := range verdicts {
		verdicts[i] = Denied
	}
}
