package tollbar

// All calls into C are in the bridge files. No C function calls back into Go or keeps a pointer. The cgo directives
// say both, so the memory behind the pointers may stay on the goroutine's stack.

/*
#include <stdlib.h>
#include "bridge.h"

#cgo nocallback go_nothing
#cgo nocallback go_limiter_allow
#cgo nocallback go_limiter_allow_at
#cgo noescape go_limiter_check
#cgo nocallback go_limiter_check
#cgo noescape go_limiter_check_at
#cgo nocallback go_limiter_check_at
#cgo noescape go_limiter_peek
#cgo nocallback go_limiter_peek
#cgo noescape go_limiter_peek_at
#cgo nocallback go_limiter_peek_at
#cgo noescape go_limiter_many
#cgo nocallback go_limiter_many
#cgo noescape go_limiter_many_at
#cgo nocallback go_limiter_many_at
#cgo noescape go_limiter_take
#cgo nocallback go_limiter_take
#cgo noescape go_limiter_take_at
#cgo nocallback go_limiter_take_at
#cgo noescape go_limiter_now
#cgo nocallback go_limiter_now
#cgo noescape go_limiter_take_now
#cgo nocallback go_limiter_take_now
#cgo noescape go_limiter_reserve
#cgo nocallback go_limiter_reserve
#cgo noescape go_limiter_reserve_at
#cgo nocallback go_limiter_reserve_at
#cgo noescape go_limiter_cancel
#cgo nocallback go_limiter_cancel
#cgo noescape go_limiter_cancel_at
#cgo nocallback go_limiter_cancel_at
*/
import "C"

import (
	"math"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// text returns the pointer and length of a string for C. The pointer is never null.
func text(s string) *C.uint8_t {
	if s == "" {
		return (*C.uint8_t)(unsafe.Pointer(&noBytes))
	}
	return (*C.uint8_t)(unsafe.Pointer(unsafe.StringData(s)))
}

// noBytes is the target of an empty string's pointer.
var noBytes byte

func describeCode(c Code) string { return C.GoString(C.tollbar_strerror(C.int32_t(c))) }

// Version is the version of the linked C library, such as "0.1.0".
func Version() string {
	// Refers to the symbol that a library of another ABI does not have.
	_ = C.go_abi()
	return C.GoString(C.tollbar_version_string())
}

// Now reads a clock. [ClockWall] counts nanoseconds since 1970, the others since the machine's start, alike in every
// process. Limiters and tables count from another zero: [Limiter.Now], [Table.Now].
func Now(clock Clock) (uint64, error) {
	var now C.uint64_t
	if code := C.tollbar_clock_now(C.uint32_t(clock), &now); code != 0 {
		return 0, Code(code)
	}
	return uint64(now), nil
}

func newDecision() C.tollbar_decision {
	return C.tollbar_decision{struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_decision{}))}
}

// decided converts a C decision to a Go one.
func decided(code C.int32_t, d *C.tollbar_decision) (Decision, error) {
	if code < 0 {
		return Decision{Verdict: Denied, Reason: ReasonFault}, Code(code)
	}
	return Decision{
		Verdict:    Verdict(code),
		Reason:     Reason(d.reason),
		Remaining:  uint64(d.remaining),
		RetryAfter: duration(uint64(d.retry_after_ns)),
		ResetAfter: duration(uint64(d.reset_after_ns)),
		Bound:      int(d.bound),
	}, nil
}

// nanoseconds converts a patience for C. A negative one becomes 0, and Forever becomes a wait without end.
func nanoseconds(d time.Duration) C.uint64_t {
	if d == Forever {
		return math.MaxUint64
	}
	return C.uint64_t(max(d, 0))
}

// whole converts a length of time for C.
func whole(d time.Duration) C.uint64_t { return C.uint64_t(max(d, 0)) }

// ---- policies ----

func newSpec() C.tollbar_policy_spec {
	return C.tollbar_policy_spec{struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_policy_spec{}))}
}

