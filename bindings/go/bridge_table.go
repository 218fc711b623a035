//go:build cgo || tollbar_purego

package tollbar

// The calls into C for tables. Callers hold the table's guard, so Close cannot free the table
// meanwhile.

import (
	"runtime"
	"time"
	"unsafe"

	"github.com/tollbar/tollbar/bindings/go/internal/guard"
)

// tableHandle is a table in C.
type tableHandle = uintptr

// openTable opens the table at path, or makes one in memory if path is empty.
func openTable(path string, options *TableOptions, policies []string) (uintptr, error) {
	specs := make([]tollbar_policy_spec, len(policies))
	for i, policy := range policies {
		spec, err := parse(policy)
		if err != nil {
			return 0, err
		}
		specs[i] = spec
	}
	o := tollbar_table_options{
		struct_size: uint32(unsafe.Sizeof(tollbar_table_options{})),
		on_full:     uint32(options.OnFull),
		capacity:    options.Capacity,
		missing_key: uint32(options.MissingKey),
		clock:       uint32(options.Clock),
		mode:        uint32(options.Mode.Perm()),
		hot_keys:    options.HotKeys,
		overrides:   options.Overrides,
		room:        options.Room,
	}
	if options.Seed != nil {
		o.seed = *options.Seed
		o.flags |= tollbar_table_has_seed
	}
	if options.SmallPages {
		o.flags |= tollbar_table_small_pages
	}
	if options.TrustAnyone {
		o.flags |= tollbar_table_trust_anyone
	}
	if path != "" && options.Capacity == 0 && len(policies) == 0 {
		o = tollbar_table_options{struct_size: o.struct_size, mode: o.mode,
			flags: o.flags & tollbar_table_trust_anyone, hot_keys: o.hot_keys}
	}
	var table uintptr
	code, errno := cTableOpen(path, &o, specs, &table)
	if Code(code) == needsLibraryCode {
		return 0, libraryError()
	}
	if code != 0 {
		return 0, &TableError{Path: path, Code: Code(code), Errno: reasonOf(Code(code), errno)}
	}
	return uintptr(table), nil
}

func freeTable(table uintptr) { cTableFree(table) }

func tableCheck(table uintptr, policy uint32, key string, n uint64, d *Decision) Code {
	if now, ok := bubbleTime(); ok {
		if d == nil {
			d = new(Decision)
		}
		return tableCheckAt(table, policy, key, now, n, d)
	}
	if d == nil {
		return Code(cTableCheck(table, policy, key, n, nil))
	}
	out := newDecision()
	code := cTableCheck(table, policy, key, n, &out)
	*d, _ = decided(code, &out)
	return Code(code)
}

func tableCheckAt(table uintptr, policy uint32, key string, now, n uint64, d *Decision) Code {
	out := newDecision()
	code := cTableCheckAt(table, policy, key, now, n, &out)
	*d, _ = decided(code, &out)
	return Code(code)
}

func tablePeek(table uintptr, policy uint32, key string, n uint64, d *Decision) Code {
	if now, ok := bubbleTime(); ok {
		return tablePeekAt(table, policy, key, now, n, d)
	}
	out := newDecision()
	code := cTablePeek(table, policy, key, n, &out)
	*d, _ = decided(code, &out)
	return Code(code)
}

func tablePeekAt(table uintptr, policy uint32, key string, now, n uint64, d *Decision) Code {
	out := newDecision()
	code := cTablePeekAt(table, policy, key, now, n, &out)
	*d, _ = decided(code, &out)
	return Code(code)
}

func tableCharge(table uintptr, policy uint32, key string, n uint64) (uint64, Code) {
	if now, ok := bubbleTime(); ok {
		return tableChargeAt(table, policy, key, now, n)
	}
	var rest uint64
	code := cTableCharge(table, policy, key, n, &rest)
	return rest, Code(code)
}

func tableChargeAt(table uintptr, policy uint32, key string, now, n uint64) (uint64, Code) {
	var rest uint64
	code := cTableChargeAt(table, policy, key, now, n, &rest)
	return rest, Code(code)
}

