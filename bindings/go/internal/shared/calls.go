package shared

import "github.com/tollbar/tollbar/bindings/go/internal/core"

// The calls for one key, as in src/table/decide: calls.rs, charge.rs, booking.rs and give_back.rs.

// take takes cost permits, or none. The usual case is one try in the key's slot (Table::step_slow). If another call
// has changed the slot, nothing has been charged, and the protocol makes the request again.
func (p *Place) take(now, cost uint64) (*version, outcome, core.Code) {
	t, v := p.table, p.version
	c := t.candidates(p.hash)
	key := v.key | c.tag
	if slot := c.find(key); slot != nil {
		state := slot.State()
		step := v.algorithm.Step(state, now, cost)
		if slot.commit(key, state, step.Next) {
			t.noteTime(now)
			return v, outcome{verdict: step.Verdict, state: step.Next}, 0
		}
	}
	return p.request(now, func(a core.Algorithm, state uint64) core.Step { return a.Step(state, now, cost) })
}

// Take decides on cost permits, and counts the decision. A code below 0 is a refusal, too.
func (p *Place) Take(now, cost uint64) (core.Verdict, core.Code) {
	v, o, code := p.take(now, cost)
	if code != 0 {
		return core.Denied, code
	}
	p.count(v, o, now)
	return o.verdict, 0
}

// TakeFull is [Place.Take] with the full decision.
func (p *Place) TakeFull(now, cost uint64) (core.Answer, core.Code) {
	d, code := p.takeUncounted(now, cost)
	if code == 0 {
		p.Count(d)
	}
	return d, code
}

func (p *Place) takeUncounted(now, cost uint64) (core.Answer, core.Code) {
	v, o, code := p.take(now, cost)
	if code != 0 {
		return closed(reasonFault), code
	}
	return o.answer(v.algorithm, now, cost), 0
}

// PeekFull is the decision that a take would get, with the permits that are left before it (Table::try_peek,
// peek_under). It changes nothing, except that it may convert the key to the current version of its policy.
func (p *Place) PeekFull(now, cost uint64) (core.Answer, core.Code) {
	return p.peekBy(core.Peek, now, cost)
}

// PeekUncounted is [Place.PeekFull] of a request whose refusal would not count toward a ban; an error is a refusal.
func (p *Place) PeekUncounted(now, cost uint64) core.Answer {
	d, _ := p.peekBy(core.PeekUncounted, now, cost)
	return d
}

func (p *Place) peekBy(
	peek func(a core.Algorithm, word, now, cost uint64) core.Answer, now, cost uint64,
) (core.Answer, core.Code) {
	t, v := p.table, p.version
	c := t.candidates(p.hash)
	for round := range rounds {
		if round != 0 {
			var code core.Code
			if v, code = t.current(p.number, p.hash); code != 0 {
				return closed(reasonFault), code
			}
		}
		s := states{policies: &t.policies, version: v}
		key := v.key | c.tag
		if slot := c.find(key); slot != nil {
			if pair := slot.Pair(); pair.Key == key {
				return peek(v.algorithm, pair.State, now, cost), 0
			}
			continue
		}
		room, end := firstToExpire(&s, &c, key, now)
		switch end {
		case changed:
			continue
		case foreign:
			return closed(reasonFault), core.NeedsLibrary
		}
		fresh := peek(v.algorithm, room.state(&s, key), now, cost)
		if cost == 0 || room.first.expires <= now {
			return fresh, 0
		}
		switch {
		case t.fixed.onFull == onFullDeny && fresh.Verdict == core.Allowed:
			return full(room.first.expires, now), 0
		case t.fixed.onFull == onFullAllow && fresh.Verdict == core.Allowed:
			fresh.Reason = reasonTableFull
		case t.fixed.onFull == onFullInherit:
			debt := s.adopt(key, room.first.pair)
			if s.foreign {
				return closed(reasonFault), core.NeedsLibrary
			}
			d := peek(v.algorithm, debt, now, cost)
			if d.Verdict == core.Denied {
				d.Reason = reasonInheritedDebt
			}
			return d, 0
		}
		return fresh, 0
	}
	return closed(reasonFault), errCorrupt
}

// TakeUpTo takes all permits that are left, most at the most (Table::try_take_up_to), and counts the decision.
func (p *Place) TakeUpTo(now, most uint64) (taken uint64, code core.Code) {
	v, o, code := p.request(now, func(a core.Algorithm, state uint64) core.Step {
		taken = min(a.Available(state, now), most)
		// A bucket that starts without permits begins to refill at its first request, so the state must be stored.
		if taken == 0 && state == 0 {
			taken = min(most, 1)
		}
		if taken == 0 {
			return core.Step{Verdict: core.Denied, Next: state}
		}
		return a.Step(state, now, taken)
	})
	switch {
	case code != 0:
		return 0, code
	case o.verdict != core.Allowed:
		taken = 0
	}
	if taken == 0 {
		o.verdict = core.Denied
	}
	p.count(v, o, now)
	return taken, 0
}

