package shared

import "sync/atomic"

// As in src/table/memory/slot.rs.

const (
	// slots of a bucket, which is a cache line.
	slotsOfBucket = 4
	// tagBits of a key word hold the tag. The bits above hold the number of the policy's version.
	tagBits = 56
	tagMask = 1<<tagBits - 1
)

// Pair is the content of a slot.
type Pair struct {
	// Key is the key word. In a vacant slot 0, or the tag of the key that a call is moving to another slot.
	Key uint64
	// State is the key's state word. In a vacant slot: the time at which its last key's state expires.
	State uint64
}

// isVacant reports whether no key is in the slot. No version has number 0.
func (p Pair) isVacant() bool { return p.Key>>tagBits == 0 }

// Slot is a key word and a state word that change together. It is aligned to 16 bytes.
type Slot struct{ key, state uint64 }

// Bucket is a cache line of slots.
type Bucket [slotsOfBucket]Slot

// Key loads the key word (Slot::key).
func (s *Slot) Key() uint64 { return atomic.LoadUint64(&s.key) }

// State loads the state word (Slot::state). If another call writes between the loads of both words, the caller's swap
// fails.
func (s *Slot) State() uint64 { return atomic.LoadUint64(&s.state) }

// Pair is both words at one instant (Slot::pair).
func (s *Slot) Pair() Pair {
	key, state := load128(s)
	return Pair{key, state}
}

// swap stores next if the slot holds old (Slot::swap). seen is what it held.
func (s *Slot) swap(old, next Pair) (seen Pair, swapped bool) {
	seen.Key, seen.State, swapped = cas128(s, old.Key, old.State, next.Key, next.State)
	return seen, swapped
}

// commit commits one step of a key whose key and then state the caller read here (Slot::commit). A step that keeps
// the state writes nothing: the slot must have held both words at one instant. False: nothing has been charged,
// because another call has changed the slot.
func (s *Slot) commit(key, state, next uint64) bool {
	if next == state {
		return s.Pair() == Pair{key, state}
	}
	_, swapped := s.swap(Pair{key, state}, Pair{key, next})
	return swapped
}

// findIn is the slot of a bucket that holds the key word key (find_in), or nil.
func (b *Bucket) findIn(key uint64) *Slot {
	for i := range b {
		if b[i].Key() == key {
			return &b[i]
		}
	}
	return nil
}
