package core

import (
	"math"
	"math/big"
	"math/bits"
)

// horizon is the range of clock readings that words are made for: 2^61 ns, 73 years.
const horizon = 1 << 61

// LastTime is the latest time at which any policy admits a request.
const LastTime = horizon - 2

// NoTime stands for "never" where a number of nanoseconds is expected.
const NoTime = math.MaxUint64

// Grid maps nanoseconds to units of 1/PerPermit permit and back, as docs/internals/state-word.md
// defines it.
//
// A permit takes period/limit nanoseconds, which is rarely whole. In units of a well-chosen
// fraction of a permit both the clock and all charges are whole numbers, so nothing is ever rounded
// twice.
type Grid struct {
	// Units per nanosecond, as (hi·2^64 + lo) / 2^(shift+64), rounded up in the last place. With a
	// shift of 0 it is hi exactly.
	hi, lo uint64
	shift  uint
	// The number of units in a permit.
	PerPermit uint64
	// The last reading whose units fit the bits of a time.
	MaxNow uint64
	// Nanoseconds per unit, rounded up to a multiple of 2^-64: the whole ones and 2^64 times the
	// rest.
	whole, part uint64
}

// NewGrid is the grid of limit permits per period nanoseconds for times of width bits that must
// also hold span permits beyond the clock; false if there is none. Done once for a policy, so it
// may take its time with big numbers.
func NewGrid(limit, period, span uint64, width uint) (Grid, bool) {
	var g Grid
	l, p := num(limit), num(period)
	room := new(big.Int).Sub(power(width), num(1))

	horizonPermits := divUp(new(big.Int).Mul(num(horizon), l), p)
	beyond := new(big.Int).Mul(num(2), num(span))
	most := new(big.Int).Div(room, atLeastOne(new(big.Int).Add(horizonPermits, beyond)))
	if most.Sign() == 0 {
		// The fastest rates get half the horizon instead of an error.
		half := new(big.Int).Rsh(horizonPermits, 1)
		most.Div(room, atLeastOne(half.Add(half, beyond)))
	}
	if largest := num(math.MaxInt64); most.Cmp(largest) > 0 {
		most = largest
	}
	if most.Sign() == 0 {
		return g, false
	}
	perPermit := finest(l, p, most)
	if !perPermit.IsUint64() {
		return g, false
	}
	g.PerPermit = perPermit.Uint64()

	permits := new(big.Int).Mul(l, perPermit)
	common := new(big.Int).GCD(nil, nil, permits, p)
	up, down := new(big.Int).Div(permits, common), new(big.Int).Div(p, common)
	if !g.setRate(up, down) {
		return g, false
	}
	g.MaxNow = math.MaxUint64
	if end := divUp(new(big.Int).Mul(power(width), down), up); end.IsUint64() {
		g.MaxNow = end.Uint64() - 1
	}
	length := divUp(new(big.Int).Lsh(p, 64), permits)
	g.whole = new(big.Int).Rsh(length, 64).Uint64()
	g.part = low(length)
	return g, true
}

// setRate sets hi, lo and shift for up/down units per nanosecond, in lowest terms.
func (g *Grid) setRate(up, down *big.Int) bool {
	if down.IsUint64() && down.Uint64() == 1 {
		g.hi = up.Uint64()
		return up.IsUint64()
	}
	// Divide until the quotient has 128 bits.
	shift := uint(0)
	whole, rest := new(big.Int).DivMod(up, down, new(big.Int))
	for whole.BitLen() < 128 {
		shift++
		whole, rest = new(big.Int).DivMod(new(big.Int).Lsh(up, shift), down, new(big.Int))
	}
	if rest.Sign() != 0 {
		whole.Add(whole, num(1))
	}
	if shift < 64 || whole.BitLen() > 128 {
		return false
	}
	g.hi, g.lo, g.shift = new(big.Int).Rsh(whole, 64).Uint64(), low(whole), shift-64
	return true
}

