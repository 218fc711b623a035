package shared

import (
	"sync/atomic"
	"unsafe"

	"github.com/tollbar/tollbar/bindings/go/internal/core"
)

// A table's block of memory, and references to its parts, as in src/table/memory/block.rs.

// region is memory that keeps its address and length until it is freed.
type region struct {
	base unsafe.Pointer
	len  uint64
	// named is the file's identity, if the memory is a file's.
	named *named
	// free gives the memory back.
	free func()
}

// is reports whether both are the same memory: at one address, or of one file.
func (r *region) is(other *region) bool {
	return r.base == other.base || r.named != nil && other.named != nil && r.named.is(other.named)
}

// memory is a table's block of memory with a valid header.
type memory struct {
	region region
	fixed  fixed
	parts  parts
	header *header
}

// newMemory is the table in a region whose header has been inspected or written (Memory::over).
func newMemory(r region) (*memory, *Error) {
	if !supported() {
		return nil, failed(errUnsupported)
	}
	m := &memory{region: r, header: (*header)(r.base)}
	f, code := m.header.parameters()
	switch {
	case code != 0:
		return nil, failed(code)
	case f.bytes != r.len:
		return nil, failed(errTruncated)
	}
	m.fixed, m.parts = f, newParts(f.buckets)
	return m, nil
}

func (m *memory) records() *[versionsMost]record {
	return (*[versionsMost]record)(unsafe.Add(m.region.base, versionsAt))
}

func (m *memory) shards() *[shardsCount]shard {
	return (*[shardsCount]shard)(unsafe.Add(m.region.base, countersAt))
}

func (m *memory) exempt() *[exemptMost]atomic.Uint64 {
	return (*[exemptMost]atomic.Uint64)(unsafe.Add(m.region.base, exemptAt))
}

func (m *memory) decisions() *[partsOfDecisions]decisions {
	return (*[partsOfDecisions]decisions)(unsafe.Add(m.region.base, decisionsAt))
}

// overrides are the places of keys with a policy of their own (Memory::overrides).
func (m *memory) overrides() []Slot {
	places := overrideGroups(m.fixed.overrides) * groupPlaces
	if places == 0 {
		return nil
	}
	return unsafe.Slice((*Slot)(unsafe.Add(m.region.base, uintptr(m.fixed.bytes-places*slotBytes))), int(places))
}

// currentStamp is the stamp of a policy's current version, or 0 if there is no such policy (Memory::current_stamp).
func (m *memory) currentStamp(policy uint32) uint64 {
	if policy >= PoliciesMost {
		return 0
	}
	return m.header.current[policy].Load()
}

// noteBooking notes that a call books permits under a policy for a later time. The caller must call it before it
// swaps the slot (Memory::note_booking).
func (m *memory) noteBooking(policy uint32) {
	word, bit := &m.header.booked[policy/64], uint64(1)<<(policy%64)
	if word.Load()&bit == 0 {
		word.Or(bit)
	}
}

// hasBookings reports whether a call has ever booked permits under a policy for a later time. The caller must read
// the slot first (Memory::has_bookings).
func (m *memory) hasBookings(policy uint32) bool { return isNoted(&m.header.booked, policy) }

// hasCredit reports whether a thread has ever taken credit of a key under a policy. The caller must read the slot
// first (Memory::has_credit).
func (m *memory) hasCredit(policy uint32) bool { return isNoted(&m.header.lent, policy) }

func isNoted(bits *[PoliciesMost / 64]atomic.Uint64, policy uint32) bool {
	return bits[policy/64].Load()>>(policy%64)&1 != 0
}

// Counters of a shard (ShardCounter).
const (
	countInserted      = 0
	countReclaimed     = 1
	countRefused       = 2
	countInherited     = 3
	countUnremembered  = 4
	countEvicted       = 5
	countVacated       = 6
	countResets        = 7
	countRetries       = 8
	countBackwardSteps = 9
	newestTime         = 10
	// The counters of decisions by reason.
	countBanned     = 11
	countMissingKey = 14
	countExempt     = 15
)

// grain, in nanoseconds: backward steps up to this are not counted, and the newest time is stored only when it grows
// by more.
const grain = 1000

// number spreads goroutines over counters: the stack's address differs between them.
func number() uint {
	var here byte
	return uint(uint64(uintptr(unsafe.Pointer(&here))>>11) * 0x9e3779b97f4a7c15 >> 58)
}

// count counts one rare event, or n (Shard::add).
func (m *memory) count(what int, n uint64) { m.shards()[number()%shardsCount].counts[what].Add(n) }

// noteTime compares a caller's time with the newest one of its shard: it counts a step back, or keeps now as the
// newest (Shard::note_time).
func (m *memory) noteTime(now uint64) {
	s := &m.shards()[number()%shardsCount]
	newest := &s.counts[newestTime]
	switch seen := newest.Load(); {
	case now-seen <= grain:
	case now > seen:
		newest.Store(now)
	case seen-now > grain:
		s.counts[countBackwardSteps].Add(1)
	}
}

// countReason counts the reason of a decision, if the reason has a counter (Shard::add_reason). The counters of
// classes and of full queues are missing here: the Go code offers no classes, and its waiting goroutines have queues
// of their own.
func (m *memory) countReason(reason uint32) {
	switch reason {
	case reasonBanned:
		m.count(countBanned, 1)
	case reasonMissingKey:
		m.count(countMissingKey, 1)
	case reasonExempt:
		m.count(countExempt, 1)
	}
}

// countDecision counts a decision, as a thread does that owns no line (Memory::count_unowned): goroutines move
// between threads.
func (m *memory) countDecision(policy uint32, verdict core.Verdict) {
	m.decisions()[number()%partsOfDecisions][policy%PoliciesMost][verdict].Add(1)
}
