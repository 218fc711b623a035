//go:build cgo || tollbar_purego

package tollbar

import "time"

// HTTPSeen holds the limits that a server's header fields describe. A time is [Forever] if no field
// gives it.
type HTTPSeen struct {
	// Limit is permits per Window.
	Limit, Remaining       uint64
	HasLimit, HasRemaining bool
	Window                 time.Duration
	// MoreAfter is the time until more permits than Remaining are left.
	MoreAfter time.Duration
	// RetryAfter is the time to wait before the next request.
	RetryAfter time.Duration
}

// ReadHTTPFields reads a server's limits from header lines, in every dialect that
// [AppendHTTPFields] writes. It skips other fields and ignores malformed ones. now is the time of
// the answer; dates and epochs are counted from it.
func ReadHTTPFields(lines []byte, now time.Time) HTTPSeen { return readHTTP(lines, since1970(now)) }
