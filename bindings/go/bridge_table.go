package tollbar

// The calls into C for tables. Callers hold the table's guard, so Close cannot free the table meanwhile.

/*
#include <stdlib.h>
#include "bridge.h"

#cgo noescape go_table_check
#cgo nocallback go_table_check
#cgo noescape go_table_check_at
#cgo nocallback go_table_check_at
#cgo noescape go_table_peek
#cgo nocallback go_table_peek
#cgo noescape go_table_take
#cgo nocallback go_table_take
#cgo noescape go_table_take_now
#cgo nocallback go_table_take_now
#cgo noescape go_table_reserve
#cgo nocallback go_table_reserve
#cgo noescape go_table_cancel
#cgo nocallback go_table_cancel
#cgo noescape go_table_many
#cgo nocallback go_table_many
#cgo noescape go_take_many
#cgo nocallback go_take_many
#cgo noescape go_table_now
#cgo nocallback go_table_now
#cgo noescape go_table_next
#cgo nocallback go_table_next
*/
import "C"

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
	specs := make([]C.tollbar_policy_spec, len(policies))
	for i, policy := range policies {
		spec, err := parse(policy)
		if err != nil {
			return 0, err
		}
		specs[i] = spec
	}
	o := C.tollbar_table_options{
		struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_table_options{})),
		on_full:     C.uint32_t(options.OnFull),
		capacity:    C.uint64_t(options.Capacity),
		missing_key: C.uint32_t(options.MissingKey),
		clock:       C.uint32_t(options.Clock),
		mode:        C.uint32_t(options.Mode.Perm()),
		hot_keys:    C.uint32_t(options.HotKeys),
		overrides:   C.uint32_t(options.Overrides),
	}
	if options.Seed != nil {
		o.seed = C.uint64_t(*options.Seed)
		o.flags |= C.TOLLBAR_TABLE_HAS_SEED
	}
	if options.SmallPages {
		o.flags |= C.TOLLBAR_TABLE_SMALL_PAGES
	}
	if options.TrustAnyone {
		o.flags |= C.TOLLBAR_TABLE_TRUST_ANYONE
	}
	var file *C.char
	if path != "" {
		file = C.CString(path)
		defer C.free(unsafe.Pointer(file))
		if options.Capacity == 0 && len(policies) == 0 {
			o = C.tollbar_table_options{struct_size: o.struct_size,
				flags: o.flags & C.TOLLBAR_TABLE_TRUST_ANYONE, hot_keys: o.hot_keys}
		}
	}
	var table C.uintptr_t
	code, err := C.go_table_open(file, &o, unsafe.SliceData(specs), C.size_t(len(specs)), &table)
	if code != 0 {
		return 0, &TableError{Path: path, Code: Code(code), Errno: errnoOf(Code(code), err)}
	}
	return uintptr(table), nil
}

func freeTable(table uintptr) { C.go_table_free(C.uintptr_t(table)) }

func tableCheck(table uintptr, policy uint32, key string, n uint64, d *Decision) Code {
	if now, ok := bubbleTime(); ok {
		if d == nil {
			d = new(Decision)
		}
		return tableCheckAt(table, policy, key, now, n, d)
	}
	if d == nil {
		return Code(C.go_table_check(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
			C.uint64_t(n), nil))
	}
	out := newDecision()
	code := C.go_table_check(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)), C.uint64_t(n), &out)
	*d, _ = decided(code, &out)
	return Code(code)
}

func tableCheckAt(table uintptr, policy uint32, key string, now, n uint64, d *Decision) Code {
	out := newDecision()
	code := C.go_table_check_at(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)), C.uint64_t(now),
		C.uint64_t(n), &out)
	*d, _ = decided(code, &out)
	return Code(code)
}

func tablePeek(table uintptr, policy uint32, key string, n uint64, d *Decision) Code {
	if now, ok := bubbleTime(); ok {
		return tablePeekAt(table, policy, key, now, n, d)
	}
	out := newDecision()
	code := C.go_table_peek(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)), C.uint64_t(n), &out)
	*d, _ = decided(code, &out)
	return Code(code)
}

func tablePeekAt(table uintptr, policy uint32, key string, now, n uint64, d *Decision) Code {
	out := newDecision()
	code := C.go_table_peek_at(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(now), C.uint64_t(n), &out)
	*d, _ = decided(code, &out)
	return Code(code)
}

