package shared

import "unsafe"

// As in src/table/slots/placement.rs and candidates.rs.

const (
	// restBits of a hash are implied by the number of a slot's bucket.
	restBits = 64 - tagBits
	rests    = 1 << restBits
	// candidatesOfKey is the number of slots that may hold one key.
	candidatesOfKey = 3 * slotsOfBucket
)

// tag is the part of a hash that a slot stores.
func tag(hash uint64) uint64 { return hash >> restBits }

// hashOfTag is a hash of a tag.
func hashOfTag(tag uint64) uint64 { return tag << restBits }

// buckets are the numbers of a hash's buckets: first, second, spare (Placement::buckets).
func (p parts) buckets(hash uint64) (first, second, spare uint64) {
	tag, rest := tag(hash), hash&(rests-1)
	first = scale(tag>>(tagBits-32), p.half) ^ rest
	second = p.half + scale(tag, p.half) ^ rest
	mixed := (tag ^ tag>>28) * 0x9e3779b97f4a7c15
	spare = scale(mixed>>32, p.spares) + rest
	if spare >= p.spares {
		spare -= p.spares
	}
	return first, second, 2*p.half + spare
}

// scale maps the lower 32 bits of n to one of parts.
func scale(n, parts uint64) uint64 { return uint64(uint32(n)) * parts >> 32 }

// candidates are the buckets of a key.
type candidates struct {
	first, second, spare *Bucket
	// tag of the key.
	tag uint64
}

// candidates of a hash (Slots::candidates).
func (m *memory) candidates(hash uint64) candidates {
	first, second, spare := m.parts.buckets(hash)
	return candidates{m.bucket(first), m.bucket(second), m.bucket(spare), tag(hash)}
}

// bucket n, which is below the number of buckets.
func (m *memory) bucket(n uint64) *Bucket {
	return (*Bucket)(unsafe.Add(m.region.base, bucketsAt+uintptr(n)*bucketBytes))
}

// find is the slot whose key word is key (Candidates::find), or nil.
func (c *candidates) find(key uint64) *Slot {
	if slot := c.first.findIn(key); slot != nil {
		return slot
	}
	if slot := c.second.findIn(key); slot != nil {
		return slot
	}
	return c.spare.findIn(key)
}

// slot n, below candidatesOfKey, in the key's order (Candidates::slot).
func (c *candidates) slot(n int) *Slot {
	switch {
	case n >= 2*slotsOfBucket:
		return &c.spare[n-2*slotsOfBucket]
	case n&1 == 0:
		return &c.first[n>>1]
	}
	return &c.second[n>>1]
}
