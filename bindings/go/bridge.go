//go:build cgo || tollbar_purego

package tollbar

// A function whose name begins with c calls the C function of the rest of its name: cLimiterFree
// calls tollbar_limiter_free. The files call_cgo*.go define these functions for cgo, and
// call_purego*.go define them for
// -tags tollbar_purego. No other file knows which of the two it calls.

import (
	"math"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

func describeCode(c Code) string { return cStrerror(int32(c)) }

// Version is the version of the linked C library, such as "0.1.0".
func Version() string { return cVersion() }

// Now reads a clock. [ClockWall] counts nanoseconds since 1970, the others since the machine's
// start, alike in every process. Limiters and tables count from another zero: [Limiter.Now],
// [Table.Now].
func Now(clock Clock) (uint64, error) {
	var now uint64
	if code := cClockNow(uint32(clock), &now); code != 0 {
		return 0, Code(code)
	}
	return now, nil
}

func newDecision() tollbar_decision {
	return tollbar_decision{struct_size: uint32(unsafe.Sizeof(tollbar_decision{}))}
}

// decided converts a C decision to a Go one.
func decided(code int32, d *tollbar_decision) (Decision, error) {
	if code < 0 {
		return Decision{Verdict: Denied, Reason: ReasonFault}, Code(code)
	}
	return Decision{
		Verdict:    Verdict(code),
		Reason:     Reason(d.reason),
		Remaining:  d.remaining,
		RetryAfter: duration(d.retry_after_ns),
		ResetAfter: duration(d.reset_after_ns),
		Bound:      int(d.bound),
	}, nil
}

// nanoseconds converts a patience for C. A negative one becomes 0, and Forever becomes a wait
// without end.
func nanoseconds(d time.Duration) uint64 {
	if d == Forever {
		return math.MaxUint64
	}
	return uint64(max(d, 0))
}

// whole converts a length of time for C.
func whole(d time.Duration) uint64 { return uint64(max(d, 0)) }

// ---- policies ----

func newSpec() tollbar_policy_spec {
	return tollbar_policy_spec{struct_size: uint32(unsafe.Sizeof(tollbar_policy_spec{}))}
}

// parse reads a policy; the error is a *PolicyError.
func parse(policy string) (tollbar_policy_spec, error) {
	spec, why := newSpec(), newPolicyError()
	code := cPolicyParse(policy, &spec, &why)
	return spec, policyError(policy, code, &why)
}

func newPolicyError() tollbar_policy_error {
	return tollbar_policy_error{struct_size: uint32(unsafe.Sizeof(tollbar_policy_error{}))}
}

// policyError is the error of a text, or nil.
func policyError(text string, code int32, why *tollbar_policy_error) error {
	switch Code(code) {
	case 0:
		return nil
	case needsLibraryCode:
		return libraryError()
	}
	return &PolicyError{Text: text, Code: Code(code), Column: int(why.column), Expected: cString(why.expected)}
}

func (p *Policy) spec() tollbar_policy_spec {
	spec := newSpec()
	spec.algorithm = uint32(p.Algorithm)
	spec.limit, spec.period_ns, spec.burst = p.Limit, whole(p.Period), p.Burst
	if p.Algorithm == Quota && p.Period == Forever {
		spec.period_ns = tollbar_forever
	}
	if p.HasInit {
		spec.init = p.Init
		spec.flags |= tollbar_policy_has_init
	}
	if p.Borrow {
		spec.flags |= tollbar_policy_borrow
	}
	if p.CountRejected {
		spec.flags |= tollbar_policy_rejected
	}
	if p.Bytes {
		spec.unit = tollbar_unit_bytes
	}
	if p.AnchorFirst {
		spec.anchor = tollbar_anchor_first
	}
	spec.slack, spec.warm_up_ns, spec.cold = p.Slack, whole(p.WarmUp), p.Cold
	spec.segments, spec.mode = p.Segments, uint32(p.Mode)
	spec.ban_ns, spec.ban_after = whole(p.Ban), p.BanAfter
	spec.second_limit, spec.second_period_ns = p.SecondLimit, whole(p.SecondPeriod)
	spec.second_burst = p.SecondBurst
	setClasses(&spec, &p.Classes)
	for i, knot := range p.Knots {
		spec.knots[2*i], spec.knots[2*i+1] = knot[0], knot[1]
	}
	spec.from = p.From
	spec.zone = p.Zone
	return spec
}

func policyOf(spec *tollbar_policy_spec) Policy {
	var knots Knots
	for i := range knots {
		knots[i] = Knot{spec.knots[2*i], spec.knots[2*i+1]}
	}
	return Policy{
		Algorithm: Algorithm(spec.algorithm), Limit: spec.limit, Period: duration(spec.period_ns),
		Burst: spec.burst, Init: spec.init, HasInit: spec.flags&tollbar_policy_has_init != 0,
		Borrow: spec.flags&tollbar_policy_borrow != 0, CountRejected: spec.flags&tollbar_policy_rejected != 0,
		Bytes: spec.unit == tollbar_unit_bytes, AnchorFirst: spec.anchor == tollbar_anchor_first,
		Slack: spec.slack, WarmUp: duration(spec.warm_up_ns), Cold: spec.cold,
		Segments: spec.segments, Mode: Mode(spec.mode),
		Ban: duration(spec.ban_ns), BanAfter: spec.ban_after,
		SecondLimit: spec.second_limit, SecondPeriod: duration(spec.second_period_ns),
		SecondBurst: spec.second_burst,
		Classes:     classesOf(spec),
		Knots:       knots,
		From:        spec.from,
		Zone:        spec.zone,
	}
}

func parsePolicy(text string) (Policy, error) {
	spec, err := parse(text)
	if err != nil {
		return Policy{}, err
	}
	period := spec.period_ns
	if Algorithm(spec.algorithm) == Quota {
		period = 0
	}
	if max(period, spec.second_period_ns, spec.ban_ns, spec.warm_up_ns) > uint64(Forever) {
		return Policy{}, tooLong(text)
	}
	return policyOf(&spec), nil
}

func checkPolicy(p *Policy) error {
	spec := p.spec()
	if code := Code(cPolicyValidate(&spec)); code != 0 {
		return refused(p.String(), code)
	}
	return nil
}

func lastTime(p *Policy) (uint64, error) {
	var last uint64
	spec := p.spec()
	if code := Code(cPolicyLastTime(&spec, &last)); code != 0 {
		return 0, refused(p.String(), code)
	}
	return last, nil
}

func worstCase(p *Policy, window uint64) (uint64, error) {
	var most uint64
	spec := p.spec()
	if code := Code(cPolicyWorstCase(&spec, window, &most)); code != 0 {
		return 0, refused(p.String(), code)
	}
	return most, nil
}

func curvePolicy(limit, period uint64, shares []float64) (Policy, CurveFit, error) {
	spec := newSpec()
	fit := tollbar_curve_fit{struct_size: uint32(unsafe.Sizeof(tollbar_curve_fit{}))}
	code := Code(cPolicySamples(limit, period, shares, &spec, &fit))
	found := CurveFit{Error: fit.error, Time: fit.time, Value: fit.value}
	switch {
	case code == needsLibraryCode:
		return Policy{}, CurveFit{}, libraryError()
	case code != 0 && cString(fit.expected) != "":
		return Policy{}, found, &CurveError{Code: code, CurveFit: found, Expected: cString(fit.expected)}
	case code != 0:
		return Policy{}, found, code
	}
	return policyOf(&spec), found, nil
}

func printPolicy(p *Policy) (string, error) {
	buffer := make([]byte, tollbar_policy_text_max)
	spec := p.spec()
	code := Code(cPolicyPrint(&spec, buffer))
	return upToNUL(buffer), asError(code)
}

// ---- limiters ----

// handle is a limiter in C.
type handle = uintptr

// freed frees the C memory when the limiter is unreachable, so no call can be under way then, and
// calls need no count of their own. Counting would double the cost of a decision.
func (l *Limiter) freed() { runtime.AddCleanup(l, freeLimiter, l.handle) }

func newLimiter(policy string, options LimiterOptions) (handle, Policy, error) {
	spec, err := parse(policy)
	if err != nil {
		return 0, Policy{}, err
	}
	var limiter uintptr
	credit := uint32(0)
	if options.Credit {
		credit = tollbar_credit_on
	}
	if code := cLimiterNew(&spec, uint32(options.Clock), credit, &limiter); code != 0 {
		return 0, Policy{}, refused(policy, Code(code))
	}
	return uintptr(limiter), policyOf(&spec), nil
}

func freeLimiter(limiter uintptr) { cLimiterFree(limiter) }

// emptyCall does nothing in C. A benchmark compares other calls with it.
func emptyCall(l *Limiter) int32 {
	code := cNothing(l.handle)
	runtime.KeepAlive(l)
	return int32(code)
}

func (l *Limiter) allow(n uint64) bool {
	if now, ok := l.given(); ok {
		return l.allowAt(now, n)
	}
	code := cLimiterAllow(l.handle, n)
	runtime.KeepAlive(l)
	return code == 0
}

func (l *Limiter) allowAt(now, n uint64) bool {
	code := cLimiterAllowAt(l.handle, now, n)
	runtime.KeepAlive(l)
	return code == 0
}

func (l *Limiter) check(n uint64) (Decision, error) {
	if now, ok := l.given(); ok {
		return l.checkAt(now, n)
	}
	d := newDecision()
	code := cLimiterCheck(l.handle, n, &d)
	runtime.KeepAlive(l)
	return decided(code, &d)
}

func (l *Limiter) checkAt(now, n uint64) (Decision, error) {
	d := newDecision()
	code := cLimiterCheckAt(l.handle, now, n, &d)
	runtime.KeepAlive(l)
	return decided(code, &d)
}

// takeNow takes permits that are there. It counts no decision if they are not.
func (l *Limiter) takeNow(n uint64) bool {
	if now, ok := l.given(); ok {
		decision, err := l.peekAt(now, n)
		return err == nil && decision.Verdict == Allowed && l.allowAt(now, n)
	}
	code := cLimiterTakeNow(l.handle, n)
	runtime.KeepAlive(l)
	return code == 0
}

func (l *Limiter) peek(n uint64) (Decision, error) {
	if now, ok := l.given(); ok {
		return l.peekAt(now, n)
	}
	d := newDecision()
	code := cLimiterPeek(l.handle, n, &d)
	runtime.KeepAlive(l)
	return decided(code, &d)
}

func (l *Limiter) peekAt(now, n uint64) (Decision, error) {
	d := newDecision()
	code := cLimiterPeekAt(l.handle, now, n, &d)
	runtime.KeepAlive(l)
	return decided(code, &d)
}

// many decides on count requests. costs may be nil. With at it uses the time now instead of the
// clock.
func (l *Limiter) many(at bool, now uint64, costs []uint64, verdicts []Verdict) Code {
	if len(verdicts) == 0 {
		return 0
	}
	at, now = l.timeOf(at, now)
	code := cLimiterMany(l.handle, at, now, costs, verdicts)
	runtime.KeepAlive(l)
	return Code(code)
}

func (l *Limiter) charge(n uint64) (uint64, Code) {
	if now, ok := l.given(); ok {
		return l.chargeAt(now, n)
	}
	var rest uint64
	code := cLimiterCharge(l.handle, n, &rest)
	runtime.KeepAlive(l)
	return rest, Code(code)
}

func (l *Limiter) chargeAt(now, n uint64) (uint64, Code) {
	var rest uint64
	code := cLimiterChargeAt(l.handle, now, n, &rest)
	runtime.KeepAlive(l)
	return rest, Code(code)
}

func (l *Limiter) takeUpTo(most uint64) (uint64, Code) {
	if now, ok := l.given(); ok {
		return l.takeUpToAt(now, most)
	}
	var taken uint64
	code := cLimiterTake(l.handle, most, &taken)
	runtime.KeepAlive(l)
	if code != 0 {
		taken = 0
	}
	return taken, Code(code)
}

func (l *Limiter) takeUpToAt(now, most uint64) (uint64, Code) {
	var taken uint64
	code := cLimiterTakeAt(l.handle, now, most, &taken)
	runtime.KeepAlive(l)
	if code != 0 {
		taken = 0
	}
	return taken, Code(code)
}

// reservation converts a C reservation. It is zero unless the call returned 0.
func reservation(code int32, booked *tollbar_reservation) (Reservation, Code) {
	if code != 0 {
		return Reservation{}, Code(code)
	}
	return Reservation{Departs: booked.departs_ns, Wait: duration(booked.wait_ns),
		Cost: booked.cost}, 0
}

func (l *Limiter) reserve(n uint64, patience time.Duration) (Reservation, Code) {
	if now, ok := l.given(); ok {
		return l.reserveAt(now, n, patience)
	}
	var booked tollbar_reservation
	code := cLimiterReserve(l.handle, n, nanoseconds(patience), &booked)
	runtime.KeepAlive(l)
	return reservation(code, &booked)
}

func (l *Limiter) setPolicy(policy string, keep Keep) (Policy, error) {
	spec, err := parse(policy)
	if err != nil {
		return Policy{}, err
	}
	var code int32
	if now, ok := l.given(); ok {
		code = cLimiterSetPolicyAt(l.handle, now, &spec, uint32(keep))
	} else {
		code = cLimiterSetPolicy(l.handle, &spec, uint32(keep))
	}
	runtime.KeepAlive(l)
	if code != 0 {
		return Policy{}, refused(policy, Code(code))
	}
	return policyOf(&spec), nil
}

func (l *Limiter) cancel(r Reservation) (uint64, Code) {
	if now, ok := l.given(); ok {
		return l.cancelAt(now, r)
	}
	booked := tollbar_reservation{departs_ns: r.Departs, cost: r.Cost}
	var back uint64
	code := cLimiterCancel(l.handle, &booked, &back)
	runtime.KeepAlive(l)
	return back, Code(code)
}

func (l *Limiter) cancelAt(now uint64, r Reservation) (uint64, Code) {
	booked := tollbar_reservation{departs_ns: r.Departs, cost: r.Cost}
	var back uint64
	code := cLimiterCancelAt(l.handle, now, &booked, &back)
	runtime.KeepAlive(l)
	return back, Code(code)
}

func (l *Limiter) reserveAt(now, n uint64, patience time.Duration) (Reservation, Code) {
	var booked tollbar_reservation
	code := cLimiterReserveAt(l.handle, now, n, nanoseconds(patience), &booked)
	runtime.KeepAlive(l)
	return reservation(code, &booked)
}

func (l *Limiter) now() (uint64, Code) {
	if now, ok := l.given(); ok {
		return now, 0
	}
	var now uint64
	code := cLimiterNow(l.handle, &now)
	runtime.KeepAlive(l)
	return now, Code(code)
}

func (l *Limiter) reset() Code {
	code := cLimiterReset(l.handle)
	runtime.KeepAlive(l)
	return Code(code)
}

func (l *Limiter) state() (LimiterState, Code) {
	s := tollbar_limiter_state{struct_size: uint32(unsafe.Sizeof(tollbar_limiter_state{}))}
	code := cLimiterState(l.handle, &s)
	runtime.KeepAlive(l)
	if now, ok := l.given(); ok && code == 0 {
		if d, err := l.peekAt(now, 1); err == nil {
			s.now_ns, s.remaining = now, d.Remaining
			s.retry_after_ns, s.reset_after_ns = nanoseconds(d.RetryAfter), nanoseconds(d.ResetAfter)
		}
	}
	return LimiterState{
		Now: s.now_ns, Remaining: s.remaining, RetryAfter: duration(s.retry_after_ns),
		ResetAfter: duration(s.reset_after_ns), BackwardSteps: s.backward_steps,
		Allowed: s.allowed, Denied: s.denied, Never: s.never,
	}, Code(code)
}

// ---- network prefixes ----

func prefix(address []byte, ipv4Bits, ipv6Bits uint32) (key [20]byte, length int, code Code) {
	var out tollbar_prefix
	c := cPrefix(address, ipv4Bits, ipv6Bits, &out)
	if c == 0 {
		key, length = out.bytes, int(out.length)
	}
	return key, length, Code(c)
}

// reasonOf returns the system's reason for a call that failed with code, or 0 if that error has
// none.
func reasonOf(code Code, errno syscall.Errno) syscall.Errno {
	if code > systemFirst || code < systemLast {
		return 0
	}
	return errno
}
