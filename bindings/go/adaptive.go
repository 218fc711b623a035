//go:build cgo || tollbar_purego

package tollbar

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Outcome is the outcome of a request with a permit of an [Adaptive] limit.
type Outcome uint32

const (
	// Answered: the request was answered. Its latency counts.
	Answered Outcome = iota
	// Dropped: the server refused the request, or it timed out. AIMD lowers the limit. Gradient2
	// takes no sample.
	Dropped
	// Ignored: the request says nothing about the server.
	Ignored
)

// AdaptiveOptions say how an [Adaptive] limit learns. The zero value is Gradient2 from 20, within 1
// to 1000, with windows of 100 ms.
type AdaptiveOptions struct {
	// Timeout, if it is not 0, makes the algorithm AIMD: a dropped request or a latency above
	// Timeout lowers the limit by a tenth. Any other sample raises it by 1, if at least half of the
	// limit is in flight.
	Timeout time.Duration
	// Initial, Least and Most are the limit before the first sample, the floor and the ceiling; 0
	// is 20, 1 and 1000.
	Initial, Least, Most uint32
	// Window is the length of a window, whose releases are one sample. 0 is 100 ms. With a negative
	// Window each release is a sample.
	Window time.Duration
}

// Adaptive limits how many requests a server has at one time. It learns the limit from the latency
// of the requests. It is experimental: a minor version may change it.
//
//	ticket, ok := server.Acquire()
//	if !ok {
//		return errOverloaded
//	}
//	begin := time.Now()
//	err := ask(server)
//	ticket.Release(outcomeOf(err), time.Since(begin))
//
// Any number of goroutines may use it at once. It must not be copied.
type Adaptive struct {
	// words is aligned as C's struct and holds no pointers.
	words adaptiveWords
}

// AdaptiveTicket is a permit of an [Adaptive] limit. Release it once. The zero AdaptiveTicket is
// none.
type AdaptiveTicket struct {
	limit *Adaptive
	bits  uint64
}

// AdaptiveKeyTicket is a permit of a key of an [InFlight] table, under an [Adaptive] limit.
type AdaptiveKeyTicket struct {
	limit  *Adaptive
	key    string
	ticket Ticket
}

// AdaptiveState is an [Adaptive] limit at one instant.
type AdaptiveState struct {
	// Limit is the limit.
	Limit uint32
	// InFlight is the number of permits of [Adaptive.Acquire] in flight.
	InFlight uint64
	// Latency is Gradient2's long-term latency; 0 before the first sample.
	Latency time.Duration
}

// NewAdaptive makes a limit. The error is [ErrOutOfRange] unless 1 <= Least <= Initial <= Most.
func NewAdaptive(options AdaptiveOptions) (*Adaptive, error) {
	a := new(Adaptive)
	if code := adaptiveInit(&a.words, &options); code != 0 {
		return nil, code
	}
	return a, nil
}

// Acquire takes a permit. ok is false if as many permits as the limit are in flight.
func (a *Adaptive) Acquire() (ticket AdaptiveTicket, ok bool) {
	bits, code := adaptiveAcquire(&a.words)
	return AdaptiveTicket{a, bits}, code == 0
}

// Release releases the permit, and the limit learns from the request's outcome and latency. False,
// and nothing changes, if no permit is in flight.
func (t AdaptiveTicket) Release(outcome Outcome, latency time.Duration) bool {
	return t.limit != nil && adaptiveRelease(&t.limit.words, t.bits, outcome, max(latency, 0)) == 0
}

// AcquireKey takes a permit of a key of the table, which counts the permits of all its processes.
// Its errors are those of [InFlight.Acquire].
func (a *Adaptive) AcquireKey(table *InFlight, key string) (ticket AdaptiveKeyTicket, ok bool, err error) {
	c := table.guard.Enter()
	if c == nil {
		return AdaptiveKeyTicket{}, false, ErrClosed
	}
	bits, code := adaptiveAcquireKey(&a.words, table.handle, key)
	c.Leave()
	runtime.KeepAlive(table)
	if code < 0 {
		return AdaptiveKeyTicket{}, false, code
	}
	return AdaptiveKeyTicket{a, key, Ticket{table, bits}}, code == 0, nil
}

// Limit is a permit of the key of the table as one of several limits, and the present limit is the
// most that are in flight. So one call takes from a rate and opens a request at the server, or does
// neither. If the request is admitted, *ticket is the permit's ticket. Otherwise *ticket stays as it
// is:
//
//	var ticket tollbar.AdaptiveKeyTicket
//	taken, err := tollbar.TakeMany(users.Limit(name, 1), server.Limit(open, "server", &ticket))
//	if !taken.Allowed() {
//		return tryLater(err)
//	}
//	begin := time.Now()
//	err = ask()
//	ticket.Release(outcomeOf(err), time.Since(begin))
func (a *Adaptive) Limit(table *InFlight, key string, ticket *AdaptiveKeyTicket) Limit {
	other := otherLimit{inFlight: table, learned: ticket, by: a, most: a.Read().Limit}
	return Limit{other: other, key: key, cost: 1}
}

// Release releases the permit, and the limit learns from the request as in
// [AdaptiveTicket.Release]. It returns the result of [Ticket.Release].
func (t AdaptiveKeyTicket) Release(outcome Outcome, latency time.Duration) bool {
	table := t.ticket.table
	if table == nil {
		return false
	}
	c := table.guard.Enter()
	if c == nil {
		return false
	}
	code := adaptiveReleaseKey(&t.limit.words, table.handle, t.key, t.ticket.bits, outcome, max(latency, 0))
	c.Leave()
	runtime.KeepAlive(table)
	return code == 0
}

// Read returns the limit, its permits in flight and its long-term latency.
func (a *Adaptive) Read() AdaptiveState { return adaptiveRead(&a.words) }

// adaptiveWords is the memory of a limit. A 64-bit atomic is aligned to 8 bytes on every machine.
type adaptiveWords [16]atomic.Uint64
