package core

import (
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
)

// OnFull says what a new key gets when none of its slots has expired.
type OnFull uint32

// The choices, with their numbers in tollbar.h.
const (
	OnFullEvictNearest OnFull = 0
	OnFullInherit      OnFull = 1
	OnFullAllow        OnFull = 2
	OnFullDeny         OnFull = 3
)

// Reasons of decisions that a table gives.
const (
	ReasonTableFull     = 3
	ReasonInheritedDebt = 4
	ReasonMissingKey    = 5
)

const (
	// The slots of a bucket. A key has two buckets.
	bucketSlots = 8
	// The most regions of a table. Each region has a lock of its own, and a small table has fewer regions.
	regionsMost = 256
	// The least capacity of a region.
	regionLeast = 64
)

// Table has a state for each of many keys in the memory of this process, with a lock for each region. It is not the table of docs/table.md, which
// processes share without locks: Go shares no memory with the C library.
//
// A key is known by 127 bits of two hashes with random seeds, and is in one of the 16 slots of its two buckets. A new key takes the slot that expires
// first, and the emptier bucket's before.
type Table struct {
	policies []*TablePolicy
	regions  []region
	seeds    [2]maphash.Seed
	onFull   OnFull
}

// TablePolicy is a policy of a table.
type TablePolicy struct {
	Policy    Policy
	Algorithm Algorithm
	// Permits were booked for a later time than that of their call.
	booked atomic.Bool
}

type region struct {
	mu      sync.Mutex
	buckets [][bucketSlots]slot
	_       [32]byte
}

// slot is a key's hashes and state. A slot without a key has a low of 0.
type slot struct {
	high, low uint64
	word      uint64
	// The highest word that a give-back has lowered.
	highest uint64
	policy  uint32
}

// NewTable makes a table with slots for a quarter more keys than the capacity.
func NewTable(capacity uint64, onFull OnFull, policies []*TablePolicy) (*Table, bool) {
	regions := uint64(1)
	for regions < regionsMost && capacity/regions >= 2*regionLeast {
		regions *= 2
	}
	// The number of buckets of a region is even, so that a key has one in each half.
	buckets := 2 * divCeil(divCeil(capacity, regions)+divCeil(capacity, 4*regions)+1, 2*bucketSlots)
	if buckets > math.MaxInt32 {
		return nil, false
	}
	t := &Table{policies: policies, regions: make([]region, regions), seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, onFull: onFull}
	for i := range t.regions {
		t.regions[i].buckets = make([][bucketSlots]slot, buckets)
	}
	return t, true
}

// Policy is the policy of that number, or nil.
func (t *Table) Policy(number uint32) *TablePolicy {
	if uint64(number) < uint64(len(t.policies)) {
		return t.policies[number]
	}
	return nil
}

// Place is a key under a policy in a table.
type Place struct {
	table     *Table
	policy    *TablePolicy
	number    uint32
	high, low uint64
}

// Place finds the key's place. The policy must exist.
func (t *Table) Place(number uint32, key string) Place {
	low := maphash.String(t.seeds[1], key)
	// The policy's number is part of the hash, so equal keys under two policies have different slots.
	return Place{t, t.policies[number], number, maphash.String(t.seeds[0], key) ^ uint64(number)*0x9e3779b97f4a7c15, low | 1}
}

// Same reports whether both are one key under one policy.
func (p Place) Same(q Place) bool {
	return p.table == q.table && p.number == q.number && p.high == q.high && p.low == q.low
}

// Algorithm is the key's compiled policy.
func (p Place) Algorithm() Algorithm { return p.policy.Algorithm }

// lock locks the key's region.
func (p Place) lock() *region {
	r := &p.table.regions[p.low>>1%uint64(len(p.table.regions))]
	r.mu.Lock()
	return r
}

// slots calls each with the key's slots in their order, until it returns false.
func (p Place) slots(r *region, each func(*slot) bool) {
	half := uint64(len(r.buckets) / 2)
	first, second := &r.buckets[p.high%half], &r.buckets[half+p.high>>32%half]
	for i := range bucketSlots {
		if !each(&first[i]) || !each(&second[i]) {
			return
		}
	}
}

// find is the key's slot, or nil; and the slot that expires first, with its time.
func (p Place) find(r *region) (own, first *slot, expires uint64) {
	expires = NoTime
	p.slots(r, func(s *slot) bool {
		if s.low == p.low && s.high == p.high && s.policy == p.number {
			own = s
			return false
		}
		if at := p.table.expiresAt(s); first == nil || at < expires {
			first, expires = s, at
		}
		return true
	})
	return own, first, expires
}

func (t *Table) expiresAt(s *slot) uint64 {
	if s.low == 0 {
		return 0
	}
	return t.policies[s.policy].Algorithm.ExpiresAt(s.word)
}

// outcome is what a request did.
type outcome struct {
	verdict Verdict
	word    uint64
	// Why the table itself decided, such as ReasonTableFull. 0 if the policy decided.
	reason uint32
	// The key has no slot.
	untracked bool
	// The time at which the first slot expires, for a key that a full table refuses.
	until uint64
}