// Charge charges permits without a decision, and returns the rest that the state has no room for (Table::try_charge).
func (p *Place) Charge(now, cost uint64) (rest uint64, code core.Code) {
	_, o, code := p.request(now, func(a core.Algorithm, state uint64) core.Step {
		next, left := a.Charge(state, now, cost)
		rest = left
		return core.Step{Verdict: core.Allowed, Next: next}
	})
	switch {
	case code != 0:
		return 0, code
	case o.event == eventRefused || o.event == eventUnremembered:
		return cost, 0
	}
	return rest, 0
}

// Reserve takes permits ahead of time, for a time up to latest, and returns that time and the number of permits that
// the key was charged (Table::try_reserve). It counts the decision.
func (p *Place) Reserve(now, cost, latest uint64) (at, charged uint64, verdict core.Verdict, code core.Code) {
	at = now
	v, o, code := p.request(now, func(a core.Algorithm, state uint64) core.Step {
		if cost == 0 {
			return core.Step{Verdict: core.Allowed, Next: state}
		}
		next, earliest, ok := a.Reserve(state, now, cost)
		if ok && earliest <= latest {
			if earliest > now {
				// Before the swap, so that a call that gives back permits of this key and reads the swapped state sees the note.
				p.table.noteBooking(p.number)
			}
			at = earliest
			return core.Step{Verdict: core.Allowed, Next: next}
		}
		step := a.Step(state, now, cost)
		switch {
		case step.Verdict == core.Never:
			return core.Step{Verdict: core.Never, Next: state}
		case step.Verdict == core.Denied && state == 0 && a.BooksAhead() && !a.CountsRefusals():
			// A bucket with init begins to fill at its first request.
			return step
		}
		return core.Step{Verdict: core.Denied, Next: state}
	})
	if code != 0 {
		return 0, 0, core.Denied, code
	}
	p.count(v, o, now)
	switch {
	case o.verdict != core.Allowed:
		return 0, 0, o.verdict, 0
	case o.event == eventUnremembered:
		return at, 0, core.Allowed, 0
	}
	return at, cost, core.Allowed, 0
}

// Return gives the unused permits of a charge back, and returns their number (Table::give_back_of, slots/give_back.rs).
func (p *Place) Return(charge core.Charge, now func() uint64) (uint64, core.Code) {
	t, v := p.table, p.version
	c := t.candidates(p.hash)
	for round := range rounds {
		if round != 0 {
			var code core.Code
			if v, code = t.current(p.number, p.hash); code != 0 {
				return 0, code
			}
		}
		key := v.key | c.tag
		slot := c.find(key)
		if slot == nil {
			s := states{policies: &t.policies, version: v}
			switch _, end := firstToExpire(&s, &c, key, now()); end {
			case changed:
				// The key was under a former version of its policy, and this or another call has converted it.
				continue
			case foreign:
				return 0, core.NeedsLibrary
			}
			return 0, 0
		}
		permits, end := p.returnTo(slot, v, charge, now)
		if end == done {
			return permits, 0
		}
	}
	return 0, errCorrupt
}

// returnTo tries once to give permits of a charge back to the key under v in slot, in the key's turn (give_back of
// slots/give_back.rs).
func (p *Place) returnTo(slot *Slot, v *version, charge core.Charge, now func() uint64) (permits uint64, e end) {
	t := p.table
	turn := t.turn(tag(p.hash))
	if turn == nil {
		return 0, done
	}
	defer turn.Store(0)
	pair := slot.Pair()
	if pair.Key != v.key|tag(p.hash) {
		return 0, changed
	}
	// The flags and the time must be read after the state: see GiveBack in src/algorithm/mod.rs.
	if t.hasCredit(p.number) {
		return 0, done
	}
	back := core.GiveBack{Charge: charge, Booked: t.hasBookings(p.number)}
	next, permits := v.algorithm.GiveBack(pair.State, now(), &back)
	if next == pair.State {
		return 0, done
	}
	if _, swapped := slot.swap(pair, Pair{pair.Key, next}); !swapped {
		return 0, changed
	}
	return permits, done
}

