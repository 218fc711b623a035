//go:build cgo

package tollbar

import (
	"math"
	"runtime"
	"time"
)

// HTTPFields are header fields that tell a client about its limits, joined by |: of the two Legacy and of the three Draft ones at most one
// each.
type HTTPFields uint32

const (
	// FieldRetryAfter is Retry-After of a refused request: seconds, rounded up.
	FieldRetryAfter HTTPFields = 1
	// FieldsLegacy are X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset, in seconds from now.
	FieldsLegacy HTTPFields = 2
	// FieldsLegacyEpoch are the same with the reset in seconds since 1970.
	FieldsLegacyEpoch HTTPFields = 4
	// FieldsDraft06 are RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset and RateLimit-Policy of
	// draft-ietf-httpapi-ratelimit-headers 00 to 06.
	FieldsDraft06 HTTPFields = 8
	// FieldsDraft07 are RateLimit and RateLimit-Policy of draft 07, where limits have no names.
	FieldsDraft07 HTTPFields = 16
	// FieldsDraft11 are RateLimit and RateLimit-Policy of drafts 08 to 11.
	FieldsDraft11 HTTPFields = 32
)

// HTTPLimit describes a limit of a request to its client.
type HTTPLimit struct {
	// Name is what clients see. Bytes other than printable ASCII are written as "?".
	Name string
	// Policy is the limit's. Of a list the fields describe the policy that bound.
	Policy   Policy
	Decision Decision
	// MoreAfter is the time until more permits are left ([Keys.MoreAfter]). [Forever]: all permits are left, or the time is unknown.
	MoreAfter time.Duration
	// Partition says whose quota it is (pk of drafts 08 to 11). Clients see it. Empty: not written.
	Partition string
}

// HTTPSeen is what a server's header fields say. A time is [Forever] if they do not say it.
type HTTPSeen struct {
	// Limit is permits per Window.
	Limit, Remaining       uint64
	HasLimit, HasRemaining bool
	Window                 time.Duration
	// MoreAfter is the time until more permits are left.
	MoreAfter time.Duration
	// RetryAfter is the time to wait before the next request.
	RetryAfter time.Duration
}

// AppendHTTPFields appends the header lines of 1 to [LimitsMost] limits: for each field its name, a colon, a space, the value, CR and LF. now
// is for [FieldsLegacyEpoch]. Fields with room for one limit describe the one that binds: of those that refuse the one with the longest wait,
// and if none refuses, the one with the fewest permits left.
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

// AppendHTTPProblem appends the body of a refusal: a problem in JSON (RFC 9457, media type application/problem+json) with the names of the
// limits that refuse. status is the answer's, such as 429.
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

// ReadHTTPFields reads header lines of a server: every dialect that [AppendHTTPFields] writes. It skips other fields and ignores malformed
// ones. now is the time of the answer, for dates.
func ReadHTTPFields(lines []byte, now time.Time) HTTPSeen { return readHTTP(lines, since1970(now)) }

// MoreAfter returns the time after a decision until the key has more permits than it left. [Forever]: it has all, more never come, or a policy
// that lends has some left. n is the cost that was decided.
func (k Keys) MoreAfter(key string, n uint64, d Decision) (time.Duration, error) {
	more := uint64(math.MaxUint64)
	err := k.call(func(table uintptr) Code { return tableMore(table, k.policy, key, n, &d, &more) })
	return duration(more), err
}

// MoreAfter returns the time after a decision until the limiter has more permits than it left, as [Keys.MoreAfter] does.
func (l *Limiter) MoreAfter(n uint64, d Decision) (time.Duration, error) {
	if l.closed.Load() {
		return Forever, ErrClosed
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
