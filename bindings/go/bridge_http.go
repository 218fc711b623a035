package tollbar

// The calls into C for header fields.

/*
#include "bridge.h"

#cgo noescape go_table_more
#cgo nocallback go_table_more
#cgo noescape go_limiter_more
#cgo nocallback go_limiter_more
#cgo noescape go_http_write
#cgo nocallback go_http_write
#cgo noescape go_http_read
#cgo nocallback go_http_read
*/
import "C"

import (
	"math"
	"slices"
	"unsafe"
)

// The Go constants have C's values.
var _ = [1]struct{}{}[FieldRetryAfter-C.TOLLBAR_HTTP_RETRY_AFTER|FieldsLegacy-C.TOLLBAR_HTTP_LEGACY|
	FieldsLegacyEpoch-C.TOLLBAR_HTTP_LEGACY_EPOCH|
	FieldsDraft06-C.TOLLBAR_HTTP_DRAFT_06|FieldsDraft07-C.TOLLBAR_HTTP_DRAFT_07|
	FieldsDraft11-C.TOLLBAR_HTTP_DRAFT_11]

func rawDecision(d *Decision) C.tollbar_decision {
	raw := newDecision()
	raw.verdict, raw.reason, raw.bound = C.uint32_t(d.Verdict), C.uint32_t(d.Reason), C.uint32_t(d.Bound)
	raw.remaining = C.uint64_t(d.Remaining)
	raw.retry_after_ns, raw.reset_after_ns = nanoseconds(d.RetryAfter), nanoseconds(d.ResetAfter)
	return raw
}

func tableMore(table uintptr, policy uint32, key string, n uint64, d *Decision, more *uint64) Code {
	raw := rawDecision(d)
	return Code(C.go_table_more(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(n), &raw,
		(*C.uint64_t)(more)))
}

func limiterMore(limiter uintptr, n uint64, d *Decision, more *uint64) Code {
	raw := rawDecision(d)
	return Code(C.go_limiter_more(C.uintptr_t(limiter), C.uint64_t(n), &raw, (*C.uint64_t)(more)))
}

// appendHTTP appends the fields what, or for 0 the problem.
func appendHTTP(to []byte, what uint32, number uint64, limits []HTTPLimit) ([]byte, Code) {
	if len(limits) > LimitsMost {
		return to, ErrLimits
	}
	var raw [LimitsMost]C.go_http_limit
	var names []byte
	// By tollbar.h that is enough.
	capacity := 300
	for i := range limits {
		one := &limits[i]
		names = append(append(names, one.Name...), one.Partition...)
		raw[i].policy, raw[i].decision, raw[i].more = one.Policy.spec(), rawDecision(&one.Decision),
			nanoseconds(one.MoreAfter)
		raw[i].name, raw[i].partition = C.size_t(len(one.Name)), C.size_t(len(one.Partition))
		capacity += 100 + 4*len(one.Name) + 3*len(one.Partition)
	}
	names = append(names, 0)
	to = slices.Grow(to, capacity)
	var length C.size_t
	code := C.go_http_write(&raw[0], (*C.uint8_t)(unsafe.SliceData(names)), C.size_t(len(limits)),
		C.uint32_t(what), C.uint64_t(number),
		(*C.uint8_t)(unsafe.SliceData(to[len(to):cap(to)])), C.size_t(cap(to)-len(to)), &length)
	if code != 0 {
		return to, Code(code)
	}
	return to[:len(to)+int(length)], 0
}

func readHTTP(lines []byte, utc uint64) HTTPSeen {
	out := C.tollbar_http_seen{struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_http_seen{}))}
	seen := HTTPSeen{Window: Forever, MoreAfter: Forever, RetryAfter: Forever}
	if C.go_http_read(text(unsafe.String(unsafe.SliceData(lines), len(lines))), C.size_t(len(lines)),
		C.uint64_t(utc), &out) != C.TOLLBAR_YES {
		return seen
	}
	if out.limit != math.MaxUint64 {
		seen.HasLimit, seen.Limit = true, uint64(out.limit)
	}
	if out.remaining != math.MaxUint64 {
		seen.HasRemaining, seen.Remaining = true, uint64(out.remaining)
	}
	seen.Window, seen.MoreAfter = duration(uint64(out.window_ns)), duration(uint64(out.more_after_ns))
	seen.RetryAfter = duration(uint64(out.retry_after_ns))
	return seen
}