// parse reads a policy; the error is a *PolicyError.
func parse(policy string) (C.tollbar_policy_spec, error) {
	spec, why := newSpec(), newPolicyError()
	code := C.tollbar_policy_spec_parse((*C.char)(unsafe.Pointer(text(policy))), C.size_t(len(policy)), &spec, &why)
	return spec, policyError(policy, code, &why)
}

func newPolicyError() C.tollbar_policy_error {
	return C.tollbar_policy_error{struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_policy_error{}))}
}

// policyError is the error of a text, or nil.
func policyError(text string, code C.int32_t, why *C.tollbar_policy_error) error {
	if code == 0 {
		return nil
	}
	return &PolicyError{Text: text, Code: Code(code), Column: int(why.column), Expected: C.GoString(why.expected)}
}

func (p *Policy) spec() C.tollbar_policy_spec {
	spec := newSpec()
	spec.algorithm = C.uint32_t(p.Algorithm)
	spec.limit, spec.period_ns, spec.burst = C.uint64_t(p.Limit), whole(p.Period), C.uint64_t(p.Burst)
	if p.Algorithm == Quota && p.Period == Forever {
		spec.period_ns = C.TOLLBAR_FOREVER
	}
	if p.HasInit {
		spec.init = C.uint64_t(p.Init)
		spec.flags |= C.TOLLBAR_POLICY_HAS_INIT
	}
	if p.Borrow {
		spec.flags |= C.TOLLBAR_POLICY_BORROW
	}
	if p.CountRejected {
		spec.flags |= C.TOLLBAR_POLICY_COUNT_REJECTED
	}
	if p.Bytes {
		spec.unit = C.TOLLBAR_UNIT_BYTES
	}
	if p.AnchorFirst {
		spec.anchor = C.TOLLBAR_ANCHOR_FIRST
	}
	spec.slack, spec.warm_up_ns, spec.cold = C.uint64_t(p.Slack), whole(p.WarmUp), C.uint32_t(p.Cold)
	spec.segments, spec.mode = C.uint32_t(p.Segments), C.uint32_t(p.Mode)
	spec.ban_ns, spec.ban_after = whole(p.Ban), C.uint32_t(p.BanAfter)
	spec.second_limit, spec.second_period_ns = C.uint64_t(p.SecondLimit), whole(p.SecondPeriod)
	spec.second_burst = C.uint64_t(p.SecondBurst)
	setClasses(&spec, &p.Classes)
	for i, knot := range p.Knots {
		spec.knots[2*i], spec.knots[2*i+1] = C.uint8_t(knot[0]), C.uint8_t(knot[1])
	}
	spec.from = C.uint32_t(p.From)
	for i, word := range p.Zone {
		spec.zone[i] = C.uint64_t(word)
	}
	return spec
}

func zoneOf(spec *C.tollbar_policy_spec) (zone Zone) {
	for i, word := range spec.zone {
		zone[i] = uint64(word)
	}
	return zone
}

