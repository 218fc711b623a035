package shared

import "github.com/tollbar/tollbar/bindings/go/internal/core"

// The slot protocol: how requests change slots, and how a new key gets one.
// src/table/slots/protocol.rs has the protocol's rules and their proof, and loom's models of it. Each
// function here does what the function that it names does there, in the same order of loads and swaps. Loads of
// single words are sequentially consistent in Go, and so at least as strong as there.

// Numbers of what a new key gets when none of its candidates has expired (OnFull).
const (
	onFullEvictNearest = 0
	onFullInherit      = 1
	onFullAllow        = 2
	onFullDeny         = 3
)

// event is what a request did to the table (Event).
type event int

const (
	// eventKnown: a slot held the key, or the request has no state to store.
	eventKnown event = iota
	// eventInserted: the key took a slot that no key has ever had, or a vacant one.
	eventInserted
	// eventReclaimed: the key took the slot of an expired key.
	eventReclaimed
	// eventRefused: no candidate has expired, and onFullDeny refuses the key.
	eventRefused
	// eventRefusedByDebt: no candidate has expired, and the debt that the key would inherit refuses it.
	eventRefusedByDebt
	// eventInherited: the key took the slot of a key with a debt, together with the debt.
	eventInherited
	// eventUnremembered: the table admitted the key and did not store it.
	eventUnremembered
	// eventEvicted: the key took the slot of a key with a debt, which the table forgot.
	eventEvicted
)

// outcome is the result of a request (Outcome).
type outcome struct {
	verdict core.Verdict
	// state of the key after the request.
	state uint64
	event event
	// until is the time at which the first candidate expires, for eventRefused; otherwise 0.
	until uint64
	// retries is the number of swaps that failed.
	retries uint64
}

// end says how a step of the protocol ended.
type end int

const (
	// done: it has its result.
	done end = iota
	// changed: the caller must repeat the request, because another call has changed the key's policy or slot. Nothing
	// has been charged (Changed).
	changed
	// foreign: a slot is under a policy that Go cannot step. Nothing has been charged, and repeating the request would
	// not help.
	foreign
)

// tries of a call in one slot before it begins again (TRIES in limiter/head.rs).
const tries = 16

// stepper is a request as a function of the state. The protocol may call it more than once; the last call counts. A
// Next that equals the state stores nothing.
type stepper = func(state uint64) core.Step

// request is step 1 of a request for key at now, or step 2 if no slot holds the key (request).
func request(s *states, c *candidates, key, now, onFull uint64, step stepper) (outcome, end) {
	if slot := c.find(key); slot != nil {
		return stepKnown(slot, key, step)
	}
	return insert(s, c, key, now, onFull, step)
}

// stepKnown is step 1 in slot, as long as it holds key (step_known).
func stepKnown(slot *Slot, key uint64, step stepper) (outcome, end) {
	state := slot.State()
	retries := uint64(0)
	// Whether one access read state together with the key.
	sure := false
	for range tries {
		next := step(state)
		var seen Pair
		if next.Next != state {
			var swapped bool
			if seen, swapped = slot.swap(Pair{key, state}, Pair{key, next.Next}); swapped {
				return outcome{verdict: next.Verdict, state: next.Next, retries: retries}, done
			}
			retries++
		} else {
			if sure {
				return outcome{verdict: next.Verdict, state: state, retries: retries}, done
			}
			// A refusal writes nothing, so no swap has shown that the state is this key's.
			seen = slot.Pair()
		}
		if seen.Key != key {
			return outcome{}, changed
		}
		if next.Next == state && seen.State == state {
			return outcome{verdict: next.Verdict, state: state, retries: retries}, done
		}
		state, sure = seen.State, true
	}
	return outcome{}, changed
}

