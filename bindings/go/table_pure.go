//go:build !cgo && !tollbar_purego

package tollbar

// Without the library tables are in Go, in the memory of this process (internal/local). This file
// has what bridge_table.go has with the library.

import (
	"fmt"
	"math"
	"time"

	"github.com/tollbar/tollbar/bindings/go/internal/core"
	"github.com/tollbar/tollbar/bindings/go/internal/guard"
	"github.com/tollbar/tollbar/bindings/go/internal/local"
)

// tableHandle is a table and its clock.
type tableHandle = *clockedTable

type clockedTable struct {
	*local.Table
	clock Clock
}

// openTable makes a table in memory. It returns ErrNeedsLibrary for a file, and for options and
// policies that only the C library has.
func openTable(path string, options *TableOptions, policies []string) (tableHandle, error) {
	switch {
	case path != "":
		return nil, fmt.Errorf("tollbar: %s: a table in a file: %w", path, ErrNeedsLibrary)
	case options.HotKeys != 0:
		return nil, fmt.Errorf("tollbar: a table with hot keys: %w", ErrNeedsLibrary)
	case options.Room != 0:
		return nil, fmt.Errorf("tollbar: a table with room: %w", ErrNeedsLibrary)
	}
	compiled := make([]local.Policy, len(policies))
	for i, policy := range policies {
		read, algorithm, err := parse(policy)
		if err == nil && options.Clock == ClockWall && algorithm.LastTime() < core.LastTime {
			err = refused(policy, ErrRateTooHigh)
		}
		if err != nil {
			return nil, err
		}
		compiled[i] = local.Policy{Policy: read, Algorithm: algorithm}
	}
	if options.OnFull > OnFullDeny || options.MissingKey > MissingReport || options.Clock > ClockWall {
		return nil, &TableError{Code: ErrOutOfRange}
	}
	of := local.Options{Capacity: options.Capacity, OnFull: uint32(options.OnFull), Missing: uint32(options.MissingKey)}
	table, code := local.New(of, compiled)
	if code != 0 {
		return nil, &TableError{Code: Code(code)}
	}
	return &clockedTable{table, options.Clock}, nil
}

// freeTable does nothing: the garbage collector frees the table.
func freeTable(tableHandle) {}

// decidedOf writes the decision on an empty key, and returns its code.
func decidedOf(answer core.Answer, code core.Code, d *Decision) Code {
	if code < 0 {
		return Code(code)
	}
	if d != nil {
		*d = answered(answer)
	}
	return Code(answer.Verdict)
}

func tableCheck(table tableHandle, policy uint32, key string, n uint64, d *Decision) Code {
	return tableCheckAt(table, policy, key, table.clock.now(), n, d)
}

func tableCheckAt(table tableHandle, policy uint32, key string, now, n uint64, d *Decision) Code {
	of, answer, found, code := table.Find(policy, key)
	switch {
	case !found:
		return decidedOf(answer, code, d)
	case d == nil:
		return Code(of.Take(now, n))
	}
	*d = answered(of.Check(now, n))
	return Code(d.Verdict)
}

func tablePeek(table tableHandle, policy uint32, key string, n uint64, d *Decision) Code {
	return tablePeekAt(table, policy, key, table.clock.now(), n, d)
}

func tablePeekAt(table tableHandle, policy uint32, key string, now, n uint64, d *Decision) Code {
	of, answer, found, code := table.Find(policy, key)
	if found {
		answer = of.Peek(now, n)
	}
	return decidedOf(answer, code, d)
}

// tableTakeNow takes permits that are there.
func tableTakeNow(table tableHandle, policy uint32, key string, n uint64) Code {
	now := table.clock.now()
	var d Decision
	if code := tablePeekAt(table, policy, key, now, n, &d); code != 0 {
		return code
	}
	return tableCheckAt(table, policy, key, now, n, nil)
}

func tableCharge(table tableHandle, policy uint32, key string, n uint64) (uint64, Code) {
	return tableChargeAt(table, policy, key, table.clock.now(), n)
}

func tableChargeAt(table tableHandle, policy uint32, key string, now, n uint64) (uint64, Code) {
	of, answer, found, code := table.Find(policy, key)
	switch {
	case found:
		return of.Charge(now, n), 0
	case answer.Verdict != core.Allowed && code == 0:
		return n, 0
	}
	return 0, Code(code)
}

func tableTakeUpTo(table tableHandle, policy uint32, key string, most uint64) (uint64, Code) {
	of, answer, found, code := table.Find(policy, key)
	switch {
	case found:
		return of.TakeUpTo(table.clock.now(), most), 0
	case code < 0 || answer.Verdict != core.Allowed:
		return 0, Code(code)
	}
	return most, 0
}