func policyOf(spec *C.tollbar_policy_spec) Policy {
	var knots Knots
	for i := range knots {
		knots[i] = Knot{uint8(spec.knots[2*i]), uint8(spec.knots[2*i+1])}
	}
	return Policy{
		Algorithm: Algorithm(spec.algorithm), Limit: uint64(spec.limit), Period: duration(uint64(spec.period_ns)),
		Burst: uint64(spec.burst), Init: uint64(spec.init), HasInit: spec.flags&C.TOLLBAR_POLICY_HAS_INIT != 0,
		Borrow: spec.flags&C.TOLLBAR_POLICY_BORROW != 0, CountRejected: spec.flags&C.TOLLBAR_POLICY_COUNT_REJECTED != 0,
		Bytes: spec.unit == C.TOLLBAR_UNIT_BYTES, AnchorFirst: spec.anchor == C.TOLLBAR_ANCHOR_FIRST,
		Slack: uint64(spec.slack), WarmUp: duration(uint64(spec.warm_up_ns)), Cold: uint32(spec.cold),
		Segments: uint32(spec.segments), Mode: Mode(spec.mode),
		Ban: duration(uint64(spec.ban_ns)), BanAfter: uint32(spec.ban_after),
		SecondLimit: uint64(spec.second_limit), SecondPeriod: duration(uint64(spec.second_period_ns)),
		SecondBurst: uint64(spec.second_burst),
		Classes:     classesOf(spec),
		Knots:       knots,
		From:        uint32(spec.from),
		Zone:        zoneOf(spec),
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
	if max(period, spec.second_period_ns, spec.ban_ns, spec.warm_up_ns) > C.uint64_t(Forever) {
		return Policy{}, tooLong(text)
	}
	return policyOf(&spec), nil
}

func checkPolicy(p *Policy) error {
	spec := p.spec()
	if code := Code(C.tollbar_policy_spec_validate(&spec)); code != 0 {
		return refused(p.String(), code)
	}
	return nil
}

func lastTime(p *Policy) (uint64, error) {
	var last C.uint64_t
	spec := p.spec()
	if code := Code(C.tollbar_policy_spec_last_time(&spec, &last)); code != 0 {
		return 0, refused(p.String(), code)
	}
	return uint64(last), nil
}

func printPolicy(p *Policy) (string, error) {
	var buffer [C.TOLLBAR_POLICY_TEXT_MAX]C.char
	spec := p.spec()
	code := Code(C.tollbar_policy_spec_print(&spec, &buffer[0], C.size_t(len(buffer)), nil))
	return C.GoString(&buffer[0]), asError(code)
}

// ---- limiters ----

// handle is a limiter in C.
type handle = uintptr

// freed frees the C memory when the limiter is unreachable, so no call can be under way then, and calls need no count
// of their own. Counting would double the cost of a decision.
func (l *Limiter) freed() { runtime.AddCleanup(l, freeLimiter, l.handle) }

func newLimiter(policy string, options LimiterOptions) (handle, Policy, error) {
	spec, err := parse(policy)
	if err != nil {
		return 0, Policy{}, err
	}
	var limiter C.uintptr_t
	credit := C.uint32_t(C.TOLLBAR_CREDIT_OFF)
	if options.Credit {
		credit = C.TOLLBAR_CREDIT_ON
	}
	if code := C.go_limiter_new(&spec, C.uint32_t(options.Clock), credit, &limiter); code != 0 {
		return 0, Policy{}, refused(policy, Code(code))
	}
	return uintptr(limiter), policyOf(&spec), nil
}

func freeLimiter(limiter uintptr) { C.go_limiter_free(C.uintptr_t(limiter)) }

// emptyCall does nothing in C. A benchmark compares other calls with it.
func emptyCall(l *Limiter) int32 {
	code := C.go_nothing(C.uintptr_t(l.handle))
	runtime.KeepAlive(l)
	return int32(code)
}

func (l *Limiter) allow(n uint64) bool {
	if now, ok := bubbleTime(); ok {
		return l.allowAt(now, n)
	}
	code := C.go_limiter_allow(C.uintptr_t(l.handle), C.uint64_t(n))
	runtime.KeepAlive(l)
	return code == 0
}

func (l *Limiter) allowAt(now, n uint64) bool {
	code := C.go_limiter_allow_at(C.uintptr_t(l.handle), C.uint64_t(now), C.uint64_t(n))
	runtime.KeepAlive(l)
	return code == 0
}

func (l *Limiter) check(n uint64) (Decision, error) {
	if now, ok := bubbleTime(); ok {
		return l.checkAt(now, n)
	}
	d := newDecision()
	code := C.go_limiter_check(C.uintptr_t(l.handle), C.uint64_t(n), &d)
	runtime.KeepAlive(l)
	return decided(code, &d)
}

func (l *Limiter) checkAt(now, n uint64) (Decision, error) {
	d := newDecision()
	code := C.go_limiter_check_at(C.uintptr_t(l.handle), C.uint64_t(now), C.uint64_t(n), &d)
	runtime.KeepAlive(l)
	return decided(code, &d)
}

// takeNow takes permits that are there. It counts no decision if they are not.
func (l *Limiter) takeNow(n uint64) bool {
	if now, ok := bubbleTime(); ok {
		decision, err := l.peekAt(now, n)
		return err == nil && decision.Verdict == Allowed && l.allowAt(now, n)
	}
	code := C.go_limiter_take_now(C.uintptr_t(l.handle), C.uint64_t(n))
	runtime.KeepAlive(l)
	return code == 0
}

func (l *Limiter) peek(n uint64) (Decision, error) {
	if now, ok := bubbleTime(); ok {
		return l.peekAt(now, n)
	}
	d := newDecision()
	code := C.go_limiter_peek(C.uintptr_t(l.handle), C.uint64_t(n), &d)
	runtime.KeepAlive(l)
	return decided(code, &d)
}

func (l *Limiter) peekAt(now, n uint64) (Decision, error) {
	d := newDecision()
	code := C.go_limiter_peek_at(C.uintptr_t(l.handle), C.uint64_t(now), C.uint64_t(n), &d)
	runtime.KeepAlive(l)
	return decided(code, &d)
}

// many decides on count requests. costs may be nil. With at it uses the time now instead of the clock.
func (l *Limiter) many(at bool, now uint64, costs []uint64, verdicts []Verdict) Code {
	if len(verdicts) == 0 {
		return 0
	}
	first := (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(costs)))
	results := (*C.int32_t)(unsafe.Pointer(unsafe.SliceData(verdicts)))
	var code C.int32_t
	at, now = timeOf(at, now)
	if at {
		code = C.go_limiter_many_at(C.uintptr_t(l.handle), C.uint64_t(now), first, C.size_t(len(verdicts)), results)
	} else {
		code = C.go_limiter_many(C.uintptr_t(l.handle), first, C.size_t(len(verdicts)), results)
	}
	runtime.KeepAlive(l)
	return Code(code)
}

