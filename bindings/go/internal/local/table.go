// Package local is a table of one process in Go alone, for programs without the C library: sharded,
// with a lock for each shard, in memory that is fixed when the table is made. A key that it holds
// gets the decisions that it would get from the library, to the bit.
package local

import (
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"

	"github.com/tollbar/tollbar/bindings/go/internal/core"
)

// Errors of tables, with their numbers in tollbar.h.
const (
	errCapacity     core.Code = -50
	errPolicyCount  core.Code = -51
	errNoSuchPolicy core.Code = -52
	errMissingKey   core.Code = -56
)

// PoliciesMost is the number of a table's policies.
const PoliciesMost = 128

const (
	// groupSlots is the number of slots of a group. A key has two groups, so a call looks at 16
	// slots.
	groupSlots = 8
	// shardsMost is the most shards of a table. A shard has at least shardSlots slots, so that all
	// fill alike.
	shardsMost = 64
	shardSlots = 1024
	slotsMost  = 1 << 40
)

// Options of a table, with the numbers of tollbar.h.
type Options struct {
	// Capacity is the number of keys; the table has a third more slots.
	Capacity        uint64
	OnFull, Missing uint32
}

// Policy is a policy of a table.
type Policy struct {
	core.Policy
	Algorithm core.Algorithm
}

// Table is keyed limits of this process. Any number of goroutines may make calls at once.
type Table struct {
	policies []Policy
	options  Options
	seed     maphash.Seed
	shards   []shard
	// groups of each shard.
	groups uint64
	// By policy: permits were booked for a later time than that of their call.
	booked [PoliciesMost]atomic.Bool
}

// shard is a part of the slots and the lock of each access to them.
type shard struct {
	lock  sync.Mutex
	slots []slot
	// A shard has a cache line of its own.
	_ [64 - 8 - 24]byte
}

// slot has a key and its state. A key of 0 is a free slot.
type slot struct {
	// The hash of the key and its policy, whose lowest bits are the policy's number.
	key, state uint64
}

// New makes a table. The policies' algorithms are those of limiters.
func New(options Options, policies []Policy) (*Table, core.Code) {
	slots := options.Capacity + options.Capacity/3
	switch {
	case len(policies) == 0 || len(policies) > PoliciesMost:
		return nil, errPolicyCount
	case options.Capacity == 0 || slots < options.Capacity || slots > min(slotsMost, math.MaxInt/16):
		return nil, errCapacity
	}
	shards := uint64(1)
	for shards < shardsMost && slots/(2*shards) >= shardSlots {
		shards *= 2
	}
	groups := max((slots/shards+groupSlots-1)/groupSlots, 2)
	t := &Table{options: options, seed: maphash.MakeSeed(), shards: make([]shard, shards), groups: groups}
	for i := range t.shards {
		t.shards[i].slots = make([]slot, groups*groupSlots)
	}
	for _, policy := range policies {
		// The library gives permits back to a key of a table by other rules than to a limiter.
		policy.Algorithm = core.InSlots(policy.Algorithm)
		t.policies = append(t.policies, policy)
	}
	return t, 0
}

// PolicyOf is the policy of a number.
func (t *Table) PolicyOf(number uint32) (core.Policy, core.Code) {
	if uint64(number) >= uint64(len(t.policies)) {
		return core.Policy{}, errNoSuchPolicy
	}
	return t.policies[number].Policy, 0
}

// Key is a key under a policy of a table.
type Key struct {
	table *Table
	key   uint64
}

// Find finds the key of a request. For an empty key the request has been decided: found is false.
// code is below 0 if there is no such policy, or the empty key is to be reported.
func (t *Table) Find(number uint32, key string) (k Key, decided core.Answer, found bool, code core.Code) {
	if key == "" {
		decided, code = t.withoutKey()
		return k, decided, false, code
	}
	if uint64(number) >= uint64(len(t.policies)) {
		return k, closed(reasonFault), false, errNoSuchPolicy
	}
	// Keys of two policies have different slots.
	hash := maphash.String(t.seed, key) + uint64(number)*0x9e37_79b9_7f4a_7c15
	hash = hash&^(PoliciesMost-1) | uint64(number)
	if hash == 0 {
		hash = PoliciesMost
	}
	return Key{t, hash}, decided, true, 0
}

// number of the key's policy.
func (k Key) number() uint64 { return k.key & (PoliciesMost - 1) }

// Policy is the key's policy.
func (k Key) Policy() *core.Policy { return &k.table.policies[k.number()].Policy }

// Algorithm is the key's compiled policy.
func (k Key) Algorithm() core.Algorithm { return k.table.policies[k.number()].Algorithm }

// Rank is the key's place in the order of limits that refill equally fast.
func (k Key) Rank() uint64 { return k.key }

// shard is the shard of the key.
func (k Key) shard() *shard { return &k.table.shards[k.key>>7&uint64(len(k.table.shards)-1)] }

// candidates are the key's two groups of slots.
func (k Key) candidates(s *shard) (first, second []slot) {
	groups := k.table.groups
	at := k.key >> 13 % groups
	other := (at + 1 + k.key>>38%(groups-1)) % groups
	return s.slots[at*groupSlots:][:groupSlots], s.slots[other*groupSlots:][:groupSlots]
}

// find returns the key's slot, or nil. The caller has the shard's lock.
func (k Key) find(s *shard) *slot {
	first, second := k.candidates(s)
	for i := range first {
		if first[i].key == k.key {
			return &first[i]
		}
	}
	for i := range second {
		if second[i].key == k.key {
			return &second[i]
		}
	}
	return nil
}

// room returns the slot for a key that the table does not hold, and the time at which that slot
// expires: a free slot of the emptier group, or else the slot that expires first. The caller has
// the shard's lock.
func (k Key) room(s *shard) (best *slot, expires uint64) {
	first, second := k.candidates(s)
	var free [2]*slot
	var frees [2]int
	for g, group := range [2][]slot{first, second} {
		for i := range group {
			one := &group[i]
			if one.key == 0 {
				free[g] = one
				frees[g]++
			} else if until := k.table.expiresAt(one); best == nil || until < expires {
				best, expires = one, until
			}
		}
	}
	switch {
	case frees[0] == 0 && frees[1] == 0:
		return best, expires
	case frees[1] > frees[0]:
		return free[1], 0
	}
	return free[0], 0
}

// expiresAt is the time from which the key of a slot is as good as fresh.
func (t *Table) expiresAt(s *slot) uint64 {
	return t.policies[s.key&(PoliciesMost-1)].Algorithm.ExpiresAt(s.state)
}
