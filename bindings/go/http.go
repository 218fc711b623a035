package tollbar

import (
	"math"
	"runtime"
	"time"
)

// HTTPFields selects header fields that tell a client about its limits. Join values by |, with at
// most one of the two Legacy values and at most one of the three Draft values.
type HTTPFields uint32

const (
	// FieldRetryAfter writes Retry-After for a refused request, in seconds, rounded up.
	FieldRetryAfter HTTPFields = 1
	// FieldsLegacy writes X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset, the reset
	// in seconds from now.
	FieldsLegacy HTTPFields = 2
	// FieldsLegacyEpoch writes the fields of FieldsLegacy, the reset in seconds since 1970.
	FieldsLegacyEpoch HTTPFields = 4
	// FieldsDraft06 writes RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset and
	// RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers 00 to 06.
	FieldsDraft06 HTTPFields = 8
	// FieldsDraft07 writes RateLimit and RateLimit-Policy of draft 07. That draft has no names of
	// limits, so [HTTPLimit].Name is not written.
	FieldsDraft07 HTTPFields = 16
	// FieldsDraft11 writes RateLimit and RateLimit-Policy of drafts 08 to 11.
	FieldsDraft11 HTTPFields = 32
)

// HTTPLimit describes a limit of a request to its client.
type HTTPLimit struct {
	// Name is what clients see. Bytes other than printable ASCII are written as "?".
	Name string
	// Policy is the limit's policy. If it is a list of two rates, the fields describe the rate that
	// bound the decision.
	Policy   Policy
	Decision Decision
	// MoreAfter is the time until more permits are left than Decision says ([Keys.MoreAfter]).
	// [Forever]: no permit is missing, or the time is unknown.
	MoreAfter time.Duration
	// Partition names the client or group whose quota this is (pk of drafts 08 to 11). Clients see
	// it. Empty: not written.
	Partition string
}

// AppendHTTPFields appends the header lines of 1 to [LimitsMost] limits. A line is a field's name,
// a colon, a space, the value, CR and LF. Only [FieldsLegacyEpoch] uses now. A field with room for
// one limit describes the limit that binds: if limits refuse, the one of them with the longest
// wait, and otherwise the one with the fewest permits left.
func AppendHTTPFields(to []byte, fields HTTPFields, now time.Time, limits ...HTTPLimit) ([]byte, error) {
	if fields == 0 {
		return to, nil
	}
	to, code := appendHTTP(to, uint32(fields), since1970(now), limits)
	if code != 0 {
		return to, code
	}
	return to, nil
}

// AppendHTTPProblem appends the body of a refusal's answer: a problem in JSON (RFC 9457, media type
// application/problem+json) with the names of the limits that refuse. status is the answer's HTTP
// status, such as 429.
func AppendHTTPProblem(to []byte, status int, limits ...HTTPLimit) ([]byte, error) {
	if status < 0 || status > math.MaxUint16 {
		return to, ErrOutOfRange
	}
	to, code := appendHTTP(to, 0, uint64(status), limits)
	if code != 0 {
		return to, code
	}
	return to, nil
}

// MoreAfter returns how long after d the key will have more permits than d.Remaining. [Forever]: no
// permit is missing, none will come back, or the policy lends (borrow, pacer, warm-up) and has
// permits left. n is the cost of the request that was decided.
func (k Keys) MoreAfter(key string, n uint64, d Decision) (time.Duration, error) {
	more := uint64(math.MaxUint64)
	err := k.call(func(table tableHandle) Code { return tableMore(table, k.policy, key, n, &d, &more) })
	return duration(more), err
}

// MoreAfter returns how long after d the limiter will have more permits than d.Remaining. See
// [Keys.MoreAfter].
func (l *Limiter) MoreAfter(n uint64, d Decision) (time.Duration, error) {
	switch {
	case l.ended():
		return Forever, ErrClosed
	case l.time != nil:
		return Forever, ErrOptionMismatch
	}
	more := uint64(math.MaxUint64)
	code := limiterMore(l.handle, n, &d, &more)
	runtime.KeepAlive(l)
	if code != 0 {
		return Forever, code
	}
	return duration(more), nil
}

func since1970(now time.Time) uint64 { return uint64(max(now.UnixNano(), 0)) }