func tableTakeUpTo(table uintptr, policy uint32, key string, most uint64) (uint64, Code) {
	if now, ok := bubbleTime(); ok {
		var d Decision
		if code := tablePeekAt(table, policy, key, now, 0, &d); code < 0 {
			return 0, code
		}
		n := min(d.Remaining, most)
		if code := tableCheckAt(table, policy, key, now, n, &d); code < 0 || d.Verdict != Allowed {
			return 0, min(code, 0)
		}
		return n, 0
	}
	var taken uint64
	code := cTableTake(table, policy, key, most, &taken)
	if code != 0 {
		taken = 0
	}
	return taken, Code(code)
}

// tableTakeNow takes permits that are there. It counts no decision if they are not.
func tableTakeNow(table tableHandle, policy uint32, key string, n uint64) Code {
	if now, ok := bubbleTime(); ok {
		var d Decision
		if code := tablePeekAt(table, policy, key, now, n, &d); code != 0 {
			return code
		}
		return tableCheckAt(table, policy, key, now, n, &d)
	}
	return Code(cTableTakeNow(table, policy, key, n))
}

func tableReserve(table uintptr, policy uint32, key string, n uint64, patience time.Duration) (Reservation, Code) {
	if now, ok := bubbleTime(); ok {
		return tableReserveAt(table, policy, key, now, n, patience)
	}
	var booked tollbar_reservation
	code := cTableReserve(table, policy, key, n, nanoseconds(patience), &booked)
	return reservation(code, &booked)
}

func tableCancel(table uintptr, policy uint32, key string, r Reservation) (uint64, Code) {
	if now, ok := bubbleTime(); ok {
		return tableCancelAt(table, policy, key, now, r)
	}
	booked := tollbar_reservation{departs_ns: r.Departs, cost: r.Cost}
	var back uint64
	code := cTableCancel(table, policy, key, &booked, &back)
	return back, Code(code)
}

func tableReserveAt(table uintptr, policy uint32, key string, now, n uint64,
	patience time.Duration) (Reservation, Code) {
	var booked tollbar_reservation
	code := cTableReserveAt(table, policy, key, now, n, nanoseconds(patience), &booked)
	return reservation(code, &booked)
}

func tableCancelAt(table uintptr, policy uint32, key string, now uint64, r Reservation) (uint64, Code) {
	booked := tollbar_reservation{departs_ns: r.Departs, cost: r.Cost}
	var back uint64
	code := cTableCancelAt(table, policy, key, now, &booked, &back)
	return back, Code(code)
}

func tableHash(table uintptr, policy uint32, key string) (uint64, Code) {
	var hash uint64
	code := cTableHash(table, policy, key, &hash)
	return hash, Code(code)
}

func tableReset(table uintptr, policy uint32, key string) Code {
	if now, ok := bubbleTime(); ok {
		return tableResetAt(table, policy, key, now)
	}
	return Code(cTableReset(table, policy, key))
}

func tableResetAt(table uintptr, policy uint32, key string, now uint64) Code {
	return Code(cTableResetAt(table, policy, key, now))
}

func tableExempt(table uintptr, policy uint32, key string) Code {
	return Code(cTableExempt(table, policy, key))
}

func tableUnexempt(table uintptr, policy uint32, key string) Code {
	return Code(cTableUnexempt(table, policy, key))
}

func tableMany(table uintptr, at bool, now uint64, b *Batch) Code {
	if len(b.items) == 0 {
		return 0
	}
	at, now = timeOf(at, now)
	return Code(cTableMany(table, at, now, b.keys, b.items, b.verdicts))
}

// manyInC decides rounds times on one batch of at most 128 requests, in one call. A benchmark
// compares [Table.CheckMany] with it.
func manyInC(t *Table, b *Batch, rounds int) Code {
	b.verdicts = make([]Verdict, len(b.items))
	defer runtime.KeepAlive(t)
	return Code(cTableManyInC(t.handle, b.keys, b.items, b.verdicts, rounds))
}

// limitItem is a limit, which C reads as go_limit. Its key ends at offset end of the call's bytes
// and begins where the one before ended.
type limitItem struct {
	limiter, table uintptr
	end, cost      uint64
	policy, most   uint32
	inFlight       uintptr
	ticket         uint64
	class          className
}