// request makes a request: step is a function of the key's word.
func (p Place) request(now uint64, step func(word uint64) Step) outcome {
	r := p.lock()
	defer r.mu.Unlock()
	own, first, expires := p.find(r)
	if own != nil {
		s := step(own.word)
		own.word = s.Next
		return outcome{verdict: s.Verdict, word: s.Next}
	}
	s := step(0)
	// A refusal, or a request that charges nothing, has no word to store.
	if s.Next == 0 {
		return outcome{verdict: s.Verdict}
	}
	word := s.Next
	if expires > now {
		switch p.table.onFull {
		case OnFullDeny:
			return outcome{verdict: Denied, reason: ReasonTableFull, untracked: true, until: expires}
		case OnFullAllow:
			return outcome{verdict: s.Verdict, word: word, reason: ReasonTableFull, untracked: true}
		case OnFullInherit:
			debt := p.debt(first, expires)
			if s = step(debt); s.Next == debt {
				return outcome{verdict: s.Verdict, word: debt, reason: ReasonInheritedDebt, untracked: true}
			}
			word = s.Next
		}
		if p.Algorithm().ExpiresAt(word) < expires {
			// The key owes until the evicted debt would have been paid.
			word = p.Algorithm().Owing(expires)
		}
	}
	*first = slot{high: p.high, low: p.low, word: word, policy: p.number}
	return outcome{verdict: s.Verdict, word: word}
}

// debt is the word that a new key inherits with a slot.
func (p Place) debt(from *slot, expires uint64) uint64 {
	if from.policy == p.number {
		return from.word
	}
	return p.Algorithm().Owing(expires)
}

// full is the refusal of a full table, until a slot expires.
func full(until, now uint64) Answer {
	wait := After(until, now)
	return Answer{Verdict: Denied, Reason: ReasonTableFull, RetryAfter: wait, ResetAfter: wait}
}

func (p Place) take(now, cost uint64) outcome {
	return p.request(now, func(word uint64) Step { return p.Algorithm().Step(word, now, cost) })
}

// Take decides on cost permits.
func (p Place) Take(now, cost uint64) Verdict { return p.take(now, cost).verdict }

// Check decides on cost permits, and returns the full decision.
func (p Place) Check(now, cost uint64) Answer {
	o := p.take(now, cost)
	if o.until != 0 {
		return full(o.until, now)
	}
	d := Describe(p.Algorithm(), o.verdict, o.word, now, cost)
	if o.reason != 0 {
		d.Reason = o.reason
	}
	return d
}

// Peek returns what Check would return, with the permits that are left before the request. It changes nothing.
func (p Place) Peek(now, cost uint64) Answer {
	r := p.lock()
	defer r.mu.Unlock()
	own, first, expires := p.find(r)
	if own != nil {
		return Peek(p.Algorithm(), own.word, now, cost)
	}
	fresh := Peek(p.Algorithm(), 0, now, cost)
	switch {
	case cost == 0 || expires <= now:
	case p.table.onFull == OnFullDeny && fresh.Verdict == Allowed:
		return full(expires, now)
	case p.table.onFull == OnFullAllow && fresh.Verdict == Allowed:
		fresh.Reason = ReasonTableFull
	case p.table.onFull == OnFullInherit:
		d := Peek(p.Algorithm(), p.debt(first, expires), now, cost)
		if d.Verdict == Denied {
			d.Reason = ReasonInheritedDebt
		}
		return d
	}
	return fresh
}

// TakeUpTo takes all permits that are left, most at the most.
func (p Place) TakeUpTo(now, most uint64) (taken uint64) {
	a := p.Algorithm()
	o := p.request(now, func(word uint64) Step {
		taken = min(a.Available(word, now), most)
		if taken == 0 && word == 0 {
			taken = min(most, 1)
		}
		return a.Step(word, now, taken)
	})
	if o.verdict != Allowed {
		return 0
	}
	return taken
}

// Reserve takes permits ahead of time, for a time up to latest, and returns that time and the number of permits that the key was charged.
func (p Place) Reserve(now, cost, latest uint64) (at, charged uint64, verdict Verdict) {
	a := p.Algorithm()
	at = now
	o := p.request(now, func(word uint64) Step {
		if cost == 0 {
			return Step{Allowed, word}
		}
		next, earliest, ok := a.Reserve(word, now, cost)
		if ok && earliest <= latest {
			at = earliest
			return Step{Allowed, next}
		}
		step := a.Step(word, now, cost)
		switch {
		case step.Verdict == Never:
			return Step{Never, word}
		case step.Verdict == Denied && word == 0 && a.BooksAhead() && !a.CountsRefusals():
			return step
		}
		return Step{Denied, word}
	})
	switch {
	case o.verdict != Allowed:
		return 0, 0, o.verdict
	case o.untracked:
		return at, 0, Allowed
	case at > now:
		p.policy.booked.Store(true)
	}
	return at, cost, Allowed
}

// Charge charges permits without a decision, and returns the rest that the state has no room for.
func (p Place) Charge(now, cost uint64) (rest uint64) {
	o := p.request(now, func(word uint64) Step {
		next, left := p.Algorithm().Charge(word, now, cost)
		rest = left
		return Step{Allowed, next}
	})
	if o.untracked {
		return cost
	}
	return rest
}

// GiveBack gives the unused permits of a charge back, and returns their number.
func (p Place) GiveBack(charge Charge, now func() uint64) uint64 {
	r := p.lock()
	defer r.mu.Unlock()
	own, _, _ := p.find(r)
	if own == nil {
		return 0
	}
	back := GiveBack{Charge: charge, Booked: p.policy.booked.Load(), Highest: own.highest}
	next, permits := p.Algorithm().GiveBack(own.word, now(), &back)
	if next == own.word {
		return 0
	}
	own.highest = max(own.highest, own.word)
	own.word = next
	return permits
}

// Reset makes the key's state fresh, and frees its slot. It returns false if the state is as good as fresh.
func (p Place) Reset(now uint64) bool {
	r := p.lock()
	defer r.mu.Unlock()
	own, _, _ := p.find(r)
	if own == nil || p.Algorithm().ExpiresAt(own.word) <= now {
		return false
	}
	*own = slot{}
	return true
}
