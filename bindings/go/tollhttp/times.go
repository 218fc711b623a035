package tollhttp

import (
	"math/bits"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// TimesEvery is the number of requests of which [Times] measures one.
const TimesEvery = 1024

const (
	// The bounds of the buckets are 2^timesFirst ns, 2^(timesFirst+1) ns and so on, up to 17 ms.
	timesFirst  = 8
	timesBounds = 17
)

// Times is a histogram of how long a [Limiter] takes for a request: to find its limits and keys, to
// decide, and to write the header fields. The handler's own time is not in it. Of [TimesEvery]
// requests one is measured; the others add to one counter. The zero value is empty. Any number of
// limiters and goroutines may share it.
type Times struct {
	requests, sum atomic.Uint64
	// The requests of each bucket, and last those above all bounds.
	counts [timesBounds + 1]atomic.Uint64
}

// begin returns the time, or the zero time for a request that is not measured.
func (t *Times) begin() (begin time.Time) {
	if t != nil && t.requests.Add(1)%TimesEvery == 1 {
		begin = time.Now()
	}
	return begin
}

// end counts a measured request.
func (t *Times) end(begin time.Time) {
	if begin.IsZero() {
		return
	}
	took := uint64(max(time.Since(begin), 0))
	t.sum.Add(took)
	// The least n with took <= 2^n.
	n := bits.Len64(max(took, 1) - 1)
	t.counts[min(max(n-timesFirst, 0), timesBounds)].Add(1)
}

// AppendMetrics appends the histogram as text for Prometheus: tollbar_decision_nanoseconds, with
// the label limit. It goes before the text of [tollbar.AppendMetrics], which may end with "# EOF".
// Requests that are measured meanwhile may be in a part of the lines.
func (t *Times) AppendMetrics(to []byte, limit string) []byte {
	const name = "tollbar_decision_nanoseconds"
	label := "{limit=\"" + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(limit) + `"`
	to = append(
		to,
		"# HELP "+name+" Time of the limiter for a request, of one in "+strconv.Itoa(TimesEvery)+" requests.\n"+
			"# TYPE "+name+" histogram\n"...)
	line := func(suffix, labels string, value uint64) {
		to = append(strconv.AppendUint(append(to, name+suffix+labels+"} "...), value, 10), '\n')
	}
	var count uint64
	for n := range t.counts {
		count += t.counts[n].Load()
		bound := "+Inf"
		if n < timesBounds {
			bound = strconv.Itoa(1 << (n + timesFirst))
		}
		line("_bucket", label+`,le="`+bound+`"`, count)
	}
	line("_sum", label, t.sum.Load())
	line("_count", label, count)
	return to
}