func tableCharge(table uintptr, policy uint32, key string, n uint64) (uint64, Code) {
	if now, ok := bubbleTime(); ok {
		return tableChargeAt(table, policy, key, now, n)
	}
	var rest C.uint64_t
	code := C.go_table_charge(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(n), &rest)
	return uint64(rest), Code(code)
}

func tableChargeAt(table uintptr, policy uint32, key string, now, n uint64) (uint64, Code) {
	var rest C.uint64_t
	code := C.go_table_charge_at(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(now), C.uint64_t(n), &rest)
	return uint64(rest), Code(code)
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
	var taken C.uint64_t
	code := C.go_table_take(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(most), &taken)
	if code != 0 {
		taken = 0
	}
	return uint64(taken), Code(code)
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
	return Code(C.go_table_take_now(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(n)))
}

func tableReserve(table uintptr, policy uint32, key string, n uint64, patience time.Duration) (Reservation, Code) {
	if now, ok := bubbleTime(); ok {
		return tableReserveAt(table, policy, key, now, n, patience)
	}
	var booked C.tollbar_reservation
	code := C.go_table_reserve(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)), C.uint64_t(n),
		nanoseconds(patience), &booked)
	return reservation(code, &booked)
}

func tableCancel(table uintptr, policy uint32, key string, r Reservation) (uint64, Code) {
	if now, ok := bubbleTime(); ok {
		return tableCancelAt(table, policy, key, now, r)
	}
	booked := C.tollbar_reservation{departs_ns: C.uint64_t(r.Departs), cost: C.uint64_t(r.Cost)}
	var back C.uint64_t
	code := C.go_table_cancel(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)), &booked, &back)
	return uint64(back), Code(code)
}

func tableReserveAt(table uintptr, policy uint32, key string, now, n uint64,
	patience time.Duration) (Reservation, Code) {
	var booked C.tollbar_reservation
	code := C.go_table_reserve_at(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(now), C.uint64_t(n),
		nanoseconds(patience), &booked)
	return reservation(code, &booked)
}

func tableCancelAt(table uintptr, policy uint32, key string, now uint64, r Reservation) (uint64, Code) {
	booked := C.tollbar_reservation{departs_ns: C.uint64_t(r.Departs), cost: C.uint64_t(r.Cost)}
	var back C.uint64_t
	code := C.go_table_cancel_at(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(now), &booked, &back)
	return uint64(back), Code(code)
}

func tableHash(table uintptr, policy uint32, key string) (uint64, Code) {
	var hash C.uint64_t
	code := C.go_table_hash(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)), &hash)
	return uint64(hash), Code(code)
}

func tableReset(table uintptr, policy uint32, key string) Code {
	if now, ok := bubbleTime(); ok {
		return tableResetAt(table, policy, key, now)
	}
	return Code(C.go_table_reset(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key))))
}

func tableResetAt(table uintptr, policy uint32, key string, now uint64) Code {
	return Code(C.go_table_reset_at(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(now)))
}

func tableExempt(table uintptr, policy uint32, key string) Code {
	return Code(C.go_table_exempt(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key))))
}

func tableUnexempt(table uintptr, policy uint32, key string) Code {
	return Code(C.go_table_unexempt(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key))))
}

// This compiles only if Go and C have one layout of a batch's requests.
const _ = uint(unsafe.Sizeof(batchItem{})-unsafe.Sizeof(C.go_item{})) +
	uint(unsafe.Sizeof(C.go_item{})-unsafe.Sizeof(batchItem{}))

func tableMany(table uintptr, at bool, now uint64, b *Batch) Code {
	if len(b.items) == 0 {
		return 0
	}
	at, now = timeOf(at, now)
	return Code(C.go_table_many(C.uintptr_t(table), hasTime(at), C.uint64_t(now),
		text(unsafe.String(unsafe.SliceData(b.keys), len(b.keys))),
		(*C.go_item)(unsafe.Pointer(unsafe.SliceData(b.items))), C.size_t(len(b.items)),
		(*C.int32_t)(unsafe.Pointer(unsafe.SliceData(b.verdicts)))))
}

// manyInC decides rounds times on one batch of at most 128 requests, in one call. A benchmark compares
// [Table.CheckMany] with it.
func manyInC(t *Table, b *Batch, rounds int) Code {
	b.verdicts = make([]Verdict, len(b.items))
	defer runtime.KeepAlive(t)
	return Code(C.go_table_many_in_c(C.uintptr_t(t.handle), text(unsafe.String(unsafe.SliceData(b.keys), len(b.keys))),
		(*C.go_item)(unsafe.Pointer(unsafe.SliceData(b.items))), C.size_t(len(b.items)),
		(*C.int32_t)(unsafe.Pointer(unsafe.SliceData(b.verdicts))), C.size_t(rounds)))
}

