package tollbar

// The calls into C for limits that follow the latency.

/*
#include "bridge.h"

#cgo noescape go_adaptive_acquire
#cgo nocallback go_adaptive_acquire
#cgo noescape go_adaptive_release
#cgo nocallback go_adaptive_release
#cgo noescape go_adaptive_acquire_key
#cgo nocallback go_adaptive_acquire_key
#cgo noescape go_adaptive_release_key
#cgo nocallback go_adaptive_release_key
*/
import "C"

import (
	"time"
	"unsafe"
)

// This compiles only if Go and C have one size of a limit.
const _ = uint(unsafe.Sizeof(adaptiveWords{})-unsafe.Sizeof(C.tollbar_adaptive{})) +
	uint(unsafe.Sizeof(C.tollbar_adaptive{})-unsafe.Sizeof(adaptiveWords{}))

func (w *adaptiveWords) raw() *C.tollbar_adaptive { return (*C.tollbar_adaptive)(unsafe.Pointer(w)) }

func adaptiveInit(w *adaptiveWords, options *AdaptiveOptions) Code {
	o := C.tollbar_adaptive_options{
		struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_adaptive_options{})),
		initial:     20, least: 1, most: 1000, window_ns: C.uint64_t(100 * time.Millisecond),
	}
	if options.Timeout != 0 {
		o.algorithm, o.timeout_ns = C.TOLLBAR_ADAPTIVE_AIMD, C.uint64_t(max(options.Timeout, 0))
	}
	if options.Initial != 0 {
		o.initial = C.uint32_t(options.Initial)
	}
	if options.Least != 0 {
		o.least = C.uint32_t(options.Least)
	}
	if options.Most != 0 {
		o.most = C.uint32_t(options.Most)
	}
	if options.Window != 0 {
		o.window_ns = C.uint64_t(max(options.Window, 0))
	}
	return Code(C.tollbar_adaptive_init(w.raw(), &o))
}

func adaptiveAcquire(w *adaptiveWords) (uint64, Code) {
	var ticket C.uint64_t
	code := C.go_adaptive_acquire(w.raw(), &ticket)
	return uint64(ticket), Code(code)
}

func adaptiveRelease(w *adaptiveWords, ticket uint64, outcome Outcome, latency time.Duration) Code {
	return Code(C.go_adaptive_release(w.raw(), C.uint64_t(ticket), C.uint32_t(outcome), C.uint64_t(latency)))
}

func adaptiveAcquireKey(w *adaptiveWords, table uintptr, key string) (uint64, Code) {
	var ticket C.uint64_t
	code := C.go_adaptive_acquire_key(w.raw(), C.uintptr_t(table), text(key), C.size_t(len(key)), &ticket)
	return uint64(ticket), Code(code)
}

func adaptiveReleaseKey(w *adaptiveWords, table uintptr, key string, ticket uint64, outcome Outcome,
	latency time.Duration) Code {
	return Code(C.go_adaptive_release_key(w.raw(), C.uintptr_t(table), text(key), C.size_t(len(key)),
		C.uint64_t(ticket),
		C.uint32_t(outcome), C.uint64_t(latency)))
}

func adaptiveRead(w *adaptiveWords) AdaptiveState {
	s := C.tollbar_adaptive_state{struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_adaptive_state{}))}
	C.tollbar_adaptive_read(w.raw(), &s)
	return AdaptiveState{Limit: uint32(s.limit), InFlight: uint64(s.in_flight), Latency: duration(uint64(s.latency_ns))}
}
