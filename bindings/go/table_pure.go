//go:build !cgo && !tollbar_purego

package tollbar

// Without cgo tables are in Go, in the memory that processes share (internal/shared). This file has what
// bridge_table.go has with cgo.

import (
	"fmt"
	"math"
	"time"

	"github.com/tollbar/tollbar/bindings/go/internal/core"
	"github.com/tollbar/tollbar/bindings/go/internal/guard"
	"github.com/tollbar/tollbar/bindings/go/internal/shared"
)

// tableHandle is a table.
type tableHandle = *shared.Table

// overridesDefault is the number of keys that may have a policy of their own, if the options do not say it.
const overridesDefault = 1024

// openTable makes a table in memory or opens one in a file. It returns ErrNeedsLibrary for options and policies that
// only the C library has.
func openTable(path string, options *TableOptions, policies []string) (tableHandle, error) {
	if options.HotKeys != 0 {
		return nil, fmt.Errorf("tollbar: a table with hot keys: %w", ErrNeedsLibrary)
	}
	compiled := make([]shared.Policy, len(policies))
	for i, policy := range policies {
		read, algorithm, err := parse(policy)
		if err == nil && options.Clock == ClockWall && algorithm.LastTime() < core.LastTime {
			err = refused(policy, ErrRateTooHigh)
		}
		if err != nil {
			return nil, err
		}
		compiled[i] = shared.Policy{Policy: read, Algorithm: algorithm}
	}
	if options.OnFull > OnFullDeny || options.MissingKey > MissingReport || options.Clock > ClockWall {
		return nil, &TableError{Path: path, Code: ErrOutOfRange}
	}
	of := shared.Options{
		Capacity: options.Capacity, OnFull: uint32(options.OnFull), Missing: uint32(options.MissingKey),
		Clock: uint32(options.Clock),
		Seed:  options.Seed, Overrides: options.Overrides, HugePages: !options.SmallPages,
	}
	if of.Overrides == 0 {
		of.Overrides = overridesDefault
	}
	access := shared.Access{Mode: uint32(options.Mode.Perm()), TrustAnyone: options.TrustAnyone}
	if access.Mode == 0 {
		access.Mode = 0o600
	}
	var table tableHandle
	var wrong *shared.Error
	switch {
	case path == "":
		table, wrong = shared.New(&of, compiled)
	case options.Capacity == 0 && len(policies) == 0:
		table, wrong = shared.Open(path, options.TrustAnyone)
	default:
		table, wrong = shared.OpenOrMake(path, access, &of, compiled)
	}
	switch {
	case wrong == nil:
		return table, nil
	case wrong.Code == core.NeedsLibrary && path != "":
		return nil, fmt.Errorf("tollbar: %s: %s: %w", path, wrong.Needs, ErrNeedsLibrary)
	case wrong.Code == core.NeedsLibrary:
		return nil, fmt.Errorf("tollbar: %s: %w", wrong.Needs, ErrNeedsLibrary)
	}
	return nil, &TableError{Path: path, Code: Code(wrong.Code), Errno: wrong.Errno}
}

// freeTable gives the memory back.
func freeTable(table tableHandle) { table.Free() }

// decidedOf writes the decision on an empty or exempt key, counts it, and returns its code.
func decidedOf(table tableHandle, policy uint32, answer core.Answer, code core.Code, d *Decision) Code {
	if code < 0 {
		return Code(code)
	}
	table.CountDecided(policy, answer)
	if d != nil {
		*d = answered(answer)
	}
	return Code(answer.Verdict)
}

func tableCheck(table tableHandle, policy uint32, key string, n uint64, d *Decision) Code {
	return tableCheckAt(table, policy, key, table.Now(), n, d)
}

func tableCheckAt(table tableHandle, policy uint32, key string, now, n uint64, d *Decision) Code {
	place, answer, found, code := table.Find(policy, key)
	if !found {
		return decidedOf(table, policy, answer, code, d)
	}
	if d == nil {
		verdict, code := place.Take(now, n)
		if code < 0 {
			return Code(code)
		}
		return Code(verdict)
	}
	answer, code = place.TakeFull(now, n)
	*d = answered(answer)
	if code < 0 {
		return Code(code)
	}
	return Code(d.Verdict)
}

func tablePeek(table tableHandle, policy uint32, key string, n uint64, d *Decision) Code {
	return tablePeekAt(table, policy, key, table.Now(), n, d)
}

func tablePeekAt(table tableHandle, policy uint32, key string, now, n uint64, d *Decision) Code {
	place, answer, found, code := table.Find(policy, key)
	if found {
		answer, code = place.PeekFull(now, n)
	}
	*d = answered(answer)
	if code < 0 {
		return Code(code)
	}
	return Code(d.Verdict)
}

// tableTakeNow takes permits that are there. It counts no decision if they are not.
func tableTakeNow(table tableHandle, policy uint32, key string, n uint64) Code {
	now := table.Now()
	var d Decision
	if code := tablePeekAt(table, policy, key, now, n, &d); code != 0 {
		return code
	}
	return tableCheckAt(table, policy, key, now, n, nil)
}