// This compiles only if Go and C have one layout of a call's limits.
const _ = uint(unsafe.Sizeof(limitItem{})-unsafe.Sizeof(C.go_limit{})) +
	uint(unsafe.Sizeof(C.go_limit{})-unsafe.Sizeof(limitItem{}))

// limitItem is a limit, which C reads as go_limit. Its key ends at offset end of the call's bytes and begins where
// the one before ended.
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
	ticket   *Ticket
	most     uint32
}

// enter enters the guard of the in-flight table; nil if it is closed. False: this is no limit.
func (l otherLimit) enter() (c *guard.Count, named bool) {
	if l.inFlight == nil || l.ticket == nil {
		return nil, false
	}
	return l.inFlight.guard.Enter(), true
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
	taken := C.tollbar_taken{struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_taken{}))}
	var decisions [LimitsMost]C.tollbar_decision
	var first *C.tollbar_decision
	if each != nil {
		decisions[0] = newDecision()
		first = &decisions[0]
	}
	code := C.go_take_many(text(unsafe.String(unsafe.SliceData(keys), len(keys))),
		(*C.go_limit)(unsafe.Pointer(unsafe.SliceData(items))),
		C.size_t(len(items)), hasTime(at), C.uint64_t(now), first, &taken)
	if code < 0 {
		return noneTaken, Code(code)
	}
	for i := range limits {
		if flight := limits[i].other; code == 0 && flight.inFlight != nil {
			*flight.ticket = Ticket{flight.inFlight, items[i].ticket}
		}
	}
	if each != nil {
		for i := range items {
			each[i], _ = decided(C.int32_t(decisions[i].verdict), &decisions[i])
		}
	}
	return Taken{
		Verdict: Verdict(code), Reason: Reason(taken.reason), Bound: int(taken.bound),
		Remaining:  uint64(taken.remaining),
		RetryAfter: duration(uint64(taken.retry_after_ns)), ResetAfter: duration(uint64(taken.reset_after_ns)),
	}, nil
}

func tableNow(table uintptr) (uint64, Code) {
	if now, ok := bubbleTime(); ok {
		return now, 0
	}
	var now C.uint64_t
	code := C.go_table_now(C.uintptr_t(table), &now)
	return uint64(now), Code(code)
}

// tableNext returns the first entry from slot number from on, and the slot to continue with.
func tableNext(table uintptr, from, now uint64) (Entry, uint64, Code) {
	e := C.tollbar_table_entry{struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_table_entry{}))}
	code := C.go_table_next(C.uintptr_t(table), C.uint64_t(from), C.uint64_t(now), &e)
	return Entry{
		Policy: uint32(e.policy), Hash: uint64(e.hash), State: uint64(e.state), Remaining: uint64(e.remaining),
		ResetAfter: duration(uint64(e.reset_after_ns)),
	}, uint64(e.next), Code(code)
}

func tableSweep(table uintptr, from, now uint64) (result Swept, next uint64, done bool, code Code) {
	s := C.tollbar_table_sweep_result{struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_table_sweep_result{}))}
	c := C.go_table_sweep(C.uintptr_t(table), C.uint64_t(from), sweepStep, C.uint64_t(now), &s)
	return Swept{Live: uint64(s.live), Vacated: uint64(s.vacated)}, uint64(s.next), s.done == 1, Code(c)
}

func tableAddPolicy(table uintptr, policy string) (uint32, error) {
	spec, err := parse(policy)
	if err != nil {
		return 0, err
	}
	var number C.uint32_t
	if code := C.go_table_add_policy(C.uintptr_t(table), &spec, &number); code != 0 {
		return 0, refused(policy, Code(code))
	}
	return uint32(number), nil
}

func tableFindOrAddPolicy(table uintptr, policy string) (uint32, error) {
	spec, err := parse(policy)
	if err != nil {
		return 0, err
	}
	var number C.uint32_t
	if code := C.go_table_find_or_add_policy(C.uintptr_t(table), &spec, &number); code != 0 {
		return 0, refused(policy, Code(code))
	}
	return uint32(number), nil
}

