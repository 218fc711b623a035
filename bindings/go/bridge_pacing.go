//go:build cgo || tollbar_purego

package tollbar

// The calls into C for pacing.

import (
	"time"
	"unsafe"
)

func pacingNew(options *PacingOptions) (uintptr, Code) {
	o := tollbar_pacing_options{
		struct_size: uint32(unsafe.Sizeof(tollbar_pacing_options{})),
		least:       uint64(millionths(0.5)), most: uint64(millionths(1e6)), burst: 1,
		pause_most_ns: uint64(5 * time.Minute),
	}
	if options.Increase != 0 {
		o.algorithm, o.increase = tollbar_pacing_aimd, uint64(millionths(options.Increase))
	}
	if options.Least != 0 {
		o.least = uint64(millionths(options.Least))
	}
	if options.Most != 0 {
		o.most = uint64(millionths(options.Most))
	}
	if options.Burst != 0 {
		o.burst = options.Burst
	}
	if options.PauseMost != 0 {
		o.pause_most_ns = uint64(max(options.PauseMost, 0))
	}
	hosts := options.Hosts
	if hosts == 0 {
		hosts = 256
	}
	var handle uintptr
	code := cPacingNew(&o, max(hosts, 0), &handle)
	return uintptr(handle), Code(code)
}

func pacingFree(handle uintptr) { cPacingFree(handle) }

func pacingAcquire(handle uintptr, host string, now uint64) PacingTicket {
	var ticket tollbar_pacing_ticket
	cPacingAcquire(handle, host, now, &ticket)
	return PacingTicket(ticket)
}

func (t PacingTicket) raw() *tollbar_pacing_ticket {
	return &tollbar_pacing_ticket{host: t.host, turn: t.turn}
}

func pacingWait(handle uintptr, ticket PacingTicket, now uint64) time.Duration {
	return duration(cPacingWait(handle, ticket.raw(), now))
}

func pacingRespond(handle uintptr, ticket PacingTicket, status int, lines string, utc, now uint64) {
	cPacingRespond(handle, ticket.raw(), uint32(status), lines, utc, now)
}

func pacingLeave(handle uintptr, ticket PacingTicket, now uint64) {
	cPacingLeave(handle, ticket.raw(), now)
}

func pacingRead(handle uintptr, host string, now uint64) (PacingState, bool) {
	s := tollbar_pacing_state{struct_size: uint32(unsafe.Sizeof(tollbar_pacing_state{}))}
	if cPacingRead(handle, host, now, &s) != tollbar_yes {
		return PacingState{}, false
	}
	return PacingState{
		Rate: float64(s.rate) / 1e6, Measured: float64(s.measured) / 1e6, Waiting: s.waiting,
		Paused: duration(s.paused_ns),
	}, true
}
