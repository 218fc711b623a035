package shared

import "github.com/tollbar/tollbar/bindings/go/internal/core"

// The protocol's view of states, as in src/table/policies/conversion.rs: when they expire, and how
// they are converted from one version of a policy to another.

// states are the functions of states for a request under a version (UnderVersion).
type states struct {
	policies *policies
	version  *version
	// foreign: a slot was met under a policy that Go cannot step, so its time of expiry is unknown. The request must end
	// with [core.NeedsLibrary] and change nothing: with another time than other processes compute it could give a key
	// two slots.
	foreign bool
}

// relation of a key word to the request's key word with the same tag (Relation).
type relation int

const (
	// relationOther: a key of another policy.
	relationOther relation = iota
	// relationFormer: the same key, under a version of its policy that has been replaced.
	relationFormer
	// relationSame: the same key, under the request's version, or under another one while the request's has been replaced.
	relationSame
)

// expiresAt is the time from which a slot's content is as good as fresh (States::expires_at). No swap makes it earlier.
func (s *states) expiresAt(pair Pair) uint64 {
	if pair.Key&^tagMask == s.version.key {
		return s.version.algorithm.ExpiresAt(pair.State)
	}
	if pair.isVacant() {
		return pair.State
	}
	v := s.named(pair.Key)
	if v == nil {
		// The key of a slot with an unknown version may have a debt, so no new key may take the slot.
		return core.NoTime
	}
	return v.algorithm.ExpiresAt(pair.State)
}

// named is the version that a key word names, or nil. It notes a version that Go cannot step.
func (s *states) named(key uint64) *version {
	v := s.policies.named(key)
	if v != nil && v.algorithm == nil {
		s.foreign = true
		return nil
	}
	return v
}

// noSooner reports whether a comparison of the words shows that pair expires no sooner than other (States::no_sooner).
func (s *states) noSooner(pair, other Pair) bool {
	return s.version.wordsAreTimes && pair.State >= other.State && pair.State <= core.TATMost &&
		pair.Key&^tagMask == s.version.key && other.Key&^tagMask == s.version.key
}

// relation says how found, a key word with the same tag as key, is related to key (States::relation).
func (s *states) relation(found, key uint64) relation {
	r := s.relationOfVersions(found, key)
	if r == relationFormer && core.IsClosed(s.version.algorithm) {
		// A limit of 0 refuses whatever the slot says, so the key keeps its word for the next version.
		return relationOther
	}
	return r
}

// relationOfVersions is Policies::relation.
func (s *states) relationOfVersions(found, key uint64) relation {
	// A request may have slept until its version's record was freed, or was taken by another policy. It must not insert
	// its key beside the existing one, so relationSame makes it try again. If the version is current and cannot be read,
	// its record is damaged, and trying again would not end.
	asked := s.policies.named(key)
	if asked == nil {
		for number := range s.policies.header.current {
			if versionOf(s.policies.header.current[number].Load()) == int(key>>tagBits) {
				return relationOther
			}
		}
		return relationSame
	}
	if asked.number != s.version.number || s.policies.stampFor(asked.number, hashOfTag(key&tagMask)) != asked.stamp {
		return relationSame
	}
	of := s.policies.named(found)
	switch {
	case of == nil || of.number != asked.number:
		return relationOther
	case of.stamp != asked.stamp:
		return relationFormer
	}
	return relationSame
}

// isCurrent reports whether a key word names the version that its key is under now (States::is_current).
func (s *states) isCurrent(key uint64) bool {
	return s.policies.stampFor(s.version.number, hashOfTag(key&tagMask)) == s.version.stamp
}

// adopt is the state of pair as a state of the version of key (States::adopt). It expires no earlier than pair.
func (s *states) adopt(key uint64, pair Pair) uint64 {
	to := s.named(key)
	if to == nil {
		return 0
	}
	if old := s.named(pair.Key); old != nil && !pair.isVacant() {
		return core.Adopt(to.algorithm, old.algorithm, pair.State)
	}
	return to.algorithm.Owing(s.expiresAt(pair))
}

// convert is the state at now of the key of pair under the version of key (States::convert). It may expire earlier
// than pair. 0: the key owes nothing.
func (s *states) convert(key uint64, pair Pair, now uint64) uint64 {
	to, old := s.named(key), s.named(pair.Key)
	if to != nil && old != nil {
		if full, ok := core.FullBeforeFloor(old.algorithm, pair.State); ok && full <= now {
			return 0
		}
		switch to.terms.from(old.terms) {
		case keepCount:
			return core.Convert(to.algorithm, old.algorithm, pair.State, now)
		case keepReset:
			// The slot of a key under a quota would never come free, so the key keeps it.
			unused, ok := core.UnusedInSlot(to.algorithm)
			if _, too := core.UnusedInSlot(old.algorithm); ok && too {
				return unused
			}
			return 0
		case keepTime:
			if !pair.isVacant() {
				return core.AdoptAt(to.algorithm, old.algorithm, pair.State, now)
			}
		}
	}
	return s.adopt(key, pair)
}

// owing is a state of key that owes at least until until (States::owing).
func (s *states) owing(key, until uint64) uint64 {
	v := s.named(key)
	if v == nil {
		return core.NoTime
	}
	return v.algorithm.Owing(until)
}

// hold is pair's state at now as one that expires at until or later, and otherwise decides as before (States::hold).
// false if no state does.
func (s *states) hold(pair Pair, until, now uint64, exact bool) (uint64, bool) {
	v := s.named(pair.Key)
	if v == nil {
		return 0, false
	}
	return core.Hold(v.algorithm, pair.State, until, now, exact)
}

// unused is the state after a reset of a key whose slot never comes free; false for other keys.
func (s *states) unused(pair Pair) (uint64, bool) {
	v := s.named(pair.Key)
	if v == nil {
		return 0, false
	}
	return core.UnusedInSlot(v.algorithm)
}

// unusedInSlot is the state after a reset of a key that finds no other slot, and whose slot is taken until expires
// (Policies::unused_in_slot); false if no state is.
func (s *states) unusedInSlot(pair Pair, expires, now uint64) (uint64, bool) {
	fresh := Pair{Key: pair.Key}
	if state, ok := s.hold(fresh, expires, now, true); ok {
		return state, true
	}
	return s.hold(fresh, expires, now, false)
}

// wordBeforeStop is the key word of a key under a limit of 0, which keeps its word under the former version of its
// policy (Policies::word_before_stop).
func (s *states) wordBeforeStop(c *candidates) (uint64, bool) {
	if !core.IsClosed(s.version.algorithm) {
		return 0, false
	}
	for n := range candidatesOfKey {
		pair := c.slot(n).Pair()
		if pair.isVacant() || pair.Key&tagMask != c.tag {
			continue
		}
		if v := s.named(pair.Key); v != nil && v.number == s.version.number {
			return pair.Key, true
		}
	}
	return 0, false
}

// vacated counts a key that the protocol has taken out of its slot (States::vacated).
func (s *states) vacated() { s.policies.count(countVacated, 1) }

// moved counts a key that has moved to another slot (States::moved).
func (s *states) moved(e event) { s.policies.countEvent(e, 0) }