func tableReserve(table tableHandle, policy uint32, key string, n uint64, patience time.Duration) (Reservation, Code) {
	return tableReserveAt(table, policy, key, table.clock.now(), n, patience)
}

func tableReserveAt(
	table tableHandle, policy uint32, key string, now, n uint64, patience time.Duration,
) (Reservation, Code) {
	of, answer, found, code := table.Find(policy, key)
	if !found {
		return Reservation{Departs: now}, decidedOf(answer, code, nil)
	}
	at, charged, verdict := of.Reserve(now, n, latest(now, patience))
	if verdict != core.Allowed {
		return Reservation{}, Code(verdict)
	}
	return Reservation{Departs: at, Wait: duration(at - now), Cost: charged}, 0
}

func tableCancel(table tableHandle, policy uint32, key string, r Reservation) (uint64, Code) {
	return cancel(table, policy, key, table.clock.now, r)
}

func tableCancelAt(table tableHandle, policy uint32, key string, now uint64, r Reservation) (uint64, Code) {
	return cancel(table, policy, key, func() uint64 { return now }, r)
}

func cancel(table tableHandle, policy uint32, key string, now func() uint64, r Reservation) (uint64, Code) {
	of, _, found, code := table.Find(policy, key)
	if !found {
		return 0, Code(code)
	}
	return of.GiveBack(core.Charge{At: r.Departs, Cost: r.Cost}, now), 0
}

func tableReset(table tableHandle, policy uint32, key string) Code {
	return tableResetAt(table, policy, key, table.clock.now())
}

func tableResetAt(table tableHandle, policy uint32, key string, now uint64) Code {
	if _, code := table.PolicyOf(policy); code < 0 {
		return Code(code)
	}
	// The table holds no empty key.
	if of, _, found, _ := table.Find(policy, key); found {
		of.Reset(now)
	}
	return 0
}

func tableNow(table tableHandle) (uint64, Code) { return table.clock.now(), 0 }

func tableGetPolicy(table tableHandle, number uint32) (Policy, Code) {
	policy, code := table.PolicyOf(number)
	if code < 0 {
		return Policy{}, Code(code)
	}
	return policyOf(&policy), 0
}

// moreAfter is the time after d until more permits are left: tollbar.h says how
// (tollbar_table_more_after).
func moreAfter(policy *core.Policy, d *Decision, n uint64, peek func(n uint64) core.Answer) uint64 {
	refused := d.Verdict != Allowed
	more := d.Remaining + 1
	switch {
	case refused && more == n && more != 0:
		return waitOf(d.RetryAfter)
	// A fresh bucket with `init` still gets permits.
	case d.ResetAfter == 0 && d.Remaining >= policy.Burst ||
		d.Remaining != 0 && (policy.Borrow || lending>>policy.Kind&1 != 0) || more == 0:
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
	of, _, found, code := table.Find(policy, key)
	if found {
		now := table.clock.now()
		*more = moreAfter(of.Policy(), d, n, func(n uint64) core.Answer { return of.PeekUncounted(now, n) })
	}
	return Code(code)
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
			key, answer, found, code := table.handle.Find(limits[i].policy, limits[i].key)
			if code < 0 {
				return noneTaken, fmt.Errorf("limit %d: %w", i, asError(Code(code)))
			}
			one.Limit, one.Clock = key, table.handle.clock.now
			if !found {
				one.Limit = fixed{answer}
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
		Verdict: d.Verdict, Reason: d.Reason, Bound: parts[taken.Bound].Index,
		Remaining: d.Remaining, RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter,
	}, nil
}

// sameLimit reports whether both are one limit, whose costs add up.
func sameLimit(a, b core.Limit) bool {
	key, ok := a.(local.Key)
	other, too := b.(local.Key)
	if ok && too {
		return key == other
	}
	limiter, ok := a.(core.Uncounted)
	another, too := b.(core.Uncounted)
	return ok && too && limiter == another
}

// fixed is a limit with one decision on all requests: that of an empty key.
type fixed struct{ answer core.Answer }

func (f fixed) Peek(uint64, uint64) core.Answer { return f.answer }

func (f fixed) Check(uint64, uint64) core.Answer { return f.answer }

func (f fixed) GiveBack(core.Charge, func() uint64) uint64 { return 0 }

func (f fixed) Algorithm() core.Algorithm { return core.Closed{} }

func (fixed) Count(core.Answer) {}

func (f fixed) Rank() uint64 { return 0 }
