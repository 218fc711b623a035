package core

import (
	"encoding/base64"
	"math/bits"
	"strconv"
)

// integerMost is the greatest integer of structured fields (RFC 9651).
const integerMost = 999_999_999_999_999

// HTTPLimit is a limit of a request, as its header fields describe it. Times are nanoseconds,
// NoTime for one that is unknown.
type HTTPLimit struct {
	Name, Partition                              string
	Limit, Period, Burst                         uint64
	Verdict                                      Verdict
	Remaining, RetryAfter, ResetAfter, MoreAfter uint64
}

// The header fields, with their numbers in tollbar.h.
const (
	fieldRetryAfter   = 1
	fieldsLegacy      = 2
	fieldsLegacyEpoch = 4
	fieldsDraft06     = 8
	fieldsDraft07     = 16
	fieldsDraft11     = 32
)

// ValidFields reports whether the fields go together.
func ValidFields(fields uint32) bool {
	legacy := fields & (fieldsLegacy | fieldsLegacyEpoch)
	draft := fields & (fieldsDraft06 | fieldsDraft07 | fieldsDraft11)
	return fields < 64 && legacy&(legacy-1) == 0 && draft&(draft-1) == 0
}

func (l *HTTPLimit) refuses() bool { return l.Verdict != Allowed }

// AppendFields appends the header lines of limits, of which there is one at least. utc is the time
// in nanoseconds since 1970.
func AppendFields(to []byte, fields uint32, utc uint64, limits []HTTPLimit) []byte {
	binding := bindingOf(limits)
	if fields&fieldRetryAfter != 0 && binding.refuses() && binding.RetryAfter != NoTime {
		to = line64(to, "Retry-After", max(seconds(binding.RetryAfter), 1))
	}
	if fields&(fieldsLegacy|fieldsLegacyEpoch) != 0 {
		to = line64(to, "X-RateLimit-Limit", binding.Burst)
		to = line64(to, "X-RateLimit-Remaining", binding.Remaining)
		at := binding.ResetAfter
		if fields&fieldsLegacyEpoch != 0 {
			at = addUpTo(utc, at)
		}
		if binding.ResetAfter != NoTime {
			to = line64(to, "X-RateLimit-Reset", seconds(at))
		}
	}
	switch {
	case fields&fieldsDraft06 != 0:
		permits, _, _ := binding.quota()
		to = line64(to, "RateLimit-Limit", permits)
		to = line64(to, "RateLimit-Remaining", min(binding.Remaining, integerMost))
		to = line64(to, "RateLimit-Reset", binding.more())
		to = unnamedPolicies(to, limits)
	case fields&fieldsDraft07 != 0:
		permits, _, _ := binding.quota()
		to = unnamedPolicies(to, limits)
		to = strconv.AppendUint(append(to, "RateLimit: limit="...), permits, 10)
		to = strconv.AppendUint(append(to, ", remaining="...), min(binding.Remaining, integerMost), 10)
		to = append(strconv.AppendUint(append(to, ", reset="...), binding.more(), 10), "\r\n"...)
	case fields&fieldsDraft11 != 0:
		to = draft11(to, limits)
	}
	return to
}

func draft11(to []byte, limits []HTTPLimit) []byte {
	to = append(to, "RateLimit-Policy: "...)
	for i := range limits {
		permits, window, windowed := limits[i].quota()
		to = parameter(quoted(between(to, i), limits[i].Name), "q", permits)
		if windowed {
			to = parameter(to, "w", window)
		}
		to = partition(to, limits[i].Partition)
	}
	to = append(to, "\r\nRateLimit: "...)
	for i := range limits {
		to = parameter(quoted(between(to, i), limits[i].Name), "r", min(limits[i].Remaining, integerMost))
		if more := limits[i].more(); more != 0 {
			to = parameter(to, "t", more)
		}
		to = partition(to, limits[i].Partition)
	}
	return append(to, "\r\n"...)
}

// AppendProblem appends the body of a refusal's answer.
func AppendProblem(to []byte, status uint64, limits []HTTPLimit) []byte {
	to = append(to, `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too many requests","status":`...)
	to = append(strconv.AppendUint(to, status, 10), `,"violated-policies":[`...)
	first := true
	for i := range limits {
		if limits[i].refuses() {
			if !first {
				to = append(to, ',')
			}
			to, first = quoted(to, limits[i].Name), false
		}
	}
	return append(to, "]}"...)
}

// bindingOf is the limit that binds: of those that refuse the one with the longest wait, otherwise
// the one with the fewest permits left.
func bindingOf(limits []HTTPLimit) *HTTPLimit {
	binding := &limits[0]
	for i := range limits {
		one := &limits[i]
		switch {
		case one.refuses() != binding.refuses():
			if one.refuses() {
				binding = one
			}
		case one.refuses() && one.RetryAfter > binding.RetryAfter, !one.refuses() && one.Remaining < binding.Remaining:
			binding = one
		}
	}
	return binding
}

// unnamedPolicies is RateLimit-Policy as in versions up to 07, where policies have no names.
func unnamedPolicies(to []byte, limits []HTTPLimit) []byte {
	to = append(to, "RateLimit-Policy: "...)
	for i := range limits {
		permits, window, windowed := limits[i].quota()
		to = strconv.AppendUint(between(to, i), permits, 10)
		if windowed {
			to = parameter(to, "w", window)
		}
	}
	return append(to, "\r\n"...)
}

// quota returns the permits and the seconds of a window. The period is rounded up to whole seconds,
// and the permits are scaled to the same rate. A lifetime quota has no window.
func (l *HTTPLimit) quota() (permits, window uint64, windowed bool) {
	if l.Period == Forever {
		return min(l.Limit, integerMost), 0, false
	}
	window = seconds(l.Period)
	// The window is less than a second longer than the period, so the quotient fits after the cut.
	high, low := bits.Mul64(l.Limit, window*second)
	if high >= l.Period {
		return integerMost, min(window, integerMost), true
	}
	permits, _ = bits.Div64(high, low, l.Period)
	return min(permits, integerMost), min(window, integerMost), true
}

// more returns the seconds until more permits are left, at most Retry-After and at least 1; 0 if
// they are unknown.
func (l *HTTPLimit) more() uint64 {
	after := l.MoreAfter
	if l.refuses() {
		after = min(after, l.RetryAfter)
	}
	if after == NoTime {
		return 0
	}
	return min(max(seconds(after), 1), integerMost)
}

// seconds rounds up, so that a client that waits so long does not come too early.
func seconds(nanos uint64) uint64 { return divCeil(nanos, second) }

func between(to []byte, i int) []byte {
	if i != 0 {
		return append(to, ", "...)
	}
	return to
}

func line64(to []byte, name string, value uint64) []byte {
	return append(strconv.AppendUint(append(append(to, name...), ": "...), value, 10), "\r\n"...)
}

func parameter(to []byte, name string, value uint64) []byte {
	return strconv.AppendUint(append(append(append(to, ';'), name...), '='), value, 10)
}

// quoted appends a string of structured fields, which is also a string of JSON.
func quoted(to []byte, name string) []byte {
	to = append(to, '"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			to = append(to, '\\', c)
		case c >= ' ' && c <= '~':
			to = append(to, c)
		default:
			to = append(to, '?')
		}
	}
	return append(to, '"')
}

func partition(to []byte, key string) []byte {
	if key == "" {
		return to
	}
	return append(base64.StdEncoding.AppendEncode(append(to, ";pk=:"...), []byte(key)), ':')
}
