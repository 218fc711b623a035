//go:build cgo || tollbar_purego

package tollbar

// The calls into C for header fields.

import (
	"math"
	"slices"
	"unsafe"
)

func rawDecision(d *Decision) tollbar_decision {
	raw := newDecision()
	raw.verdict, raw.reason, raw.bound = uint32(d.Verdict), uint32(d.Reason), uint32(d.Bound)
	raw.remaining = d.Remaining
	raw.retry_after_ns, raw.reset_after_ns = nanoseconds(d.RetryAfter), nanoseconds(d.ResetAfter)
	return raw
}

func tableMore(table uintptr, policy uint32, key string, n uint64, d *Decision, more *uint64) Code {
	raw := rawDecision(d)
	return Code(cTableMore(table, policy, key, n, &raw, more))
}

func limiterMore(limiter uintptr, n uint64, d *Decision, more *uint64) Code {
	raw := rawDecision(d)
	return Code(cLimiterMore(limiter, n, &raw, more))
}

// appendHTTP appends the fields what, or for 0 the problem.
func appendHTTP(to []byte, what uint32, number uint64, limits []HTTPLimit) ([]byte, Code) {
	if len(limits) > LimitsMost {
		return to, ErrLimits
	}
	var raw [LimitsMost]httpItem
	var names []byte
	// By tollbar.h that is enough.
	capacity := 300
	for i := range limits {
		one := &limits[i]
		names = append(append(names, one.Name...), one.Partition...)
		raw[i].policy, raw[i].decision, raw[i].more = one.Policy.spec(), rawDecision(&one.Decision),
			nanoseconds(one.MoreAfter)
		raw[i].name, raw[i].partition = uintptr(len(one.Name)), uintptr(len(one.Partition))
		capacity += 100 + 4*len(one.Name) + 3*len(one.Partition)
	}
	names = append(names, 0)
	to = slices.Grow(to, capacity)
	var length uintptr
	code := cHTTPWrite(raw[:len(limits)], names, what, number, to[len(to):cap(to)], &length)
	if code != 0 {
		return to, Code(code)
	}
	return to[:len(to)+int(length)], 0
}

func readHTTP(lines []byte, utc uint64) HTTPSeen {
	out := tollbar_http_seen{struct_size: uint32(unsafe.Sizeof(tollbar_http_seen{}))}
	seen := HTTPSeen{Window: Forever, MoreAfter: Forever, RetryAfter: Forever}
	if cHTTPRead(unsafe.String(unsafe.SliceData(lines), len(lines)),
		utc, &out) != tollbar_yes {
		return seen
	}
	if out.limit != math.MaxUint64 {
		seen.HasLimit, seen.Limit = true, out.limit
	}
	if out.remaining != math.MaxUint64 {
		seen.HasRemaining, seen.Remaining = true, out.remaining
	}
	seen.Window, seen.MoreAfter = duration(out.window_ns), duration(out.more_after_ns)
	seen.RetryAfter = duration(out.retry_after_ns)
	return seen
}