// insert is step 2 of a request: the key is new (insert).
func insert(s *states, c *candidates, key, now, onFull uint64, step stepper) (outcome, end) {
	room, end := firstToExpire(s, c, key, now)
	if end != done {
		return outcome{}, end
	}
	first, begin := &room.first, room.state(s, key)
	next := step(begin)
	// The request is refused, or charges nothing. Then there is no state to store.
	if next.Next == begin {
		return outcome{verdict: next.Verdict, state: begin}, done
	}
	state, what := next.Next, eventEvicted
	if first.expires <= now {
		what = takenFrom(first.pair)
	} else {
		switch onFull {
		case onFullDeny:
			return outcome{verdict: core.Denied, event: eventRefused, until: first.expires}, done
		case onFullAllow:
			return outcome{verdict: next.Verdict, state: state, event: eventUnremembered}, done
		case onFullInherit:
			// A key that is between two slots owes at least until the first candidate expires.
			debt := begin
			if begin == 0 {
				debt = s.adopt(key, first.pair)
			}
			if s.foreign {
				return outcome{}, foreign
			}
			next = step(debt)
			if next.Next == debt {
				return outcome{verdict: next.Verdict, state: debt, event: eventRefusedByDebt}, done
			}
			if !take(first.slot, first.pair, Pair{key, next.Next}) {
				return outcome{}, changed
			}
			room.forget()
			return outcome{verdict: next.Verdict, state: next.Next, event: eventInherited}, done
		}
	}
	// If the fresh state expires earlier, its word keeps the slot's time beside it. If no word
	// does, the key owes until then.
	held, ok := s.stay(Pair{key, state}, first.expires, now, false)
	if state = held; !ok {
		state = s.owing(key, first.expires)
	}
	if s.foreign {
		return outcome{}, foreign
	}
	if room.mark.slot != nil && first.expires <= now {
		// The slot may get more of a debt than that of this request.
		reserved, ok := reserveSlot(s, *first, key)
		if !ok {
			return outcome{}, changed
		}
		*first, what = reserved, eventInserted
	}
	if !take(first.slot, first.pair, Pair{key, state}) {
		return outcome{}, changed
	}
	room.forget()
	return outcome{verdict: next.Verdict, state: state, event: what}, done
}

// take swaps next into a slot in which the caller read found (take).
func take(slot *Slot, found, next Pair) bool {
	_, swapped := slot.swap(found, next)
	return swapped
}

// takenFrom is the event of a new key that replaces found, which has expired (taken_from).
func takenFrom(found Pair) event {
	if found.isVacant() {
		return eventInserted
	}
	return eventReclaimed
}

// candidate is a slot, the pair that was read from it, and the time at which that pair expires (Candidate).
type candidate struct {
	slot    *Slot
	pair    Pair
	expires uint64
}

// room has the candidates of a key that no slot holds (Room).
type room struct {
	// first to expire; among equals the first in the key's order.
	first candidate
	// mark is the slot that the key has left, if a call is moving the key to another slot, or was killed before the key
	// was there. Its slot is nil otherwise.
	mark candidate
}

// state with which the key begins: 0, or the debt of a key that is between two slots (Room::state).
func (r *room) state(s *states, key uint64) uint64 {
	if r.mark.slot == nil {
		return 0
	}
	return s.owing(key, r.mark.expires)
}

// forget removes the key's mark: the key has a slot again, or begins anew (Room::forget).
func (r *room) forget() {
	if r.mark.slot != nil {
		removeMark(r.mark.slot, r.mark.pair)
	}
}

// firstToExpire has the candidates, none of which holds the key (first_to_expire). changed: a slot holds the key. If
// the key was there under a former version of its policy, the function has tried to convert it to this one.
func firstToExpire(s *states, c *candidates, key, now uint64) (r room, e end) {
	// The key's slot if it holds the key under a former version of its policy.
	var former candidate
	// Whether a key has left a slot that waits for its time.
	left := false
	place, begin := 0, int(key&tagMask%(2*slotsOfBucket))
	for turn := range candidatesOfKey {
		n := turn
		if n < 2*slotsOfBucket {
			n = (begin + turn) % (2 * slotsOfBucket)
		}
		slot := c.slot(n)
		// Reads both words at one instant, because a torn pair could have a later time than the slot ever had.
		pair := slot.Pair()
		isTagged := pair.Key != 0 && (pair.Key^key)&tagMask == 0
		if isTagged && pair.isVacant() && pair.State > max(now, r.mark.expires) {
			r.mark = candidate{slot, pair, pair.State}
		}
		left = left || pair.Key == 0 && pair.State > now
		if isTagged && !pair.isVacant() {
			switch s.relation(pair.Key, key) {
			case relationSame:
				return r, changed
			case relationFormer:
				former = candidate{slot, pair, s.expiresAt(pair)}
				continue
			case relationOther:
				// The pair may have been read before a sweep, whose caller has made the number of its version free since.
				if slot.Pair() != pair {
					return r, changed
				}
			}
		}
		if r.first.slot != nil && s.noSooner(pair, r.first.pair) {
			continue
		}
		expires := s.expiresAt(pair)
		if r.first.slot == nil || expires < r.first.expires || expires == 0 && r.first.expires == 0 && n < place {
			r.first, place = candidate{slot, pair, expires}, n
		}
	}
	if s.foreign {
		return r, foreign
	}
	if former.slot == nil {
		// This call may have read the key's new slot before the key moved there, and its old slot afterwards.
		for n := 0; left && n < candidatesOfKey; n++ {
			if found := c.slot(n).Key(); found&^tagMask != 0 && (found^key)&tagMask == 0 && s.relation(found,
				key) != relationOther {
				return r, changed
			}
		}
		return r, done
	}
	migrate(s, c, key, now, former, r.first)
	return r, changed
}