// Reset lets the key begin again with a fresh state, and returns whether it does (Table::reset_at). If no other slot
// of the key is free, a key under gcra begins again in its slot. Under other algorithms it changes nothing then, and
// returns false.
func (t *Table) Reset(number uint32, key string, now uint64) (bool, core.Code) {
	if t.currentStamp(number) == 0 {
		return false, errNoSuchPolicy
	}
	if key == "" {
		// No slot holds it.
		return true, 0
	}
	hash := t.secrets.hash(key) ^ salt(number)
	c := t.candidates(hash)
	for range rounds {
		v, code := t.current(number, hash)
		if code != 0 {
			return false, code
		}
		s := states{policies: &t.policies, version: v}
		// Under a limit of 0 the key keeps its word under the former version.
		word, stopped := s.wordBeforeStop(&c)
		if !stopped {
			word = v.key | c.tag
		}
		slot := c.find(word)
		if slot == nil {
			room, end := firstToExpire(&s, &c, word, now)
			switch end {
			case changed:
				continue
			case foreign:
				return false, core.NeedsLibrary
			}
			// A killed call may have left the key between two slots.
			room.forget()
			return true, 0
		}
		pair := slot.Pair()
		if pair.Key != word {
			continue
		}
		expires := s.expiresAt(pair)
		if expires <= now {
			return true, 0
		}
		// If the slot would never come free, or no other one is free, the key keeps it.
		unused, stays := s.unused(pair)
		if !stays && !s.hasRoom(&c, pair.Key, now) {
			if s.foreign {
				return false, core.NeedsLibrary
			}
			if unused, stays = s.unusedInSlot(pair, expires, now); !stays {
				return false, 0
			}
		}
		if !stays {
			if s.vacate(slot, pair, Pair{0, expires}, pair.Key) {
				t.count(countResets, 1)
				return true, 0
			}
			continue
		}
		// The reset lowers the state, so it takes the turn of a return.
		turn := t.turn(c.tag)
		if turn == nil {
			return false, 0
		}
		_, swapped := slot.swap(pair, Pair{pair.Key, unused})
		if turn.Store(0); swapped {
			t.count(countResets, 1)
			return true, 0
		}
	}
	return false, errCorrupt
}

// hasRoom reports whether a candidate other than the slot of key has expired (Table::has_room).
func (s *states) hasRoom(c *candidates, key, now uint64) bool {
	for n := range candidatesOfKey {
		if pair := c.slot(n).Pair(); pair.Key != key && s.expiresAt(pair) <= now {
			return true
		}
	}
	return false
}

// PolicyOf is the current policy of a number (Table::policy).
func (t *Table) PolicyOf(number uint32) (core.Policy, core.Code) {
	v, code := t.currentVersion(number)
	if code != 0 {
		return core.Policy{}, code
	}
	return v.policy, 0
}

func (t *Table) currentVersion(number uint32) (*version, core.Code) {
	for range rounds {
		stamp := t.currentStamp(number)
		if stamp == 0 {
			return nil, errNoSuchPolicy
		}
		switch v := t.version(stamp); {
		case v != nil && v.algorithm == nil:
			return nil, core.NeedsLibrary
		case v != nil:
			return v, 0
		case t.currentStamp(number) == stamp:
			return nil, errCorrupt
		}
	}
	return nil, errCorrupt
}

// Policy is the key's compiled policy.
func (p *Place) Policy() *core.Policy { return &p.version.policy }

// ---- a key as one of several limits (core.Limit) ----

// Same reports whether both are one key under one policy of one table, maybe through two views of its file.
func (p Place) Same(q Place) bool {
	return p.number == q.number && p.hash == q.hash && (p.table == q.table || p.table.region.is(&q.table.region))
}

// Peek is [Place.PeekFull]; an error is a refusal.
func (p Place) Peek(now, cost uint64) core.Answer {
	d, _ := p.PeekFull(now, cost)
	return d
}

// Check takes permits without counting the decision; an error is a refusal.
func (p Place) Check(now, cost uint64) core.Answer {
	d, _ := p.takeUncounted(now, cost)
	return d
}

// GiveBack is [Place.Return]; after an error nothing went back.
func (p Place) GiveBack(charge core.Charge, now func() uint64) uint64 {
	permits, _ := p.Return(charge, now)
	return permits
}

// Count counts a decision.
func (p Place) Count(decision core.Answer) {
	p.table.countDecision(p.number, decision.Verdict)
	p.table.countReason(decision.Reason)
}

// count counts the decision of a call that returns no reason. It finds out whether a ban has refused the request.
func (p *Place) count(v *version, o outcome, now uint64) {
	p.table.countDecision(p.number, o.verdict)
	if o.verdict == core.Denied && core.Bans(v.algorithm, o.state, now) {
		p.table.countReason(reasonBanned)
	}
}

// Algorithm is the key's compiled policy.
func (p Place) Algorithm() core.Algorithm { return p.version.algorithm }

// Rank is the key's place in the order of limits that refill equally fast. It is the same in all processes.
func (p Place) Rank() uint64 { return tag(p.hash) }
