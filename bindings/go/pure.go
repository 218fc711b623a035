//go:build !cgo && !tollbar_purego

package tollbar

// Without the library limiters step their words in Go (internal/core). This file has what bridge.go
// has with it.

import (
	"fmt"
	"math"
	"time"

	"github.com/tollbar/tollbar/bindings/go/internal/core"
)

// libraryError is the reason for which the library cannot be called: it is not there.
func libraryError() error { return ErrNeedsLibrary }

func describeCode(c Code) string { return core.Code(c).String() }

// Version is the version of the linked C library; "" without the library.
func Version() string { return "" }

// Now reads a clock. Without the library that is [ClockWall], in nanoseconds since 1970.
func Now(clock Clock) (uint64, error) {
	if clock != ClockWall {
		return 0, ErrNeedsLibrary
	}
	return uint64(time.Now().UnixNano()), nil
}

// needsLibrary is the error of a policy that only the C library can read or step.
func needsLibrary(policy string) error {
	return fmt.Errorf("tollbar: policy %q: %w", policy, ErrNeedsLibrary)
}

// parse reads and compiles a policy; the error is a *PolicyError, or ErrNeedsLibrary.
func parse(policy string) (core.Policy, core.Algorithm, error) {
	read, algorithm, wrong := core.Parse(policy)
	switch {
	case wrong == nil:
		return read, algorithm, nil
	case wrong.Code == core.NeedsLibrary:
		return read, nil, needsLibrary(policy)
	}
	expected := wrong.Expected
	if expected == "" {
		expected = wrong.Code.String()
	}
	return read, nil, &PolicyError{Text: policy, Code: Code(wrong.Code), Column: wrong.Column, Expected: expected}
}

func parsePolicy(text string) (Policy, error) {
	read, _, err := parse(text)
	if err != nil {
		return Policy{}, err
	}
	if Algorithm(read.Kind) != Quota && read.Period > uint64(Forever) || read.Ban > uint64(Forever) {
		return Policy{}, tooLong(text)
	}
	return policyOf(&read), nil
}

func policyOf(p *core.Policy) Policy {
	implied := p.Burst
	if p.Borrow {
		implied = 0
	}
	of := Policy{
		Algorithm: Algorithm(p.Kind), Limit: p.Limit, Period: duration(p.Period),
		Burst: p.Burst, HasInit: p.Init != implied, Borrow: p.Borrow,
		AnchorFirst: p.AnchorFirst, CountRejected: p.CountRejected,
		Bytes: p.Bytes, Slack: p.Slack, Ban: duration(p.Ban), BanAfter: p.BanAfter,
	}
	if of.HasInit {
		of.Init = p.Init
	}
	return of
}

// compile compiles a policy; the error is a *PolicyError, or ErrNeedsLibrary.
func (p *Policy) compile() (core.Policy, core.Algorithm, error) {
	of := core.Policy{
		Kind: uint32(p.Algorithm), Limit: p.Limit, Period: uint64(max(p.Period, 0)),
		Burst: p.Burst, Init: p.Burst, Borrow: p.Borrow,
		AnchorFirst: p.AnchorFirst, CountRejected: p.CountRejected,
		Bytes: p.Bytes, Slack: p.Slack, WarmUp: uint64(max(p.WarmUp, 0)),
		Segments: p.Segments, Mode: uint32(p.Mode), Cold: p.Cold, Ban: uint64(max(p.Ban, 0)), BanAfter: p.BanAfter,
	}
	if p.Algorithm == Quota && p.Period == Forever {
		of.Period = core.Forever
	}
	if p.Borrow {
		of.Init = 0
	}
	if p.HasInit {
		of.Init = p.Init
	}
	if of.Ban != 0 {
		of.BanAfter = max(of.BanAfter, 1)
	}
	code := core.NeedsLibrary
	var algorithm core.Algorithm
	if p.SecondLimit == 0 && p.SecondPeriod == 0 && p.Classes == [ClassesMost]Class{} && p.Knots == (Knots{}) &&
		p.From == 0 && p.Zone == (Zone{}) {
		algorithm, code = core.Compile(&of)
	}
	switch code {
	case 0:
		return of, algorithm, nil
	case core.NeedsLibrary:
		return of, nil, fmt.Errorf("tollbar: a policy of %s: %w", p.Algorithm, ErrNeedsLibrary)
	}
	return of, nil, Code(code)
}

