package cell

import (
	"errors"
	"math"
	"math/bits"
	"time"
)

// The errors of refused policies.
var (
	// ErrPeriod: the period is not positive.
	ErrPeriod = errors.New("cell: the period is not positive")
	// ErrBurstZero: the burst is 0 and the limit is not. (To deny every request, set the limit to 0.)
	ErrBurstZero = errors.New("cell: the burst is 0")
	// ErrRateTooHigh: more than about 1.6·10^10 permits a second.
	ErrRateTooHigh = errors.New("cell: the rate is higher than a word can count exactly")
	// ErrBurstTooLarge: the burst takes longer to refill than a word can hold.
	ErrBurstTooLarge = errors.New("cell: the burst takes longer to refill than a word can say")
	// ErrInitAboveBurst: init is above the burst.
	ErrInitAboveBurst = errors.New("cell: more initial permits than the burst")
)

// Policy is a compiled token bucket: read-only, for any number of cells and goroutines. Make it with [New].
type Policy struct {
	grid grid
	// The most permits at once; 0 for a limit of 0.
	burst uint64
	// burst permits in units.
	tolerance uint64
	// The units that a fresh cell lacks of a full bucket.
	lacking uint64
	// The least word of a bucket that counts as started: 1 if a fresh cell lacks units, otherwise 0.
	started uint64
	// The policy's last time.
	last uint64
	// The limit is 0, so every request is denied.
	shut bool
}

// New compiles a bucket of burst permits that refills with limit permits per period. A limit of 0 refuses everything.
//
// The limit is at most some 1.6·10^10 a second and the burst at most what refills within some decades; the errors are
// those of this package. It takes some microseconds: do it once.
func New(limit uint64, period time.Duration, burst uint64) (*Policy, error) {
	return NewWithInit(limit, period, burst, burst)
}

// NewWithInit is [New] with init permits in a cell that has not been used, from 0 to burst.
func NewWithInit(limit uint64, period time.Duration, burst, init uint64) (*Policy, error) {
	switch {
	case period <= 0:
		return nil, ErrPeriod
	case init > burst:
		return nil, ErrInitAboveBurst
	case limit == 0:
		return &Policy{shut: true, last: lastTime}, nil
	case burst == 0:
		return nil, ErrBurstZero
	}
	p, err := compile(limit, uint64(period), burst, init, 64)
	if err != nil || p.grid.shift == 0 {
		return p, err
	}
	// Where the clock is rounded, tables need the highest bit for words that got permits back.
	if narrow, err := compile(limit, uint64(period), burst, init, 63); err == nil && narrow.last == lastTime {
		return narrow, nil
	}
	return p, nil
}

// compile makes the policy for times of width bits.
func compile(limit, period, burst, init uint64, width uint) (*Policy, error) {
	g, ok := newGrid(limit, period, burst, width)
	if !ok {
		if _, ok := newGrid(limit, period, 1, width); ok {
			return nil, ErrBurstTooLarge
		}
		return nil, ErrRateTooHigh
	}
	most := uint64(math.MaxUint64) >> (64 - width)
	high, tolerance := bits.Mul64(burst, g.perPermit)
	if high != 0 || tolerance > most/2 {
		return nil, ErrBurstTooLarge
	}
	p := &Policy{grid: g, burst: burst, tolerance: tolerance, lacking: (burst - init) * g.perPermit}
	if p.lacking != 0 {
		p.started = 1
	}
	// Until then tolerance can be added twice without overflow.
	p.last = min(g.nanos(most-2*tolerance), g.maxNow)
	if p.last > 0 {
		p.last--
	}
	p.last = min(p.last, lastTime)
	return p, nil
}

// LastTime returns the last time at which the policy admits a request: 2^61 - 2 ns for all but the fastest policies.
func (p *Policy) LastTime() uint64 { return p.last }

// Burst returns the most permits that can be taken at once; 0 for a limit of 0.
func (p *Policy) Burst() uint64 { return p.burst }

// base is the word that a request at clock units starts from.
func (p *Policy) base(word, clock uint64) uint64 {
	if word == 0 {
		return addUpTo(clock, p.lacking)
	}
	return max(word, clock)
}

// step decides on n permits in the general case. It returns the word to store, which is word itself if nothing changes.
func (p *Policy) step(word, now, n uint64) (Verdict, uint64) {
	switch {
	case n == 0:
		return Allowed, word
	case p.shut:
		return Denied, word
	case n > p.burst:
		return Never, word
	case now > p.last:
		return Denied, word
	}
	clock := p.grid.unitsInTime(now)
	base := p.base(word, clock)
	next, carry := bits.Add64(base, n*p.grid.perPermit, 0)
	if carry == 0 && next <= clock+p.tolerance {
		return Allowed, next
	}
	if word < p.started {
		// A bucket that starts without its burst stores the time at which it began to fill.
		return Denied, base
	}
	return Denied, word
}

// available returns the number of permits that could be taken.
func (p *Policy) available(word, now uint64) uint64 {
	if p.shut || now > p.last {
		return 0
	}
	clock := p.grid.units(now)
	line, base := addUpTo(clock, p.tolerance), p.base(word, clock)
	if base >= line {
		return 0
	}
	return (line - base) / p.grid.perPermit
}

// admitsAt is the earliest time from now on at which n permits are admitted, or noTime.
func (p *Policy) admitsAt(word, now, n uint64) uint64 {
	if n == 0 {
		return now
	}
	if p.shut || n > p.burst {
		return noTime
	}
	return p.due(p.base(word, p.grid.units(now)), now, n)
}

// due is the earliest time from now on at which n permits beyond base are within the burst, or noTime.
func (p *Policy) due(base, now, n uint64) uint64 {
	next, carry := bits.Add64(base, n*p.grid.perPermit, 0)
	if carry != 0 {
		return noTime
	}
	if at := max(p.grid.nanos(max(next, p.tolerance)-p.tolerance), now); at <= p.last {
		return at
	}
	return noTime
}

// freshAt is the earliest time from now on at which the word is as good as fresh, or noTime.
func (p *Policy) freshAt(word, now uint64) uint64 {
	if p.shut || word == 0 {
		return now
	}
	if at := max(p.grid.nanos(max(word, p.lacking)-p.lacking), now); at <= p.last {
		return at
	}
	return noTime
}

// describe returns the full decision: verdict was given at now on n permits, and word is the state after it.
func (p *Policy) describe(verdict Verdict, word, now, n uint64) Decision {
	d := Decision{Verdict: verdict, Reason: reasonOf(verdict), Remaining: p.available(word, now), ResetAfter: after(p.freshAt(word, now), now)}
	switch verdict {
	case Denied:
		d.RetryAfter = after(p.admitsAt(word, now, n), now)
	case Never:
		d.RetryAfter = Forever
	}
	return d
}

// after returns at as a wait from now.
func after(at, now uint64) time.Duration {
	if at < now {
		return 0
	}
	if at == noTime || at-now > math.MaxInt64 {
		return Forever
	}
	return time.Duration(at - now)
}

func addUpTo(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}
