//go:build !cgo && !tollbar_purego

package tollbar

import (
	"net/netip"

	"github.com/tollbar/tollbar/bindings/go/internal/core"
)

func limiterMore(limiter handle, n uint64, d *Decision, more *uint64) Code {
	now := limiter.clock.now()
	*more = moreAfter(&limiter.policy, d, n, func(n uint64) core.Answer { return limiter.PeekUncounted(now, n) })
	return 0
}

// appendHTTP appends the header fields that `what` names, or the problem's body if `what` is 0.
func appendHTTP(to []byte, what uint32, number uint64, limits []HTTPLimit) ([]byte, Code) {
	if len(limits) == 0 || len(limits) > LimitsMost {
		return to, ErrLimits
	}
	if !core.ValidFields(what) {
		return to, ErrOutOfRange
	}
	var room [LimitsMost]core.HTTPLimit
	for i := range limits {
		one, to := &limits[i], &room[i]
		*to = core.HTTPLimit{
			Name: one.Name, Partition: one.Partition, Limit: one.Policy.Limit, Period: uint64(max(one.Policy.Period, 0)), Burst: one.Policy.Burst,
			Verdict: core.Verdict(one.Decision.Verdict), Remaining: one.Decision.Remaining, RetryAfter: waitOf(one.Decision.RetryAfter),
			ResetAfter: waitOf(one.Decision.ResetAfter), MoreAfter: waitOf(one.MoreAfter),
		}
		if one.Policy.Algorithm == Quota {
			to.Period = core.Forever
		}
		if one.Policy.SecondLimit != 0 && one.Decision.Bound != 0 {
			to.Limit, to.Period, to.Burst = one.Policy.SecondLimit, uint64(one.Policy.SecondPeriod), one.Policy.SecondBurst
		}
	}
	if what == 0 {
		return core.AppendProblem(to, number, room[:len(limits)]), 0
	}
	return core.AppendFields(to, what, number, room[:len(limits)]), 0
}

// prefix is the key of a network prefix: the family, the length in bits, and the address's first
// bits.
func prefix(address []byte, ipv4Bits, ipv6Bits uint32) (key [20]byte, length int, code Code) {
	addr, ok := netip.AddrFromSlice(address)
	if !ok {
		return key, 0, ErrAddress
	}
	family, bits := byte(6), ipv6Bits
	// A translator (NAT64) puts IPv4 addresses behind 64:ff9b::/96. Without this all of them would
	// be one /64.
	if addr = addr.Unmap(); addr.Is6() && [12]byte(address[:12]) == [12]byte{0, 0x64, 0xff, 0x9b} {
		addr = netip.AddrFrom4([4]byte(address[12:]))
	}
	if addr.Is4() {
		family, bits = 4, ipv4Bits
	}
	// Both, as in C, whichever family the address has.
	if ipv4Bits > 32 || ipv6Bits > 128 {
		return key, 0, ErrOutOfRange
	}
	first, err := addr.Prefix(int(bits))
	if err != nil {
		return key, 0, ErrAddress
	}
	key[0], key[1] = family, byte(bits)
	copy(key[2:], first.Addr().AsSlice())
	return key, 2 + int(bits+7)/8, 0
}
