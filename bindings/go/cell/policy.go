package cell

import (
	"errors"
	"math"
	"time"

	"github.com/tollbar/tollbar/bindings/go/internal/core"
)

// The errors of refused policies.
var (
	// ErrPeriod: the period is not positive.
	ErrPeriod = errors.New("cell: the period is not positive")
	// ErrBurstZero: the burst is 0 and the limit is not. (To deny every request, set the limit to
	// 0.)
	ErrBurstZero = errors.New("cell: the burst is 0")
	// ErrRateTooHigh: more than about 1.6·10^10 permits a second.
	ErrRateTooHigh = errors.New("cell: the rate is higher than a word can count exactly")
	// ErrBurstTooLarge: the burst takes longer to refill than a word can hold.
	ErrBurstTooLarge = errors.New("cell: the burst takes longer to refill than a word can say")
	// ErrInitAboveBurst: init is above the burst.
	ErrInitAboveBurst = errors.New("cell: more initial permits than the burst")
)

// Policy is a compiled token bucket: read-only, for any number of cells and goroutines. Make it
// with [New].
type Policy struct {
	bucket core.Bucket
	// A token bucket. For a limit of 0 it is [core.Closed], which denies everything.
	rule core.Algorithm
	// The least word of a bucket that counts as started: 1 if a fresh cell lacks units, otherwise
	// 0.
	started uint64
}

// New compiles a bucket of burst permits that refills with limit permits per period. A limit of 0
// refuses everything.
//
// The limit is at most some 1.6·10^10 a second and the burst at most what refills within some
// decades; the errors are those of this package. It takes some microseconds: do it once.
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
		return &Policy{bucket: core.Bucket{Last: core.LastTime}, rule: core.Closed{}}, nil
	case burst == 0:
		return nil, ErrBurstZero
	}
	bucket, code := core.NewBucket(&core.Policy{Limit: limit, Period: uint64(period), Burst: burst, Init: init})
	switch code {
	case 0:
	case core.RateTooHigh:
		return nil, ErrRateTooHigh
	default:
		return nil, ErrBurstTooLarge
	}
	p := &Policy{bucket: *bucket}
	p.rule = &p.bucket
	if p.bucket.Lacking != 0 {
		p.started = 1
	}
	return p, nil
}

// LastTime returns the last time at which the policy admits a request: 2^61 - 2 ns for all but the
// fastest policies.
func (p *Policy) LastTime() uint64 { return p.bucket.Last }

// Burst returns the most permits that can be taken at once; 0 for a limit of 0.
func (p *Policy) Burst() uint64 { return p.bucket.Burst }

// describe returns the full decision: verdict was given at now on n permits, and word is the state
// after it.
func (p *Policy) describe(verdict core.Verdict, word, now, n uint64) Decision {
	d := core.Describe(p.rule, verdict, word, now, n)
	return Decision{
		Verdict: Verdict(d.Verdict), Reason: Reason(d.Reason), Remaining: d.Remaining, RetryAfter: wait(d.RetryAfter), ResetAfter: wait(d.ResetAfter),
	}
}

// wait returns nanoseconds as a duration; [Forever] for those above its range.
func wait(nanos uint64) time.Duration {
	if nanos > math.MaxInt64 {
		return Forever
	}
	return time.Duration(nanos)
}
