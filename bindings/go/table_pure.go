//go:build !cgo

package tollbar

// Without cgo tables are in the memory of this process (internal/core). This file has what bridge_table.go has with cgo.

import (
	"fmt"
	"math"
	"time"

	"github.com/tollbar/tollbar/bindings/go/internal/core"
	"github.com/tollbar/tollbar/bindings/go/internal/guard"
)

// tableHandle is a table and its options.
type tableHandle = *keyed

type keyed struct {
	*core.Table
	clock   Clock
	missing MissingKey
}

// openTable makes a table in memory. A table that others share, and what else only the library has, is ErrNeedsLibrary.
func openTable(path string, options *TableOptions, policies []string) (tableHandle, error) {
	needs := ""
	switch {
	case path != "":
		needs = "a table in a file"
	case options.Seed != nil:
		needs = "a table with a given seed"
	case options.HotKeys != 0:
		needs = "a table with hot keys"
	case options.Overrides != 0:
		needs = "a table with overrides"
	}
	if needs != "" {
		return nil, fmt.Errorf("tollbar: %s: %w", needs, ErrNeedsLibrary)
	}
	compiled := make([]*core.TablePolicy, len(policies))
	for i, policy := range policies {
		read, algorithm, err := parse(policy)
		if err == nil && options.Clock == ClockWall && algorithm.LastTime() < core.LastTime {
			err = refused(policy, ErrRateTooHigh)
		}
		if err != nil {
			return nil, err
		}
		compiled[i] = &core.TablePolicy{Policy: read, Algorithm: algorithm}
	}
	switch {
	case len(policies) == 0 || len(policies) > policiesMost:
		return nil, &TableError{Code: ErrPolicyCount}
	case options.OnFull > OnFullDeny || options.MissingKey > MissingReport || options.Clock > ClockWall:
		return nil, &TableError{Code: ErrOutOfRange}
	case options.Capacity == 0:
		return nil, &TableError{Code: ErrCapacity}
	}
	table, ok := core.NewTable(options.Capacity, core.OnFull(options.OnFull), compiled)
	if !ok {
		return nil, &TableError{Code: ErrCapacity}
	}
	return &keyed{table, options.Clock, options.MissingKey}, nil
}

// policiesMost is the most policies of a table.
const policiesMost = 128

// freeTable does nothing: the garbage collector frees the memory.
func freeTable(tableHandle) {}

// find finds a key's place. Where the key is empty or the policy is none, it writes the decision and returns its code.
func (t *keyed) find(policy uint32, key string, d *Decision) (place core.Place, found bool, code Code) {
	var unused Decision
	if d == nil {
		d = &unused
	}
	switch {
	case t.Policy(policy) == nil:
		return place, false, ErrNoSuchPolicy
	case key != "":
		return t.Place(policy, key), true, 0
	case t.missing == MissingAllow:
		*d = Decision{Verdict: Allowed, Reason: ReasonMissingKey, Remaining: math.MaxUint64}
		return place, false, 0
	case t.missing == MissingReport:
		return place, false, ErrMissingKey
	}
	*d = Decision{Verdict: Denied, Reason: ReasonMissingKey, RetryAfter: Forever, ResetAfter: Forever}
	return place, false, ErrDenied
}

func tableCheck(table tableHandle, policy uint32, key string, n uint64, d *Decision) Code {
	return tableCheckAt(table, policy, key, table.clock.now(), n, d)
}

func tableCheckAt(table tableHandle, policy uint32, key string, now, n uint64, d *Decision) Code {
	place, found, code := table.find(policy, key, d)
	if !found {
		return code
	}
	if d == nil {
		return Code(place.Take(now, n))
	}
	*d = answered(place.Check(now, n))
	return Code(d.Verdict)
}

func tablePeek(table tableHandle, policy uint32, key string, n uint64, d *Decision) Code {
	return tablePeekAt(table, policy, key, table.clock.now(), n, d)
}

func tablePeekAt(table tableHandle, policy uint32, key string, now, n uint64, d *Decision) Code {
	place, found, code := table.find(policy, key, d)
	if found {
		*d = answered(place.Peek(now, n))
		code = Code(d.Verdict)
	}
	return code
}

func tableCharge(table tableHandle, policy uint32, key string, n uint64) (uint64, Code) {
	return tableChargeAt(table, policy, key, table.clock.now(), n)
}

func tableChargeAt(table tableHandle, policy uint32, key string, now, n uint64) (uint64, Code) {
	place, found, code := table.find(policy, key, nil)
	switch {
	case found:
		return place.Charge(now, n), 0
	case code == ErrDenied:
		return n, 0
	}
	return 0, min(code, 0)
}

func tableTakeUpTo(table tableHandle, policy uint32, key string, most uint64) (uint64, Code) {
	place, found, code := table.find(policy, key, nil)
	switch {
	case found:
		return place.TakeUpTo(table.clock.now(), most), 0
	case code == 0:
		return most, 0
	}
	return 0, min(code, 0)
}

func tableReserve(table tableHandle, policy uint32, key string, n uint64, patience time.Duration) (Reservation, Code) {
	now := table.clock.now()
	place, found, code := table.find(policy, key, nil)
	if !found {
		return Reservation{Departs: now}, code
	}
	at, charged, verdict := place.Reserve(now, n, latest(now, patience))
	if verdict != core.Allowed {
		return Reservation{}, Code(verdict)
	}
	return Reservation{Departs: at, Wait: duration(at - now), Cost: charged}, 0
}