func (l *Limiter) charge(n uint64) (uint64, Code) {
	if now, ok := bubbleTime(); ok {
		return l.chargeAt(now, n)
	}
	var rest C.uint64_t
	code := C.go_limiter_charge(C.uintptr_t(l.handle), C.uint64_t(n), &rest)
	runtime.KeepAlive(l)
	return uint64(rest), Code(code)
}

func (l *Limiter) chargeAt(now, n uint64) (uint64, Code) {
	var rest C.uint64_t
	code := C.go_limiter_charge_at(C.uintptr_t(l.handle), C.uint64_t(now), C.uint64_t(n), &rest)
	runtime.KeepAlive(l)
	return uint64(rest), Code(code)
}

func (l *Limiter) takeUpTo(most uint64) (uint64, Code) {
	if now, ok := bubbleTime(); ok {
		return l.takeUpToAt(now, most)
	}
	var taken C.uint64_t
	code := C.go_limiter_take(C.uintptr_t(l.handle), C.uint64_t(most), &taken)
	runtime.KeepAlive(l)
	if code != 0 {
		taken = 0
	}
	return uint64(taken), Code(code)
}

func (l *Limiter) takeUpToAt(now, most uint64) (uint64, Code) {
	var taken C.uint64_t
	code := C.go_limiter_take_at(C.uintptr_t(l.handle), C.uint64_t(now), C.uint64_t(most), &taken)
	runtime.KeepAlive(l)
	if code != 0 {
		taken = 0
	}
	return uint64(taken), Code(code)
}

// reservation converts a C reservation. It is zero unless the call returned 0.
func reservation(code C.int32_t, booked *C.tollbar_reservation) (Reservation, Code) {
	if code != 0 {
		return Reservation{}, Code(code)
	}
	return Reservation{Departs: uint64(booked.departs_ns), Wait: duration(uint64(booked.wait_ns)),
		Cost: uint64(booked.cost)}, 0
}

