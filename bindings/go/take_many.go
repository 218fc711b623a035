package tollbar

import (
	"fmt"
	"runtime"
	"time"

	"github.com/tollbar/tollbar/bindings/go/internal/guard"
)

// LimitsMost is the most limits that one call of [TakeMany] has.
const LimitsMost = 16

// Limit is one of several limits: a limiter or a key of a table ([Limiter.Limit], [Keys.Limit]) and
// the cost of the request there, or a permit in flight ([InFlight.Limit]).
type Limit struct {
	limiter *Limiter
	table   *Table
	other   otherLimit
	key     string
	class   string
	cost    uint64
	policy  uint32
}

// Limit is the limiter as one of several limits, of which a request takes n permits.
func (l *Limiter) Limit(n uint64) Limit { return Limit{limiter: l, cost: n} }

// Limit is the key under policy 0 as one of several limits, of which a request takes n permits.
func (t *Table) Limit(key string, n uint64) Limit { return t.Under(0).Limit(key, n) }

// Limit is the key as one of several limits, of which a request takes n permits.
func (k Keys) Limit(key string, n uint64) Limit {
	return Limit{table: k.table, policy: k.policy, key: key, cost: n}
}

// Taken is the common answer of several limits.
type Taken struct {
	// Verdict says whether the request may pass. If it may, all limits have been charged, otherwise
	// none.
	Verdict Verdict
	// Reason is the reason of the binding limit.
	Reason Reason
	// Bound is the index of the binding limit. If the request was refused, that is the limit with
	// the longest wait, otherwise the limit with the fewest permits left.
	Bound int
	// Remaining is the smallest number of permits that a limit has left.
	Remaining uint64
	// RetryAfter is the longest wait of all limits. [Forever]: no wait would help, or a limit on
	// permits in flight refused.
	RetryAfter time.Duration
	// ResetAfter is the time until all limits are as good as fresh.
	ResetAfter time.Duration
}

// Allowed reports whether the request may pass.
func (t Taken) Allowed() bool { return t.Verdict == Allowed }

// TakeMany charges each of 1 to [LimitsMost] limits with its cost, or charges none:
//
//	taken, err := tollbar.TakeMany(users.Limit(name, 1), users.Under(perDay).Limit(name, 1), everybody.Limit(1))
//
// It is one call into C, and allocates nothing for keys of up to 1024 bytes together. Each limit
// reads its own clock. With an error nothing has been charged, and the verdict is [Denied].
// tollbar.h ("Several limits in one request") has the guarantee.
func TakeMany(limits ...Limit) (Taken, error) { return takeMany(false, 0, nil, limits) }

// TakeManyEach is [TakeMany], and each gets the decision of each limit. If the request is refused,
// each limit gives the decision that it would make alone. each must have at least as many elements
// as there are limits, otherwise the error is [ErrBufferTooSmall].
func TakeManyEach(each []Decision, limits ...Limit) (Taken, error) {
	if len(each) < len(limits) {
		return noneTaken, ErrBufferTooSmall
	}
	return takeMany(false, 0, each, limits)
}

// TakeManyAt is [TakeManyEach] at the caller's time, which must be on the scale of every limit.
// each may be nil.
func TakeManyAt(now uint64, each []Decision, limits ...Limit) (Taken, error) {
	if each != nil && len(each) < len(limits) {
		return noneTaken, ErrBufferTooSmall
	}
	return takeMany(true, now, each, limits)
}

var noneTaken = Taken{Verdict: Denied, Reason: ReasonFault, RetryAfter: Forever}

func takeMany(at bool, now uint64, each []Decision, limits []Limit) (Taken, error) {
	if len(limits) == 0 || len(limits) > LimitsMost {
		return noneTaken, fmt.Errorf("tollbar: a request has 1 to %d limits, not %d: %w", LimitsMost, len(limits), ErrLimits)
	}
	// Counters of the tables' guards, so that Close cannot free a table meanwhile.
	var entered [LimitsMost]*guard.Count
	wrong, err := -1, error(nil)
	for i := range limits {
		limit := &limits[i]
		named := true
		switch {
		case limit.table != nil:
			entered[i] = limit.table.enter()
		case limit.limiter == nil:
			entered[i], named = limit.other.enter()
		}
		switch {
		case !named:
			wrong, err = i, ErrLimits
		case limit.limiter == nil && entered[i] == nil || limit.limiter != nil && limit.limiter.ended():
			wrong, err = i, ErrClosed
		case limit.limiter != nil && limit.limiter.time != nil && !at:
			wrong, err = i, ErrOptionMismatch
		}
		if err != nil {
			break
		}
	}
	taken := noneTaken
	if err == nil {
		taken, err = takeManyOf(limits, at, now, each)
	} else {
		err = fmt.Errorf("limit %d: %w", wrong, err)
	}
	for _, c := range entered[:len(limits)] {
		if c != nil {
			c.Leave()
		}
	}
	runtime.KeepAlive(limits)
	return taken, err
}