// migrate converts a key from the version in former to the current version of its policy, that of key (migrate).
// first is the first to expire of its other candidates. The caller must probe for the key again, whether this
// succeeds or not.
func migrate(s *states, c *candidates, key, now uint64, former, first candidate) {
	slot, pair, expires := former.slot, former.pair, former.expires
	// The key owes nothing any more, and a conversion could give it a debt.
	if expires <= now {
		s.vacate(slot, pair, Pair{0, expires}, key)
		return
	}
	next := Pair{key, s.convert(key, pair, now)}
	// The key stays in its slot, and the word keeps the slot's time: of itself, or beside the smaller debt.
	state, stays := s.stay(next, expires, now, true)
	if s.foreign {
		// Another call has freed a version meanwhile, and its record is a policy that Go cannot step.
		return
	}
	if stays {
		s.exchange(slot, pair, Pair{key, state}, key)
		return
	}
	if first.slot != nil && first.expires <= now {
		if next.State == 0 {
			s.vacate(slot, pair, Pair{0, expires}, key)
			return
		}
		// The key moves. It leaves the old slot first, or another call could convert it there meanwhile, and the key would
		// have two slots.
		mark := Pair{key & tagMask, expires}
		if reserved, ok := reserveSlot(s, first, key); ok && s.vacate(slot, pair, mark, key) && reinsert(s, c,
			next, now, reserved) {
			removeMark(slot, mark)
		}
		return
	}
	// No other slot has expired. The key stays, with a debt that is a microsecond late.
	state, stays = s.stay(next, expires, now, false)
	switch {
	case stays:
		next.State = state
	case next.State != 0:
		// No word has both. The key owes as long as under the former version; without a debt it leaves its slot.
		next.State = s.adopt(key, pair)
	default:
		s.vacate(slot, pair, Pair{0, expires}, key)
		return
	}
	if !s.foreign {
		s.exchange(slot, pair, next, key)
	}
}

// stay is the state of pair in its slot, which may not expire before expires (stay); false if no word says both.
func (s *states) stay(pair Pair, expires, now uint64, exact bool) (uint64, bool) {
	if pair.State != 0 && s.expiresAt(pair) >= expires {
		return pair.State, true
	}
	return s.hold(pair, expires, now, exact)
}

// exchange swaps the converted pair next into the slot (migrate). This call may have slept while a process freed the
// version's number and reused it. Then the slot may hold the same two words with another meaning. So exchange checks
// first that the version in key is still current. It returns false if it is not, or if another call has changed the
// slot.
func (s *states) exchange(slot *Slot, pair, next Pair, key uint64) bool {
	if !s.isCurrent(key) {
		return false
	}
	_, swapped := slot.swap(pair, next)
	return swapped
}

// vacate takes the key of pair out of its slot, for a conversion to the version of key.
func (s *states) vacate(slot *Slot, pair, vacant Pair, key uint64) bool {
	swapped := s.exchange(slot, pair, vacant, key)
	if swapped {
		s.vacated()
	}
	return swapped
}

// reinsert puts a key that has just left its slot into the slot first. If another key has taken first, the call
// chooses the slot that expires first now. It returns true if the key has a slot afterwards: from this call, or from
// a request for the key that found the mark and inserted the key meanwhile (protocol::reinsert).
func reinsert(s *states, c *candidates, key Pair, now uint64, first candidate) bool {
	for range tries {
		if take(first.slot, first.pair, key) {
			s.moved(eventInserted)
			return true
		}
		room, end := firstToExpire(s, c, key.Key, now)
		if end == changed {
			return true
		}
		if end == foreign || room.first.expires > now {
			// The mark stays, so the key owes until its former slot's time.
			return false
		}
		reserved, ok := reserveSlot(s, room.first, key.Key)
		if ok {
			first = reserved
		} else if !s.isCurrent(key.Key) {
			// The mark stays.
			return false
		}
	}
	return false
}

// reserveSlot makes swap 1 of a move: it stores the key's tag in free, a slot that has expired (reserve). To other
// calls the slot remains an expired one. It returns false if another call has changed the slot, or if the version in
// key is no longer current.
func reserveSlot(s *states, free candidate, key uint64) (candidate, bool) {
	reserved := Pair{key & tagMask, free.expires}
	if free.pair != reserved {
		if !take(free.slot, free.pair, reserved) {
			return free, false
		}
		if !free.pair.isVacant() {
			s.vacated()
		}
	}
	// Go's atomics have one order with all others. So either this call finds a change of the policy, or the sweep before
	// its number is free finds the tag.
	return candidate{free.slot, reserved, free.expires}, s.isCurrent(key)
}

// removeMark makes a marked slot an ordinary vacant one (remove_mark). If the swap fails, a key has taken the slot.
func removeMark(slot *Slot, mark Pair) { slot.swap(mark, Pair{0, mark.State}) }
