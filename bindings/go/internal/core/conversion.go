package core

import "math"

// Words that come from one policy to another: of a key whose policy changes. The functions have the
// names that they have in src/algorithm/rule/conversion.rs, which says what they
// keep and why. Both algorithms are of words in slots ([InSlots]).

// sameRule reports whether both are one compiled policy.
func sameRule(a, b Algorithm) bool {
	switch a := a.(type) {
	case Closed:
		_, same := b.(Closed)
		return same
	case *SlotBucket:
		b, ok := b.(*SlotBucket)
		return ok && *a == *b
	case *Ban:
		b, ok := b.(*Ban)
		return ok && *a == *b
	case *Interval:
		b, ok := b.(*Interval)
		return ok && *a == *b
	case *FixedWindow:
		b, ok := b.(*FixedWindow)
		return ok && *a == *b
	case *WeightedWindow:
		b, ok := b.(*WeightedWindow)
		return ok && *a == *b
	case *Pacer:
		b, ok := b.(*Pacer)
		return ok && *a == *b
	case *Quota:
		b, ok := b.(*Quota)
		return ok && *a == *b
	}
	return false
}

// Adopt moves a word of old to a, and keeps the time until which it owes (Rule::adopt). The result
// expires no earlier than word did under old, and is 0 only for 0.
func Adopt(a, old Algorithm, word uint64) uint64 {
	if word == 0 || sameRule(a, old) {
		return word
	}
	if next, ok := adoptAlike(a, old, word); ok && next != 0 {
		return next
	}
	return a.Owing(old.ExpiresAt(word))
}

// adoptAlike keeps the permits used, between algorithms that count alike (Rule::adopt_alike).
func adoptAlike(a, old Algorithm, word uint64) (next uint64, ok bool) {
	switch a := a.(type) {
	case *Interval:
		old, ok := old.(*Interval)
		return word, ok && a.period == old.period && a.limit == old.limit
	case *FixedWindow:
		if old, ok := old.(*FixedWindow); ok && a.interval == old.interval {
			return a.adopt(old, word)
		}
	case *WeightedWindow:
		if old, ok := old.(*WeightedWindow); ok {
			return a.adopt(old, word)
		}
	case *Ban:
		if old, ok := old.(*Ban); ok {
			return a.adopt(old, word)
		}
	case *Quota:
		switch old := old.(type) {
		case Closed:
			// A closed rule's word holds a quota's count or a time. A time says no number of
			// permits, so it counts as none.
			count, _ := closedCount(word)
			return a.used(count), true
		case *Quota:
			return a.used(old.usedOf(word)), true
		}
	case Closed:
		if old, ok := old.(*Quota); ok {
			return addUpTo(LastTime+1, old.usedOf(word)), true
		}
	}
	return 0, false
}

// Convert moves a word of old to a, and keeps its permits as a number (Rule::convert). a takes over
// at now. The result is 0 for a fresh state.
func Convert(a, old Algorithm, word, now uint64) uint64 {
	if word == 0 || sameRule(a, old) {
		return word
	}
	if banned, ok := keepBan(a, old, word, now); ok {
		return banned
	}
	if b, ok := a.(*SlotBucket); ok {
		if old, ok := old.(*SlotBucket); ok {
			return b.convert(old, word, now)
		}
	}
	if next, ok := adoptAlike(a, old, word); ok && next != 0 {
		return next
	}
	if IsClosed(a) || IsClosed(old) {
		return AdoptAt(a, old, word, now)
	}
	lacking := subTo0(a.Available(0, now), old.Available(word, now))
	return charged(a, addUpTo(lacking, debt(old, word, now)), now)
}

