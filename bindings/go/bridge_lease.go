package tollbar

// The calls into C that have to do with leases. Callers hold the lease's guard, or are the one goroutine that has its client.

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

import "unsafe"

// openLease makes a lease and its client.
func openLease(name, policy string, options *LeaseOptions) (lease, client uintptr, of Policy, err error) {
	spec, err := parse(policy)
	if err != nil {
		return 0, 0, of, err
	}
	o := C.tollbar_lease_options{
		struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_lease_options{})),
		nodes:       C.uint32_t(options.Nodes),
		capacity:    C.uint64_t(options.Capacity),
		life_ns:     whole(options.Life),
		rescue:      C.uint32_t(options.Rescue),
	}
	if options.Capacity == 0 {
		o.capacity = 4096
	}
	if options.Overdraft != nil {
		o.overdraft = C.uint64_t(*options.Overdraft)
		o.flags |= C.TOLLBAR_LEASE_OVERDRAFT
	}
	if options.Inexact {
		o.flags |= C.TOLLBAR_LEASE_INEXACT
	}
	var made, asks C.uintptr_t
	if code := C.go_lease_new(text(name), C.size_t(len(name)), &spec, &o, &made); code != 0 {
		return 0, 0, of, &LeaseError{Name: name, Code: Code(code)}
	}
	var column C.size_t
	if code := C.go_client_new(made, text(options.URL), C.size_t(len(options.URL)), &column, &asks); code != 0 {
		C.go_lease_free(made)
		return 0, 0, of, &LeaseError{Name: name, Code: Code(code), Column: int(column)}
	}
	return uintptr(made), uintptr(asks), policyOf(&spec), nil
}

func freeLease(lease uintptr) { C.go_lease_free(C.uintptr_t(lease)) }

func leaseCheck(lease uintptr, key string, n uint64, d *Decision) Code {
	if d == nil {
		return Code(C.go_lease_check(C.uintptr_t(lease), text(key), C.size_t(len(key)), C.uint64_t(n), nil))
	}
	out := newDecision()
	code := C.go_lease_check(C.uintptr_t(lease), text(key), C.size_t(len(key)), C.uint64_t(n), &out)
	*d, _ = decided(code, &out)
	return Code(code)
}

func leaseCheckAt(lease uintptr, key string, now, n uint64, d *Decision) Code {
	out := newDecision()
	code := C.go_lease_check_at(C.uintptr_t(lease), text(key), C.size_t(len(key)), C.uint64_t(now), C.uint64_t(n), &out)
	*d, _ = decided(code, &out)
	return Code(code)
}

func leasePeek(lease uintptr, key string, n uint64, d *Decision) Code {
	out := newDecision()
	code := C.go_lease_peek(C.uintptr_t(lease), text(key), C.size_t(len(key)), C.uint64_t(n), &out)
	*d, _ = decided(code, &out)
	return Code(code)
}

func leaseNow(lease uintptr) uint64 { return uint64(C.go_lease_now(C.uintptr_t(lease))) }

func leaseStats(lease uintptr) (LeaseStats, Code) {
	s := C.tollbar_lease_stats{struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_lease_stats{}))}
	code := C.go_lease_stats(C.uintptr_t(lease), &s)
	return LeaseStats{
		Circuit: Circuit(s.circuit), Granted: uint64(s.granted), Asked: uint64(s.asked), Overdrawn: uint64(s.overdrawn),
		Rescued: uint64(s.rescued), Uncounted: uint64(s.uncounted), Denied: uint64(s.denied), Crowded: uint64(s.crowded),
		Opened: uint64(s.opened), Owed: uint64(s.owed),
	}, Code(code)
}

// runClient returns when the client has been stopped, or with true when the store has come or gone.
func runClient(client uintptr) (circuit Circuit, changed bool) {
	var to C.uint32_t
	changed = C.go_client_run(C.uintptr_t(client), &to) == 1
	return Circuit(to), changed
}

func stopClient(client uintptr) { C.go_client_stop(C.uintptr_t(client)) }

func closeClient(client uintptr, patience uint32) Code {
	return Code(C.go_client_close(C.uintptr_t(client), C.uint32_t(patience)))
}