// otherLimit is a permit in flight as one of several limits. The zero value is no limit.
type otherLimit struct {
	inFlight *InFlight
	// The caller's ticket, which only an admitted request writes: until then it may be that of an
	// earlier request, which is still to be released. The first is nil for a learned limit, and the
	// second for a limit of the caller's.
	ticket  *Ticket
	learned *AdaptiveKeyTicket
	by      *Adaptive
	most    uint32
}

// enter enters the guard of the in-flight table; nil if it is closed. False: this is no limit.
func (l otherLimit) enter() (c *guard.Count, named bool) {
	if l.inFlight == nil || l.ticket == nil && l.learned == nil {
		return nil, false
	}
	return l.inFlight.guard.Enter(), true
}

// admit gives the caller the ticket of an admitted request.
func (l *otherLimit) admit(key string, bits uint64) {
	ticket := Ticket{l.inFlight, bits}
	if l.learned != nil {
		*l.learned = AdaptiveKeyTicket{l.by, key, ticket}
		return
	}
	*l.ticket = ticket
}

func takeManyOf(limits []Limit, at bool, now uint64, each []Decision) (Taken, error) {
	var (
		all   [LimitsMost]limitItem
		usual [1024]byte
	)
	items, keys := all[:len(limits)], usual[:0]
	for i := range limits {
		limit := &limits[i]
		keys = append(keys, limit.key...)
		items[i] = limitItem{end: uint64(len(keys)), cost: limit.cost, policy: limit.policy,
			most: limit.other.most, class: nameOf(limit.class)}
		switch {
		case limit.table != nil:
			items[i].table = limit.table.handle
		case limit.limiter != nil:
			items[i].limiter = limit.limiter.handle
		default:
			items[i].inFlight = limit.other.inFlight.handle
		}
	}
	at, now = timeOf(at, now)
	taken := tollbar_taken{struct_size: uint32(unsafe.Sizeof(tollbar_taken{}))}
	var decisions [LimitsMost]tollbar_decision
	var first *tollbar_decision
	if each != nil {
		decisions[0] = newDecision()
		first = &decisions[0]
	}
	code := cTakeMany(keys, items, at, now, first, &taken)
	if code < 0 {
		return noneTaken, Code(code)
	}
	for i := range limits {
		if flight := &limits[i].other; code == 0 && flight.inFlight != nil {
			flight.admit(limits[i].key, items[i].ticket)
		}
	}
	if each != nil {
		for i := range items {
			each[i], _ = decided(int32(decisions[i].verdict), &decisions[i])
		}
	}
	return Taken{
		Verdict: Verdict(code), Reason: Reason(taken.reason), Bound: int(taken.bound),
		Remaining:  taken.remaining,
		RetryAfter: duration(taken.retry_after_ns), ResetAfter: duration(taken.reset_after_ns),
	}, nil
}

func tableNow(table uintptr) (uint64, Code) {
	if now, ok := bubbleTime(); ok {
		return now, 0
	}
	var now uint64
	code := cTableNow(table, &now)
	return now, Code(code)
}

// tableNext returns the first entry from slot number from on, and the slot to continue with.
func tableNext(table uintptr, from, now uint64) (Entry, uint64, Code) {
	e := tollbar_table_entry{struct_size: uint32(unsafe.Sizeof(tollbar_table_entry{}))}
	code := cTableNext(table, from, now, &e)
	return Entry{
		Policy: e.policy, Hash: e.hash, State: e.state, Remaining: e.remaining,
		ResetAfter: duration(e.reset_after_ns),
	}, e.next, Code(code)
}

func tableSweep(table uintptr, from, now uint64) (result Swept, next uint64, done bool, code Code) {
	s := tollbar_table_sweep_result{struct_size: uint32(unsafe.Sizeof(tollbar_table_sweep_result{}))}
	c := cTableSweep(table, from, sweepStep, now, &s)
	return Swept{Live: s.live, Vacated: s.vacated}, s.next, s.done == 1, Code(c)
}

func tableAddPolicy(table uintptr, policy string) (uint32, error) {
	spec, err := parse(policy)
	if err != nil {
		return 0, err
	}
	var number uint32
	if code := cTableAddPolicy(table, &spec, &number); code != 0 {
		return 0, refused(policy, Code(code))
	}
	return number, nil
}

