//go:build cgo || tollbar_purego

package tollbar

// The calls into C for limits that follow the latency.

import (
	"time"
	"unsafe"
)

func (w *adaptiveWords) raw() *tollbar_adaptive { return (*tollbar_adaptive)(unsafe.Pointer(w)) }

func adaptiveInit(w *adaptiveWords, options *AdaptiveOptions) Code {
	o := tollbar_adaptive_options{
		struct_size: uint32(unsafe.Sizeof(tollbar_adaptive_options{})),
		initial:     20, least: 1, most: 1000, window_ns: uint64(100 * time.Millisecond),
	}
	if options.Timeout != 0 {
		o.algorithm, o.timeout_ns = tollbar_adaptive_aimd, uint64(max(options.Timeout, 0))
	}
	if options.Initial != 0 {
		o.initial = options.Initial
	}
	if options.Least != 0 {
		o.least = options.Least
	}
	if options.Most != 0 {
		o.most = options.Most
	}
	if options.Window != 0 {
		o.window_ns = uint64(max(options.Window, 0))
	}
	return Code(cAdaptiveInit(w.raw(), &o))
}

func adaptiveAcquire(w *adaptiveWords) (uint64, Code) {
	var ticket uint64
	code := cAdaptiveAcquire(w.raw(), &ticket)
	return ticket, Code(code)
}

func adaptiveRelease(w *adaptiveWords, ticket uint64, outcome Outcome, latency time.Duration) Code {
	return Code(cAdaptiveRelease(w.raw(), ticket, uint32(outcome), uint64(latency)))
}

func adaptiveAcquireKey(w *adaptiveWords, table uintptr, key string) (uint64, Code) {
	var ticket uint64
	code := cAdaptiveAcquireKey(w.raw(), table, key, &ticket)
	return ticket, Code(code)
}

func adaptiveReleaseKey(w *adaptiveWords, table uintptr, key string, ticket uint64, outcome Outcome,
	latency time.Duration) Code {
	return Code(cAdaptiveReleaseKey(w.raw(), table, key, ticket, uint32(outcome), uint64(latency)))
}

func adaptiveRead(w *adaptiveWords) AdaptiveState {
	s := tollbar_adaptive_state{struct_size: uint32(unsafe.Sizeof(tollbar_adaptive_state{}))}
	cAdaptiveRead(w.raw(), &s)
	return AdaptiveState{Limit: s.limit, InFlight: s.in_flight, Latency: duration(s.latency_ns)}
}