// finest is the largest number of units that is at most most and with which the clock is not
// rounded at multiples of the smallest possible power of ten nanoseconds.
func finest(limit, period, most *big.Int) *big.Int {
	for step := num(1); step.IsUint64(); step.Mul(step, num(10)) {
		common := new(big.Int).GCD(nil, nil, period, new(big.Int).Mul(limit, step))
		base := new(big.Int).Div(period, common)
		if base.Cmp(most) > 0 {
			continue
		}
		if step.Uint64() == 1 {
			// Whole units a nanosecond: finer units would not be more exact.
			return base
		}
		return base.Mul(base, new(big.Int).Div(most, base))
	}
	// A period with a large prime factor.
	return most
}

// Units returns the whole units that are over at now, or the largest number after MaxNow.
func (g *Grid) Units(now uint64) uint64 {
	if now > g.MaxNow {
		return math.MaxUint64
	}
	return g.UnitsInTime(now)
}

// UnitsInTime is units for a now that is known not to be after MaxNow.
func (g *Grid) UnitsInTime(now uint64) uint64 {
	if g.shift == 0 {
		return now * g.hi
	}
	return g.unitsScaled(now)
}

func (g *Grid) unitsScaled(now uint64) uint64 {
	high, mid := bits.Mul64(now, g.hi)
	low, _ := bits.Mul64(now, g.lo)
	mid, carry := bits.Add64(mid, low, 0)
	high += carry
	if g.shift >= 64 {
		return high >> (g.shift - 64)
	}
	return high<<(64-g.shift) | mid>>g.shift
}

// Nanos is the smallest now whose units are at least target; NoTime if there is none.
func (g *Grid) Nanos(target uint64) uint64 {
	if g.shift == 0 && g.hi != 0 {
		at := target / g.hi
		if target%g.hi != 0 {
			at++
		}
		if at > g.MaxNow {
			return NoTime
		}
		return at
	}
	// A guess that is off by a nanosecond or two; step to the exact one.
	now := min(g.about(target), g.MaxNow)
	for now > 0 && g.Units(now-1) >= target {
		now--
	}
	for g.Units(now) < target {
		if now >= g.MaxNow {
			return NoTime
		}
		now++
	}
	return now
}

// about is the time at which units are over, to a nanosecond.
func (g *Grid) about(units uint64) uint64 {
	part, _ := bits.Mul64(units, g.part)
	high, low := bits.Mul64(units, g.whole)
	low, carry := bits.Add64(low, part, 0)
	if high+carry != 0 {
		return NoTime
	}
	return low
}

func num(n uint64) *big.Int { return new(big.Int).SetUint64(n) }
func power(n uint) *big.Int { return new(big.Int).Lsh(num(1), n) }
func low(n *big.Int) uint64 { return new(big.Int).And(n, num(math.MaxUint64)).Uint64() }
func divUp(n, d *big.Int) *big.Int {
	quotient, rest := new(big.Int).DivMod(n, d, new(big.Int))
	if rest.Sign() != 0 {
		quotient.Add(quotient, num(1))
	}
	return quotient
}

func atLeastOne(n *big.Int) *big.Int {
	if n.Sign() == 0 {
		return n.SetUint64(1)
	}
	return n
}

// unitsUp is an upper bound of the exact units at now, at most one unit above it.
func (g *Grid) unitsUp(now uint64) uint64 {
	if g.shift == 0 {
		return g.Units(now)
	}
	return addUpTo(g.Units(now), 1)
}

// over is a time in nanoseconds at which units have passed, late by less than 4 ns or one unit and
// never early; NoTime if it is not before end. It never decreases as units grows.
func (g *Grid) over(units, end uint64) uint64 {
	if g.whole != 0 {
		units = addUpTo(units, 1)
	}
	at := g.about(units)
	if at >= end || at+1 >= end {
		return NoTime
	}
	return at + 1
}

func addUpTo(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}

func mulUpTo(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high != 0 {
		return math.MaxUint64
	}
	return low
}

func subTo0(a, b uint64) uint64 { return max(a, b) - b }

// divCeil is a / b, rounded up.
func divCeil(a, b uint64) uint64 {
	quotient := a / b
	if a%b != 0 {
		quotient++
	}
	return quotient
}