// refusedOf is the error of a policy that cannot be compiled.
func (p *Policy) refusedOf(err error) error {
	if code, ok := err.(Code); ok {
		return refused(p.String(), code)
	}
	return err
}

func checkPolicy(p *Policy) error {
	_, _, err := p.compile()
	return p.refusedOf(err)
}

func lastTime(p *Policy) (uint64, error) {
	_, algorithm, err := p.compile()
	if err != nil {
		return 0, p.refusedOf(err)
	}
	return algorithm.LastTime(), nil
}

func worstCase(*Policy, uint64) (uint64, error) { return 0, libraryError() }

func curvePolicy(uint64, uint64, []float64) (Policy, CurveFit, error) {
	return Policy{}, CurveFit{}, libraryError()
}

func printPolicy(p *Policy) (string, error) {
	of, _, err := p.compile()
	if err != nil {
		return "", err
	}
	return of.String(), nil
}

// ---- limiters ----

// handle is a limiter and its clock.
type handle = *clocked

type clocked struct {
	*core.Limiter
	clock  Clock
	policy core.Policy
}

// freed does nothing: the garbage collector frees the limiter.
func (l *Limiter) freed() {}

func newLimiter(policy string, options LimiterOptions) (handle, Policy, error) {
	read, algorithm, err := parse(policy)
	switch {
	case err != nil:
		return nil, Policy{}, err
	case options.Clock > ClockWall:
		return nil, Policy{}, refused(policy, ErrOutOfRange)
	case options.Clock == ClockWall && algorithm.LastTime() < core.LastTime:
		return nil, Policy{}, refused(policy, ErrRateTooHigh)
	case options.Credit && (Algorithm(read.Kind) != GCRA || read.Borrow || read.Ban != 0 || read.Limit == 0):
		return nil, Policy{}, refused(policy, ErrOptionMismatch)
	case options.Credit:
		return nil, Policy{}, fmt.Errorf("tollbar: a limiter with credit: %w", ErrNeedsLibrary)
	}
	return &clocked{core.NewLimiter(algorithm), options.Clock, read}, policyOf(&read), nil
}

// began is the process's beginning, by the wall clock and by the monotonic one.
var began = time.Now()

// sinceZero is the distance from limiterZero to began.
var sinceZero = max(began.Sub(limiterZero), 0)

// now is the time of limiters and tables with this clock.
func (c Clock) now() uint64 {
	if c == ClockWall {
		return uint64(max(time.Now().UnixNano(), 0))
	}
	if bubble, ok := bubbleTime(); ok {
		return bubble
	}
	return uint64(sinceZero + time.Since(began))
}

// bubbleTime returns the nanoseconds since the clock of the calling goroutine's bubble of
// testing/synctest began, which is before the process's beginning. It returns false if the goroutine
// is in no bubble.
func bubbleTime() (uint64, bool) {
	if time.Since(began) >= 0 {
		return 0, false
	}
	return uint64(max(time.Since(bubbleBegin), 0)), true
}

// bubbleBegin is the time at which the clock of each bubble of testing/synctest begins.
var bubbleBegin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func answered(a core.Answer) Decision {
	return Decision{
		Verdict: Verdict(a.Verdict), Reason: Reason(a.Reason),
		Remaining: a.Remaining, RetryAfter: duration(a.RetryAfter),
		ResetAfter: duration(a.ResetAfter),
	}
}

// clockNow reads the clock of the option Time, or the limiter's own.
func (l *Limiter) clockNow() uint64 {
	if l.time != nil {
		return l.TimeOf(l.time())
	}
	return l.handle.clock.now()
}