func (l *Limiter) reserve(n uint64, patience time.Duration) (Reservation, Code) {
	if now, ok := bubbleTime(); ok {
		return l.reserveAt(now, n, patience)
	}
	var booked C.tollbar_reservation
	code := C.go_limiter_reserve(C.uintptr_t(l.handle), C.uint64_t(n), nanoseconds(patience), &booked)
	runtime.KeepAlive(l)
	return reservation(code, &booked)
}

func (l *Limiter) setPolicy(policy string, keep Keep) (Policy, error) {
	spec, err := parse(policy)
	if err != nil {
		return Policy{}, err
	}
	code := C.go_limiter_set_policy(C.uintptr_t(l.handle), &spec, C.uint32_t(keep))
	runtime.KeepAlive(l)
	if code != 0 {
		return Policy{}, refused(policy, Code(code))
	}
	return policyOf(&spec), nil
}

func (l *Limiter) cancel(r Reservation) (uint64, Code) {
	if now, ok := bubbleTime(); ok {
		return l.cancelAt(now, r)
	}
	booked := C.tollbar_reservation{departs_ns: C.uint64_t(r.Departs), cost: C.uint64_t(r.Cost)}
	var back C.uint64_t
	code := C.go_limiter_cancel(C.uintptr_t(l.handle), &booked, &back)
	runtime.KeepAlive(l)
	return uint64(back), Code(code)
}

func (l *Limiter) cancelAt(now uint64, r Reservation) (uint64, Code) {
	booked := C.tollbar_reservation{departs_ns: C.uint64_t(r.Departs), cost: C.uint64_t(r.Cost)}
	var back C.uint64_t
	code := C.go_limiter_cancel_at(C.uintptr_t(l.handle), C.uint64_t(now), &booked, &back)
	runtime.KeepAlive(l)
	return uint64(back), Code(code)
}

func (l *Limiter) reserveAt(now, n uint64, patience time.Duration) (Reservation, Code) {
	var booked C.tollbar_reservation
	code := C.go_limiter_reserve_at(C.uintptr_t(l.handle), C.uint64_t(now), C.uint64_t(n),
		nanoseconds(patience), &booked)
	runtime.KeepAlive(l)
	return reservation(code, &booked)
}

func (l *Limiter) now() (uint64, Code) {
	if now, ok := bubbleTime(); ok {
		return now, 0
	}
	var now C.uint64_t
	code := C.go_limiter_now(C.uintptr_t(l.handle), &now)
	runtime.KeepAlive(l)
	return uint64(now), Code(code)
}

func (l *Limiter) reset() Code {
	code := C.go_limiter_reset(C.uintptr_t(l.handle))
	runtime.KeepAlive(l)
	return Code(code)
}

func (l *Limiter) state() (LimiterState, Code) {
	s := C.tollbar_limiter_state{struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_limiter_state{}))}
	code := C.go_limiter_state(C.uintptr_t(l.handle), &s)
	runtime.KeepAlive(l)
	return LimiterState{
		Now: uint64(s.now_ns), Remaining: uint64(s.remaining), RetryAfter: duration(uint64(s.retry_after_ns)),
		ResetAfter: duration(uint64(s.reset_after_ns)), BackwardSteps: uint64(s.backward_steps),
		Allowed: uint64(s.allowed), Denied: uint64(s.denied), Never: uint64(s.never),
	}, Code(code)
}

// ---- network prefixes ----

func prefix(address []byte, ipv4Bits, ipv6Bits uint32) (key [20]byte, length int, code Code) {
	var out C.tollbar_prefix
	c := C.tollbar_prefix_from_address(unsafe.Pointer(unsafe.SliceData(address)), C.size_t(len(address)),
		C.uint32_t(ipv4Bits),
		C.uint32_t(ipv6Bits), &out)
	if c == 0 {
		key, length = *(*[20]byte)(unsafe.Pointer(&out.bytes)), int(out.length)
	}
	return key, length, Code(c)
}

// errnoOf returns the system's reason for a call that failed with code, or 0 if that error has none.
func errnoOf(code Code, err error) syscall.Errno {
	errno, _ := err.(syscall.Errno)
	if code > systemFirst || code < systemLast {
		return 0
	}
	return errno
}