func tableSetPolicy(table uintptr, number uint32, policy string, keep Keep) error {
	spec, err := parse(policy)
	if err != nil {
		return err
	}
	if code := C.go_table_set_policy(C.uintptr_t(table), C.uint32_t(number), &spec, C.uint32_t(keep)); code != 0 {
		return refused(policy, Code(code))
	}
	return nil
}

func tableSetOverride(table uintptr, number uint32, key, policy string, keep Keep) error {
	spec, err := parse(policy)
	if err != nil {
		return err
	}
	code := C.go_table_set_override(C.uintptr_t(table), C.uint32_t(number), text(key), C.size_t(len(key)),
		&spec, C.uint32_t(keep))
	if code != 0 {
		return refused(policy, Code(code))
	}
	return nil
}

func tableClearOverride(table uintptr, policy uint32, key string) Code {
	return Code(C.go_table_clear_override(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key))))
}

func tableGetOverride(table uintptr, policy uint32, key string) (Policy, Code) {
	spec := newSpec()
	code := C.go_table_get_override(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)), &spec)
	if code != 0 {
		return Policy{}, Code(code)
	}
	return policyOf(&spec), Code(code)
}

func tableOverrides(table uintptr) []Override {
	var list []Override
	found := C.tollbar_table_override{struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_table_override{}))}
	spec := newSpec()
	for C.go_table_next_override(C.uintptr_t(table), found.next, &found, &spec) == C.TOLLBAR_YES {
		list = append(list, Override{Policy: uint32(found.policy), Hash: uint64(found.hash), Own: policyOf(&spec)})
	}
	return list
}

func tableGetPolicy(table uintptr, number uint32) (Policy, Code) {
	spec := newSpec()
	code := C.go_table_get_policy(C.uintptr_t(table), C.uint32_t(number), &spec)
	return policyOf(&spec), Code(code)
}

func tableStats(table uintptr) (TableStats, Code) {
	s := C.tollbar_table_stats{struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_table_stats{}))}
	code := C.go_table_stats(C.uintptr_t(table), &s)
	return TableStats{
		Policies: int(s.policies), Capacity: uint64(s.capacity), Slots: uint64(s.slots), Bytes: uint64(s.bytes),
		Keys: uint64(s.keys), Inserted: uint64(s.inserted), Reclaimed: uint64(s.reclaimed), Vacated: uint64(s.vacated),
		Resets: uint64(s.resets), Refused: uint64(s.refused), Inherited: uint64(s.inherited),
		Untracked: uint64(s.untracked), Evicted: uint64(s.evicted), Retries: uint64(s.retries),
		BackwardSteps: uint64(s.backward_steps), Allowed: uint64(s.allowed), Denied: uint64(s.denied),
		Never: uint64(s.never), Overrides: uint64(s.overrides),
	}, Code(code)
}

func tableCounts(table uintptr, policy uint32) (Counts, Code) {
	c := C.tollbar_counts{struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_counts{}))}
	code := C.go_table_counts(C.uintptr_t(table), C.uint32_t(policy), &c)
	return Counts{Allowed: uint64(c.allowed), Denied: uint64(c.denied), Never: uint64(c.never)}, Code(code)
}

func tableSync(table uintptr) error {
	if code, err := C.go_table_sync(C.uintptr_t(table)); code != 0 {
		return &TableError{Code: Code(code), Errno: errnoOf(Code(code), err)}
	}
	return nil
}

func tableHealth(table uintptr, repair bool, now uint64) (TableHealth, Code) {
	h := C.tollbar_table_health{struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_table_health{}))}
	var mend C.int
	if repair {
		mend = 1
	}
	code := C.go_table_health(C.uintptr_t(table), mend, C.uint64_t(now), &h)
	return TableHealth{
		Claimed: uint32(h.claimed), Vacant: uint64(h.vacant), Waiting: uint64(h.waiting), Expired: uint64(h.expired),
		Live: uint64(h.live), Unknown: uint64(h.unknown), Duplicate: uint64(h.duplicate),
	}, Code(code)
}

func tableCopy(table, from uintptr, now uint64) (copied, lost uint64, code Code) {
	out := C.tollbar_table_copy_result{struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_table_copy_result{}))}
	c := C.go_table_copy(C.uintptr_t(table), C.uintptr_t(from), C.uint64_t(now), &out)
	return uint64(out.copied), uint64(out.lost), Code(c)
}