func tableCancel(table tableHandle, policy uint32, key string, r Reservation) (uint64, Code) {
	place, found, code := table.find(policy, key, nil)
	if !found {
		return 0, min(code, 0)
	}
	return place.GiveBack(core.Charge{At: r.Departs, Cost: r.Cost}, table.clock.now), 0
}

func tableReset(table tableHandle, policy uint32, key string) Code {
	place, found, code := table.find(policy, key, nil)
	if !found {
		return min(code, 0)
	}
	if place.Reset(table.clock.now()) {
		return 0
	}
	return ErrDenied
}

func tableNow(table tableHandle) (uint64, Code) { return table.clock.now(), 0 }

func tableGetPolicy(table tableHandle, number uint32) (Policy, Code) {
	policy := table.Policy(number)
	if policy == nil {
		return Policy{}, ErrNoSuchPolicy
	}
	return policyOf(&policy.Policy), 0
}

// moreAfter is the time after d until more permits are left: tollbar.h says how (tollbar_table_more_after).
func moreAfter(policy *core.Policy, d *Decision, n uint64, peek func(n uint64) core.Answer) uint64 {
	refused := d.Verdict != Allowed
	more := d.Remaining + 1
	switch {
	case refused && more == n && more != 0:
		return waitOf(d.RetryAfter)
	case d.ResetAfter == 0 || d.Remaining != 0 && (policy.Borrow || Algorithm(policy.Kind) == Pacer) || more == 0:
		return math.MaxUint64
	}
	after := uint64(1)
	switch peeked := peek(more); peeked.Verdict {
	case core.Never:
		return math.MaxUint64
	case core.Denied:
		after = peeked.RetryAfter
	}
	if refused {
		after = min(after, waitOf(d.RetryAfter))
	}
	return after
}

// waitOf is the time of a decision in nanoseconds.
func waitOf(d time.Duration) uint64 {
	if d == Forever {
		return math.MaxUint64
	}
	return uint64(d)
}

func tableMore(table tableHandle, policy uint32, key string, n uint64, d *Decision, more *uint64) Code {
	place, found, code := table.find(policy, key, nil)
	if found {
		now := table.clock.now()
		*more = moreAfter(&table.Policy(policy).Policy, d, n, func(n uint64) core.Answer { return place.Peek(now, n) })
	}
	return min(code, 0)
}

// ---- several limits ----

// otherLimit stands for limits that only the library has.
type otherLimit struct{}

func (otherLimit) enter() (*guard.Count, bool) { return nil, false }

func takeManyOf(limits []Limit, at bool, now uint64, each []Decision) (Taken, error) {
	var room [LimitsMost]core.Part
	parts := room[:0]
	of := [LimitsMost]int{}
	for i := range limits {
		one := core.Part{Index: i, Cost: limits[i].cost, Now: now}
		if table := limits[i].table; table != nil {
			var d Decision
			place, found, code := table.handle.find(limits[i].policy, limits[i].key, &d)
			if code < 0 {
				return noneTaken, fmt.Errorf("limit %d: %w", i, code)
			}
			one.Limit, one.Clock = place, table.handle.clock.now
			if !found {
				one.Limit = fixed(d)
			}
		} else {
			one.Limit, one.Clock = core.Uncounted{Limiter: limits[i].limiter.handle.Limiter}, limits[i].limiter.handle.clock.now
		}
		if at {
			one.Clock = func() uint64 { return now }
		} else {
			one.Now = one.Clock()
		}
		of[i] = len(parts)
		for j := range parts {
			if sameLimit(parts[j].Limit, one.Limit) {
				of[i] = j
			}
		}
		if of[i] < len(parts) {
			sum := parts[of[i]].Cost + one.Cost
			parts[of[i]].Cost = max(sum, one.Cost)
			if sum < one.Cost {
				parts[of[i]].Cost = math.MaxUint64
			}
			continue
		}
		parts = append(parts, one)
	}
	taken := core.TakeAll(parts)
	for i := range limits {
		if each != nil {
			each[i] = answered(parts[of[i]].Decided)
		}
	}
	d := answered(taken.Answer)
	return Taken{
		Verdict: d.Verdict, Reason: d.Reason, Bound: parts[taken.Bound].Index, Remaining: d.Remaining, RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter,
	}, nil
}

// sameLimit reports whether both are one limit, whose costs add up.
func sameLimit(a, b core.Limit) bool {
	place, ok := a.(core.Place)
	other, too := b.(core.Place)
	if ok && too {
		return place.Same(other)
	}
	limiter, ok := a.(core.Uncounted)
	another, too := b.(core.Uncounted)
	return ok && too && limiter == another
}

// fixed is a limit with one decision on all requests: that of an empty key.
type fixed Decision

func (f fixed) Peek(uint64, uint64) core.Answer {
	return core.Answer{
		Verdict: core.Verdict(f.Verdict), Reason: uint32(f.Reason), Remaining: f.Remaining, RetryAfter: waitOf(f.RetryAfter), ResetAfter: waitOf(f.ResetAfter),
	}
}

func (f fixed) Check(now, cost uint64) core.Answer { return f.Peek(now, cost) }

func (f fixed) GiveBack(core.Charge, func() uint64) uint64 { return 0 }

func (f fixed) Algorithm() core.Algorithm { return core.Closed{} }
