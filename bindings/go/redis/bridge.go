package redis

// All calls into C of this package. A caller holds the lease's guard, or is the goroutine that drives its client.

/*
#include "bridge.h"

#cgo noescape go_lease_check
#cgo nocallback go_lease_check
#cgo noescape go_lease_check_at
#cgo nocallback go_lease_check_at
#cgo noescape go_lease_peek
#cgo nocallback go_lease_peek
#cgo nocallback go_lease_now
#cgo noescape go_lease_stats
#cgo nocallback go_lease_stats
#cgo noescape go_client_run
#cgo nocallback go_client_run
#cgo nocallback go_client_close
*/
import "C"

import (
	"math"
	"time"
	"unsafe"

	"github.com/tollbar/tollbar/bindings/go"
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

func newDecision() C.tollbar_decision {
	return C.tollbar_decision{struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_decision{}))}
}

// decided converts a C decision to a Go one.
func decided(code C.int32_t, d *C.tollbar_decision) tollbar.Decision {
	if code < 0 {
		return tollbar.Decision{Verdict: tollbar.Denied, Reason: tollbar.ReasonFault}
	}
	return tollbar.Decision{
		Verdict:    tollbar.Verdict(code),
		Reason:     tollbar.Reason(d.reason),
		Remaining:  uint64(d.remaining),
		RetryAfter: duration(uint64(d.retry_after_ns)),
		ResetAfter: duration(uint64(d.reset_after_ns)),
	}
}

// duration converts nanoseconds from C. It returns Forever for times above Go's range.
func duration(ns uint64) time.Duration {
	if ns > math.MaxInt64 {
		return tollbar.Forever
	}
	return time.Duration(ns)
}

// openLease makes a lease and its client.
func openLease(name, policy string, options *LeaseOptions) (lease, client uintptr, of tollbar.Policy, err error) {
	of, err = tollbar.ParsePolicy(policy)
	if err != nil {
		return 0, 0, of, err
	}
	// Refers to the symbol that a library of another ABI does not have.
	_ = C.go_abi()
	spec := C.tollbar_policy_spec{struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_policy_spec{}))}
	if code := C.go_spec(text(policy), C.size_t(len(policy)), &spec); code != 0 {
		return 0, 0, of, tollbar.Code(code)
	}
	o := C.tollbar_lease_options{
		struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_lease_options{})),
		nodes:       C.uint32_t(options.Nodes),
		capacity:    C.uint64_t(options.Capacity),
		life_ns:     C.uint64_t(max(options.Life, 0)),
		fallback:    C.uint32_t(options.Fallback),
	}
	if options.Capacity == 0 {
		o.capacity = 4096
	}
	if options.Overdraft != nil {
		o.overdraft = C.uint64_t(*options.Overdraft)
		o.flags |= C.TOLLBAR_LEASE_HAS_OVERDRAFT
	}
	if options.Inexact {
		o.flags |= C.TOLLBAR_LEASE_INEXACT
	}
	var made, asks C.uintptr_t
	if code := C.go_lease_new(text(name), C.size_t(len(name)), &spec, &o, &made); code != 0 {
		return 0, 0, of, &tollbar.LeaseError{Name: name, Code: tollbar.Code(code)}
	}
	var column C.size_t
	if code := C.go_client_new(made, text(options.URL), C.size_t(len(options.URL)), &column, &asks); code != 0 {
		C.go_lease_free(made)
		return 0, 0, of, &tollbar.LeaseError{Name: name, Code: tollbar.Code(code), Column: int(column)}
	}
	return uintptr(made), uintptr(asks), of, nil
}

func freeLease(lease uintptr) { C.go_lease_free(C.uintptr_t(lease)) }

func leaseCheck(lease uintptr, key string, n uint64, d *tollbar.Decision) tollbar.Code {
	if d == nil {
		return tollbar.Code(C.go_lease_check(C.uintptr_t(lease), text(key), C.size_t(len(key)), C.uint64_t(n), nil))
	}
	out := newDecision()
	code := C.go_lease_check(C.uintptr_t(lease), text(key), C.size_t(len(key)), C.uint64_t(n), &out)
	*d = decided(code, &out)
	return tollbar.Code(code)
}

func leaseCheckAt(lease uintptr, key string, now, n uint64, d *tollbar.Decision) tollbar.Code {
	out := newDecision()
	code := C.go_lease_check_at(C.uintptr_t(lease), text(key), C.size_t(len(key)), C.uint64_t(now), C.uint64_t(n), &out)
	*d = decided(code, &out)
	return tollbar.Code(code)
}

func leasePeek(lease uintptr, key string, n uint64, d *tollbar.Decision) tollbar.Code {
	out := newDecision()
	code := C.go_lease_peek(C.uintptr_t(lease), text(key), C.size_t(len(key)), C.uint64_t(n), &out)
	*d = decided(code, &out)
	return tollbar.Code(code)
}

func leaseNow(lease uintptr) uint64 { return uint64(C.go_lease_now(C.uintptr_t(lease))) }

func leaseStats(lease uintptr) (LeaseStats, tollbar.Code) {
	s := C.tollbar_lease_stats{struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_lease_stats{}))}
	code := C.go_lease_stats(C.uintptr_t(lease), &s)
	return LeaseStats{
		Circuit: Circuit(s.circuit), Granted: uint64(s.granted), Asked: uint64(s.asked), Overdrawn: uint64(s.overdrawn),
		FallbackPermits: uint64(s.fallback_permits), Uncounted: uint64(s.uncounted), Denied: uint64(s.denied), QueueFull: uint64(s.queue_full),
		Opened: uint64(s.opened), Owed: uint64(s.owed),
	}, tollbar.Code(code)
}

// runClient returns when the client has been stopped, or with true when the circuit has changed.
func runClient(client uintptr) (circuit Circuit, changed bool) {
	var to C.uint32_t
	changed = C.go_client_run(C.uintptr_t(client), &to) == 1
	return Circuit(to), changed
}

func stopClient(client uintptr) { C.go_client_stop(C.uintptr_t(client)) }

func closeClient(client uintptr, patience uint32) tollbar.Code {
	return tollbar.Code(C.go_client_close(C.uintptr_t(client), C.uint32_t(patience)))
}