func tableFindOrAddPolicy(table uintptr, policy string) (uint32, error) {
	spec, err := parse(policy)
	if err != nil {
		return 0, err
	}
	var number uint32
	if code := cTableFindOrAddPolicy(table, &spec, &number); code != 0 {
		return 0, refused(policy, Code(code))
	}
	return number, nil
}

func tableSetPolicy(table uintptr, number uint32, policy string, keep Keep) error {
	spec, err := parse(policy)
	if err != nil {
		return err
	}
	if code := cTableSetPolicy(table, number, &spec, uint32(keep)); code != 0 {
		return refused(policy, Code(code))
	}
	return nil
}

func tableSetOverride(table uintptr, number uint32, key, policy string, keep Keep) error {
	spec, err := parse(policy)
	if err != nil {
		return err
	}
	code := cTableSetOverride(table, number, key, &spec, uint32(keep))
	if code != 0 {
		return refused(policy, Code(code))
	}
	return nil
}

func tableClearOverride(table uintptr, policy uint32, key string) Code {
	return Code(cTableClearOverride(table, policy, key))
}

func tableGetOverride(table uintptr, policy uint32, key string) (Policy, Code) {
	spec := newSpec()
	code := cTableGetOverride(table, policy, key, &spec)
	if code != 0 {
		return Policy{}, Code(code)
	}
	return policyOf(&spec), Code(code)
}

func tableOverrides(table uintptr) []Override {
	var list []Override
	found := tollbar_table_override{struct_size: uint32(unsafe.Sizeof(tollbar_table_override{}))}
	spec := newSpec()
	for cTableNextOverride(table, found.next, &found, &spec) == tollbar_yes {
		list = append(list, Override{Policy: found.policy, Hash: found.hash, Own: policyOf(&spec)})
	}
	return list
}

func tableGetPolicy(table uintptr, number uint32) (Policy, Code) {
	spec := newSpec()
	code := cTableGetPolicy(table, number, &spec)
	return policyOf(&spec), Code(code)
}

func tableStats(table uintptr) (TableStats, Code) {
	s := tollbar_table_stats{struct_size: uint32(unsafe.Sizeof(tollbar_table_stats{}))}
	code := cTableStats(table, &s)
	return TableStats{
		Policies: int(s.policies), Capacity: s.capacity, Slots: s.slots, Bytes: s.bytes,
		Keys: s.keys, Inserted: s.inserted, Reclaimed: s.reclaimed, Vacated: s.vacated,
		Resets: s.resets, Refused: s.refused, Inherited: s.inherited,
		Untracked: s.untracked, Evicted: s.evicted, Retries: s.retries,
		BackwardSteps: s.backward_steps, Allowed: s.allowed, Denied: s.denied,
		Never: s.never, Overrides: s.overrides, Room: s.room,
	}, Code(code)
}

func tableCounts(table uintptr, policy uint32) (Counts, Code) {
	c := tollbar_counts{struct_size: uint32(unsafe.Sizeof(tollbar_counts{}))}
	code := cTableCounts(table, policy, &c)
	return Counts{Allowed: c.allowed, Denied: c.denied, Never: c.never}, Code(code)
}

func tableSync(table uintptr) error {
	if code, errno := cTableSync(table); code != 0 {
		return &TableError{Code: Code(code), Errno: reasonOf(Code(code), errno)}
	}
	return nil
}

func tableHealth(table uintptr, repair bool, now uint64) (TableHealth, Code) {
	h := tollbar_table_health{struct_size: uint32(unsafe.Sizeof(tollbar_table_health{}))}
	code := cTableHealth(table, repair, now, &h)
	return TableHealth{
		Claimed: uint32(h.claimed), Vacant: h.vacant, Waiting: h.waiting, Expired: h.expired,
		Live: h.live, Unknown: h.unknown, Duplicate: h.duplicate,
	}, Code(code)
}

func tableCopy(table, from uintptr, now uint64) (copied, lost uint64, code Code) {
	out := tollbar_table_copy_result{struct_size: uint32(unsafe.Sizeof(tollbar_table_copy_result{}))}
	c := cTableCopy(table, from, now, &out)
	return out.copied, out.lost, Code(c)
}