func (l *Limiter) allow(n uint64) bool { return l.allowAt(l.clockNow(), n) }

func (l *Limiter) allowAt(now, n uint64) bool { return l.handle.Take(now, n) == core.Allowed }

// takeNow takes permits that are there. It counts no decision if they are not.
func (l *Limiter) takeNow(n uint64) bool {
	now := l.clockNow()
	return l.handle.Peek(now, n).Verdict == core.Allowed && l.handle.Take(now, n) == core.Allowed
}

func (l *Limiter) check(n uint64) (Decision, error) { return l.checkAt(l.clockNow(), n) }

func (l *Limiter) checkAt(now, n uint64) (Decision, error) {
	return answered(l.handle.Check(now, n)), nil
}

func (l *Limiter) peek(n uint64) (Decision, error) { return l.peekAt(l.clockNow(), n) }

func (l *Limiter) peekAt(now, n uint64) (Decision, error) {
	return answered(l.handle.Peek(now, n)), nil
}

func (l *Limiter) many(at bool, now uint64, costs []uint64, verdicts []Verdict) Code {
	if !at {
		now = l.clockNow()
	}
	for i := range verdicts {
		n := uint64(1)
		if costs != nil {
			n = costs[i]
		}
		verdicts[i] = Verdict(l.handle.Take(now, n))
	}
	return 0
}

func (l *Limiter) charge(n uint64) (uint64, Code) { return l.chargeAt(l.clockNow(), n) }

func (l *Limiter) chargeAt(now, n uint64) (uint64, Code) { return l.handle.Charge(now, n), 0 }

func (l *Limiter) takeUpTo(most uint64) (uint64, Code) {
	return l.takeUpToAt(l.clockNow(), most)
}

func (l *Limiter) takeUpToAt(now, most uint64) (uint64, Code) { return l.handle.TakeUpTo(now, most), 0 }

func (l *Limiter) reserve(n uint64, patience time.Duration) (Reservation, Code) {
	return l.reserveAt(l.clockNow(), n, patience)
}

func (l *Limiter) reserveAt(now, n uint64, patience time.Duration) (Reservation, Code) {
	at, verdict := l.handle.Reserve(now, n, latest(now, patience))
	if verdict != core.Allowed {
		return Reservation{}, Code(verdict)
	}
	return Reservation{Departs: at, Wait: duration(at - now), Cost: n}, 0
}

// latest is the time after a patience.
func latest(now uint64, patience time.Duration) uint64 {
	sum := now + uint64(max(patience, 0))
	if patience == Forever || sum < now {
		return math.MaxUint64
	}
	return sum
}

func (l *Limiter) cancel(r Reservation) (uint64, Code) {
	return l.handle.GiveBack(core.Charge{At: r.Departs, Cost: r.Cost}, l.clockNow), 0
}

func (l *Limiter) cancelAt(now uint64, r Reservation) (uint64, Code) {
	return l.handle.GiveBack(core.Charge{At: r.Departs, Cost: r.Cost}, func() uint64 { return now }), 0
}

func (l *Limiter) setPolicy(string, Keep) (Policy, error) {
	return Policy{}, fmt.Errorf("tollbar: a change of a limiter's policy: %w", ErrNeedsLibrary)
}

func (l *Limiter) now() (uint64, Code) { return l.clockNow(), 0 }

func (l *Limiter) reset() Code {
	l.handle.Reset()
	return 0
}

func (l *Limiter) state() (LimiterState, Code) {
	now := l.clockNow()
	d := l.handle.Peek(now, 1)
	counts := l.handle.Counts()
	return LimiterState{
		Now: now, Remaining: d.Remaining, RetryAfter: duration(d.RetryAfter), ResetAfter: duration(d.ResetAfter),
		BackwardSteps: l.handle.BackwardSteps(), Allowed: counts[core.Allowed],
		Denied: counts[core.Denied], Never: counts[core.Never],
	}, 0
}
