package tollbar

// The calls into C for pacing.

/*
#include "bridge.h"

#cgo noescape go_pacing_acquire
#cgo nocallback go_pacing_acquire
#cgo noescape go_pacing_wait
#cgo nocallback go_pacing_wait
#cgo noescape go_pacing_respond
#cgo nocallback go_pacing_respond
#cgo noescape go_pacing_leave
#cgo nocallback go_pacing_leave
#cgo noescape go_pacing_read
#cgo nocallback go_pacing_read
*/
import "C"

import (
	"time"
	"unsafe"
)

func pacingNew(options *PacingOptions) (uintptr, Code) {
	o := C.tollbar_pacing_options{
		struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_pacing_options{})),
		least:       C.uint64_t(millionths(0.5)), most: C.uint64_t(millionths(1e6)), burst: 1,
		pause_most_ns: C.uint64_t(5 * time.Minute),
	}
	if options.Increase != 0 {
		o.algorithm, o.increase = C.TOLLBAR_PACING_AIMD, C.uint64_t(millionths(options.Increase))
	}
	if options.Least != 0 {
		o.least = C.uint64_t(millionths(options.Least))
	}
	if options.Most != 0 {
		o.most = C.uint64_t(millionths(options.Most))
	}
	if options.Burst != 0 {
		o.burst = C.uint32_t(options.Burst)
	}
	if options.PauseMost != 0 {
		o.pause_most_ns = C.uint64_t(max(options.PauseMost, 0))
	}
	hosts := options.Hosts
	if hosts == 0 {
		hosts = 256
	}
	var handle C.uintptr_t
	code := C.go_pacing_new(&o, C.size_t(max(hosts, 0)), &handle)
	return uintptr(handle), Code(code)
}

func pacingFree(handle uintptr) { C.go_pacing_free(C.uintptr_t(handle)) }

func pacingAcquire(handle uintptr, host string, now uint64) PacingTicket {
	var ticket C.tollbar_pacing_ticket
	C.go_pacing_acquire(C.uintptr_t(handle), text(host), C.size_t(len(host)), C.uint64_t(now), &ticket)
	return PacingTicket{uint64(ticket.host), uint64(ticket.turn)}
}

func (t PacingTicket) raw() C.tollbar_pacing_ticket {
	return C.tollbar_pacing_ticket{host: C.uint64_t(t.host), turn: C.uint64_t(t.turn)}
}

func pacingWait(handle uintptr, ticket PacingTicket, now uint64) time.Duration {
	return duration(uint64(C.go_pacing_wait(C.uintptr_t(handle), ticket.raw(), C.uint64_t(now))))
}

func pacingRespond(handle uintptr, ticket PacingTicket, status int, lines string, utc, now uint64) {
	C.go_pacing_respond(C.uintptr_t(handle), ticket.raw(), C.uint32_t(status), text(lines),
		C.size_t(len(lines)), C.uint64_t(utc), C.uint64_t(now))
}

func pacingLeave(handle uintptr, ticket PacingTicket, now uint64) {
	C.go_pacing_leave(C.uintptr_t(handle), ticket.raw(), C.uint64_t(now))
}

func pacingRead(handle uintptr, host string, now uint64) (PacingState, bool) {
	s := C.tollbar_pacing_state{struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_pacing_state{}))}
	if C.go_pacing_read(C.uintptr_t(handle), text(host), C.size_t(len(host)), C.uint64_t(now), &s) != C.TOLLBAR_YES {
		return PacingState{}, false
	}
	return PacingState{
		Rate: float64(s.rate) / 1e6, Measured: float64(s.measured) / 1e6, Waiting: uint64(s.waiting),
		Paused: duration(uint64(s.paused_ns)),
	}, true
}