// AdoptAt is [Adopt] at a known time (Rule::adopt_at): the end of a ban stays, and between a quota
// and another algorithm the permits used are kept.
func AdoptAt(a, old Algorithm, word, now uint64) uint64 {
	if banned, ok := keepBan(a, old, word, now); ok {
		return banned
	}
	if !IsClosed(a) && !IsClosed(old) && isQuota(a) != isQuota(old) {
		return charged(a, owed(old, word, now), now)
	}
	if count, ok := closedCount(word); ok && IsClosed(old) && !IsClosed(a) && !isQuota(a) {
		return charged(a, count, now)
	}
	if full, ok := FullBeforeFloor(old, word); ok && !sameRule(a, old) {
		return a.Owing(full)
	}
	return Adopt(a, old, word)
}

// FullBeforeFloor is the time at which a bucket is full whose slot stays taken for longer
// (Rule::full_before_floor); false for other words.
func FullBeforeFloor(a Algorithm, word uint64) (full uint64, ok bool) {
	b, ok := a.(*SlotBucket)
	if !ok || !b.floors.isLowered(word) {
		return 0, false
	}
	full = b.FreshAt(word, 0)
	return full, full != NoTime
}

// Hold is word in a slot that stays taken until the given time, at now (Rule::hold). With exact the
// debt is kept to the unit, and otherwise the time to a 64th. false if no word of the algorithm
// says so.
func Hold(a Algorithm, word, until, now uint64, exact bool) (uint64, bool) {
	if b, ok := a.(*SlotBucket); ok {
		return b.hold(word, until, now, exact)
	}
	return 0, false
}

// UnusedInSlot is the word that a reset stores for an algorithm whose words never expire
// (Algorithm::unused_in_slot); false for others.
func UnusedInSlot(a Algorithm) (uint64, bool) { return 1, isQuota(a) }

// IsClosed reports whether the algorithm is a limit of 0.
func IsClosed(a Algorithm) bool {
	_, closed := a.(Closed)
	return closed
}

// WordsAreTimes reports whether of two words of at most [TATMost] the greater one expires no sooner
// (Rule::words_are_times).
func WordsAreTimes(a Algorithm) bool {
	switch a.(type) {
	case *SlotBucket, *Ban, *Pacer:
		return true
	}
	return false
}

func isQuota(a Algorithm) bool {
	_, quota := a.(*Quota)
	return quota
}

// keepBan is the word of a key that old has banned at now: the ban ends at the same time (Rule::keep_ban).
func keepBan(a, old Algorithm, word, now uint64) (uint64, bool) {
	ban, ok := a.(*Ban)
	from, too := old.(*Ban)
	if !ok || !too || !from.isBanned(word, now) {
		return 0, false
	}
	tat, _ := from.unpack(word)
	end := from.end(tat)
	return ban.pack(ban.banned(end), ban.after), end != NoTime
}

// debt is the number of permits that a key must regain before it has none left and owes none (Rule::debt).
func debt(a Algorithm, word, now uint64) uint64 {
	switch a := a.(type) {
	case *SlotBucket:
		return a.debt(word, now)
	case *Pacer:
		return subTo0(subTo0(word, a.clock(now)), 1) / a.grid.PerPermit
	case *Interval:
		return subTo0(word, addUpTo(a.clock(now), a.burst))
	case *Ban:
		return a.debt(word, now)
	}
	return 0
}

// owed is the number of permits by which a word falls short of a fresh one at now, rounded up (Rule::owed).
func owed(a Algorithm, word, now uint64) uint64 {
	if word == 0 {
		return 0
	}
	if p, ok := a.(*Pacer); ok {
		return divCeil(subTo0(word, p.grid.Units(now)), p.grid.PerPermit)
	}
	return addUpTo(subTo0(a.Available(0, now), a.Available(word, now)), debt(a, word, now))
}