func tableCharge(table tableHandle, policy uint32, key string, n uint64) (uint64, Code) {
	return tableChargeAt(table, policy, key, table.Now(), n)
}

func tableChargeAt(table tableHandle, policy uint32, key string, now, n uint64) (uint64, Code) {
	place, answer, found, code := table.Find(policy, key)
	rest := uint64(0)
	switch {
	case found:
		rest, code = place.Charge(now, n)
	case answer.Verdict != core.Allowed && code == 0:
		rest = n
	}
	return rest, Code(code)
}

func tableTakeUpTo(table tableHandle, policy uint32, key string, most uint64) (uint64, Code) {
	place, answer, found, code := table.Find(policy, key)
	if found {
		taken, code := place.TakeUpTo(table.Now(), most)
		return taken, Code(code)
	}
	if code < 0 {
		return 0, Code(code)
	}
	table.CountDecided(policy, answer)
	if answer.Verdict != core.Allowed {
		most = 0
	}
	return most, 0
}

func tableReserve(table tableHandle, policy uint32, key string, n uint64, patience time.Duration) (Reservation, Code) {
	return tableReserveAt(table, policy, key, table.Now(), n, patience)
}

func tableReserveAt(
	table tableHandle, policy uint32, key string, now, n uint64, patience time.Duration,
) (Reservation, Code) {
	place, answer, found, code := table.Find(policy, key)
	if !found {
		return Reservation{Departs: now}, decidedOf(table, policy, answer, code, nil)
	}
	at, charged, verdict, code := place.Reserve(now, n, latest(now, patience))
	switch {
	case code < 0:
		return Reservation{}, Code(code)
	case verdict != core.Allowed:
		return Reservation{}, Code(verdict)
	}
	return Reservation{Departs: at, Wait: duration(at - now), Cost: charged}, 0
}

func tableCancel(table tableHandle, policy uint32, key string, r Reservation) (uint64, Code) {
	return cancel(table, policy, key, table.Now, r)
}

func tableCancelAt(table tableHandle, policy uint32, key string, now uint64, r Reservation) (uint64, Code) {
	return cancel(table, policy, key, func() uint64 { return now }, r)
}

func cancel(table tableHandle, policy uint32, key string, now func() uint64, r Reservation) (uint64, Code) {
	place, _, found, code := table.Find(policy, key)
	if !found {
		return 0, Code(code)
	}
	back, code := place.Return(core.Charge{At: r.Departs, Cost: r.Cost}, now)
	return back, Code(code)
}

func tableReset(table tableHandle, policy uint32, key string) Code {
	return tableResetAt(table, policy, key, table.Now())
}

func tableResetAt(table tableHandle, policy uint32, key string, now uint64) Code {
	began, code := table.Reset(policy, key, now)
	switch {
	case code < 0:
		return Code(code)
	case !began:
		return ErrDenied
	}
	return 0
}

func tableNow(table tableHandle) (uint64, Code) { return table.Now(), 0 }

func tableGetPolicy(table tableHandle, number uint32) (Policy, Code) {
	policy, code := table.PolicyOf(number)
	if code < 0 {
		return Policy{}, Code(code)
	}
	return policyOf(&policy), 0
}

// moreAfter is the time after d until more permits are left: tollbar.h says how (tollbar_table_more_after).
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
	place, _, found, code := table.Find(policy, key)
	if found {
		now := table.Now()
		*more = moreAfter(place.Policy(), d, n, func(n uint64) core.Answer { return place.PeekUncounted(now, n) })
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
			place, answer, found, code := table.handle.Find(limits[i].policy, limits[i].key)
			if code < 0 {
				return noneTaken, fmt.Errorf("limit %d: %w", i, asError(Code(code)))
			}
			one.Limit, one.Clock = place, table.handle.Now
			if !found {
				one.Limit = fixed{table.handle, limits[i].policy, answer}
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
	place, ok := a.(shared.Place)
	other, too := b.(shared.Place)
	if ok && too {
		return place.Same(other)
	}
	limiter, ok := a.(core.Uncounted)
	another, too := b.(core.Uncounted)
	return ok && too && limiter == another
}

// fixed is a limit with one decision on all requests: that of an empty or exempt key.
type fixed struct {
	table  tableHandle
	policy uint32
	answer core.Answer
}

func (f fixed) Peek(uint64, uint64) core.Answer { return f.answer }

func (f fixed) Check(uint64, uint64) core.Answer { return f.answer }

func (f fixed) GiveBack(core.Charge, func() uint64) uint64 { return 0 }

func (f fixed) Algorithm() core.Algorithm { return core.Closed{} }

func (f fixed) Count(core.Answer) { f.table.CountDecided(f.policy, f.answer) }

func (f fixed) Rank() uint64 { return 0 }
