//go:build cgo

package tollbar

import (
	"fmt"
	"runtime"
	"time"

	"github.com/tollbar/tollbar/bindings/go/internal/guard"
)

// LimitsMost is the most limits that one call of [TakeMany] has.
const LimitsMost = 16

// Limit is one limit of several, and what the request costs there: a limiter, or a key of a table ([Limiter.Limit], [Keys.Limit]).
type Limit struct {
	limiter *Limiter
	table   *Table
	key     string
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

// Taken is the answer of several limits.
type Taken struct {
	// Verdict says whether the request may pass: then all limits have been charged, otherwise none.
	Verdict Verdict
	// Reason is that of the limit that bound.
	Reason Reason
	// Bound is the index of the limit that bound: of a refusal the one with the longest wait, of an admission the one with the fewest
	// permits left.
	Bound int
	// Remaining is the smallest number of permits that a limit has left.
	Remaining uint64
	// RetryAfter is the longest wait of all limits; [Forever] if no wait would help.
	RetryAfter time.Duration
	// ResetAfter is the time until all limits are as good as fresh.
	ResetAfter time.Duration
}

// Allowed says whether the request may pass.
func (t Taken) Allowed() bool { return t.Verdict == Allowed }

// TakeMany takes the cost of each limit, 1 to [LimitsMost] of them, or nothing from any:
//
//	taken, err := tollbar.TakeMany(users.Limit(name, 1), users.Under(perDay).Limit(name, 1), everybody.Limit(1))
//
// It is one call into C, and allocates nothing for keys of up to 1024 bytes together. Each limit reads its own clock. With an error
// nothing has been charged, and the verdict is [Denied]. tollbar.h ("Several limits in one request") says what holds beside other calls.
func TakeMany(limits ...Limit) (Taken, error) { return takeMany(false, 0, nil, limits) }

// TakeManyEach is [TakeMany], and each gets what each limit decides, or, of a refused request, would. It has at least as many elements
// as there are limits; with fewer it is [ErrBufferTooSmall].
func TakeManyEach(each []Decision, limits ...Limit) (Taken, error) {
	if len(each) < len(limits) {
		return noneTaken, ErrBufferTooSmall
	}
	return takeMany(false, 0, each, limits)
}

// TakeManyAt is [TakeManyEach] at the caller's time, which is one of all limits' scales. each may be nil.
func TakeManyAt(now uint64, each []Decision, limits ...Limit) (Taken, error) {
	if each != nil && len(each) < len(limits) {
		return noneTaken, ErrBufferTooSmall
	}
	return takeMany(true, now, each, limits)
}

var noneTaken = Taken{Verdict: Denied, Reason: ReasonFault, RetryAfter: Forever}

// limitItem is a limit as C sees it, as go_limit. Its key ends at end of the call's bytes and begins where the one before ended.
type limitItem struct {
	limiter, table uintptr
	end, cost      uint64
	policy         uint32
	reserved       uint32
}

func takeMany(at bool, now uint64, each []Decision, limits []Limit) (Taken, error) {
	if len(limits) == 0 || len(limits) > LimitsMost {
		return noneTaken, fmt.Errorf("tollbar: a request has 1 to %d limits, not %d: %w", LimitsMost, len(limits), ErrLimits)
	}
	var (
		items [LimitsMost]limitItem
		usual [1024]byte
		// Counters of the tables' guards, so that Close cannot take a table away.
		entered [LimitsMost]*guard.Count
	)
	keys := usual[:0]
	wrong, err := -1, error(nil)
	for i := range limits {
		limit := &limits[i]
		keys = append(keys, limit.key...)
		items[i] = limitItem{end: uint64(len(keys)), cost: limit.cost, policy: limit.policy}
		switch {
		case limit.table != nil:
			entered[i] = limit.table.guard.Enter()
			items[i].table = limit.table.handle
			if entered[i] == nil {
				wrong, err = i, ErrClosed
			}
		case limit.limiter == nil:
			wrong, err = i, ErrLimits
		case limit.limiter.closed.Load():
			wrong, err = i, ErrClosed
		default:
			items[i].limiter = limit.limiter.handle
		}
		if err != nil {
			break
		}
	}
	taken := noneTaken
	if err == nil {
		taken, err = takeManyOf(items[:len(limits)], keys, at, now, each)
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
