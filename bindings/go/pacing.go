//go:build cgo || tollbar_purego

package tollbar

import (
	"context"
	"math"
	"runtime"
	"strings"
	"sync"
	"time"
)

// PacingOptions say how a [Pacing] learns its rates. Rates are requests per second. The zero value
// is the cubic curve of the AWS SDKs' adaptive retry mode, from 0.5 to 10^6 requests per second.
type PacingOptions struct {
	// Increase, if it is not 0, makes the algorithm AIMD: a throttled answer cuts the rate to 0.9,
	// and other answers raise it by Increase in each second.
	Increase float64
	// Least and Most are the floor and the ceiling of each host's rate; 0 is 0.5 and 10^6.
	Least, Most float64
	// Burst is the number of requests that may be sent at once after an idle time; 0 is 1.
	Burst uint32
	// PauseMost is the longest pause that an answer can cause; 0 is 5 minutes.
	PauseMost time.Duration
	// Hosts is the number of hosts that are known at one time, up to 4096; 0 is 256. If there are
	// more, the host that is idle the longest is forgotten.
	Hosts int
}

// Pacing finds the rate at which a client may send to each of its hosts. A host that answers with
// 429 gets fewer requests, and after Retry-After none until that time. It delays requests and
// repeats none. It is experimental: a minor version may change it.
//
// Any number of goroutines may use it at once. tollhttp.Transport uses it for an http.Client.
type Pacing struct {
	// mutex is held during each call into C, because the library's pacing is for one thread at a
	// time.
	mutex  sync.Mutex
	handle uintptr
	// The times of the library are nanoseconds since began.
	began time.Time
}

// PacingTicket is a turn to send one request to a host.
type PacingTicket struct{ host, turn uint64 }

// PacingState is a host of a [Pacing] at one instant.
type PacingState struct {
	// Rate is requests per second.
	Rate float64
	// Measured is the smoothed rate of answers per second; 0 in the first half second.
	Measured float64
	// Waiting is the number of callers that wait.
	Waiting uint64
	// Paused is the time until the pause ends; 0: none.
	Paused time.Duration
}

// NewPacing makes a pacing without hosts. Its errors are [ErrOutOfRange] unless 0 < Least <= Most
// <= 10^9, and [ErrCapacity] unless Hosts is within 0 and 4096.
func NewPacing(options PacingOptions) (*Pacing, error) {
	handle, code := pacingNew(&options)
	if code != 0 {
		return nil, code
	}
	p := &Pacing{handle: handle, began: time.Now()}
	runtime.AddCleanup(p, pacingFree, handle)
	return p, nil
}

// Acquire takes the host's next turn and sleeps until the request may be sent. If ctx ends first,
// it gives the turn back and returns ctx's error.
//
// The host is any text that names what has one limit, such as "https://api.example.com". After the
// answer, pass the ticket to Respond. A request without an answer needs no call.
func (p *Pacing) Acquire(ctx context.Context, host string) (PacingTicket, error) {
	ticket := p.Turn(host)
	for {
		wait := p.Wait(ticket)
		if wait == 0 {
			return ticket, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			p.Leave(ticket)
			return PacingTicket{}, context.Cause(ctx)
		}
	}
}

// Turn takes the host's next turn without sleeping.
func (p *Pacing) Turn(host string) (ticket PacingTicket) {
	p.call(func(now uint64) { ticket = pacingAcquire(p.handle, host, now) })
	return ticket
}

// Wait returns how long to sleep before the next call of Wait. 0: the request may be sent now.
func (p *Pacing) Wait(ticket PacingTicket) (wait time.Duration) {
	p.call(func(now uint64) { wait = pacingWait(p.handle, ticket, now) })
	return wait
}

// Leave gives a turn back before its request was sent. The callers behind it move up.
func (p *Pacing) Leave(ticket PacingTicket) {
	p.call(func(now uint64) { pacingLeave(p.handle, ticket, now) })
}

// Respond says that the host has answered, with an HTTP status and an http.Header.
func (p *Pacing) Respond(ticket PacingTicket, status int, header map[string][]string) {
	var lines strings.Builder
	for name, values := range header {
		if !isAboutLimits(name) {
			continue
		}
		for _, value := range values {
			lines.WriteString(name + ": " + value + "\n")
		}
	}
	utc := uint64(max(time.Now().UnixNano(), 0))
	p.call(func(now uint64) { pacingRespond(p.handle, ticket, status, lines.String(), utc, now) })
}

// State returns the state of a host; false if it is unknown or forgotten.
func (p *Pacing) State(host string) (state PacingState, known bool) {
	p.call(func(now uint64) { state, known = pacingRead(p.handle, host, now) })
	return state, known
}

func (p *Pacing) call(f func(now uint64)) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	f(uint64(time.Since(p.began)))
	runtime.KeepAlive(p)
}

func isAboutLimits(name string) bool {
	lower := strings.ToLower(name)
	return lower == "retry-after" || strings.HasPrefix(lower, "ratelimit") || strings.HasPrefix(lower, "x-ratelimit-") || strings.HasPrefix(lower, "x-rate-limit-")
}

// millionths is a rate in the library's unit. A rate below 0 or above all rates is one that the
// library refuses.
func millionths(rate float64) uint64 {
	switch scaled := math.Round(rate * 1e6); {
	case scaled >= math.MaxInt64:
		return math.MaxUint64
	case scaled > 0:
		return uint64(scaled)
	default:
		return 0
	}
}