// charged is a word that falls short of a fresh one at now by permits (Rule::charged); 0 for no permits.
func charged(a Algorithm, permits, now uint64) uint64 {
	if permits == 0 {
		return 0
	}
	switch a := a.(type) {
	case *Pacer:
		return addUpTo(a.grid.Units(now), min(mulUpTo(permits, a.grid.PerPermit), a.burst))
	case *SlotBucket:
		next, _ := a.Charge(0, now, permits)
		return next
	case *Interval:
		next, _ := a.Charge(0, now, permits)
		return next
	case *Ban:
		return a.charged(permits, now)
	}
	// At least 1: a bucket that starts empty refuses this request, and stores the time at which it began to fill.
	return a.Step(0, now, max(min(permits, a.Available(0, now)), 1)).Next
}

// closedCount is the count of a quota that became a limit of 0: a word after the last time holds it, and never expires.
func closedCount(word uint64) (uint64, bool) {
	if word == NoTime {
		return math.MaxUint64, true
	}
	return word - (LastTime + 1), word > LastTime
}

// adopt keeps the permits used in windows of one length (FixedWindow::adopt).
func (w *FixedWindow) adopt(old *FixedWindow, word uint64) (uint64, bool) {
	start, used := word/old.radix, word%old.radix
	if w.period != old.period || w.anchored != old.anchored || start > old.starts {
		return 0, false
	}
	if w.grain != old.grain {
		from := mulUpTo(subTo0(start, 1), old.grain)
		if from == math.MaxUint64 {
			return 0, false
		}
		start = addUpTo(divCeil(from, w.grain), 1)
	}
	return w.word(start, min(used, w.limit)), start <= w.starts
}

// adopt keeps the permits used in windows of one length (WeightedWindow::adopt).
func (w *WeightedWindow) adopt(old *WeightedWindow, word uint64) (uint64, bool) {
	window, previous, current := old.unpack(word)
	if w.period != old.period || window > min(w.windows, old.windows) {
		return 0, false
	}
	lasting := !old.isOwing(previous, current)
	previous, current = min(previous, w.limit), min(current, w.limit)
	if lasting && w.isOwing(previous, current) {
		// A permit keeps the time of expiry.
		current = 1
	}
	return w.pack(counts{window: window, previous: previous, current: current}), true
}

// end is the time at which a ban with this TAT ends, or NoTime (Ban::end).
func (b *Ban) end(tat uint64) uint64 {
	return until(b.bucket.Last, b.bucket.Grid.Nanos(b.due(tat, b.bucket.Grid.PerPermit)))
}

// adopt keeps a ban until the same time, or longer if the debt lasts longer (Ban::adopt). false for
// a key that is not banned.
func (b *Ban) adopt(old *Ban, word uint64) (uint64, bool) {
	tat, mark := old.unpack(word)
	if mark < old.after {
		return 0, false
	}
	owed, _ := b.unpack(b.Owing(old.ExpiresAt(word)))
	return b.pack(max(b.banned(old.end(tat)), owed), b.after), true
}

// debt is the number of permits, rounded up, that the limit must refill before the first one can be
// taken; 0 for a banned key (Ban::debt).
func (b *Ban) debt(word, now uint64) uint64 {
	clock := b.bucket.Grid.Units(now)
	tat, _, ok := b.here(word, clock)
	if !ok {
		return 0
	}
	return divCeil(subTo0(tat, addUpTo(clock, b.bucket.Tolerance)), b.bucket.Grid.PerPermit)
}

// charged is the word of a key without refusals that lacks permits of its burst, or owes up to
// another burst (Ban::charged).
func (b *Ban) charged(permits, now uint64) uint64 {
	if now > b.bucket.Last {
		return 0
	}
	units := min(mulUpTo(permits, b.bucket.Grid.PerPermit), mulUpTo(b.bucket.Tolerance, 2))
	return b.pack(addUpTo(b.bucket.Grid.UnitsInTime(now), units), 0)
}

func (q *Quota) used(permits uint64) uint64 { return min(permits, q.limit) + 1 }

func (q *Quota) usedOf(word uint64) uint64 { return min(subTo0(word, 1), q.limit) }
