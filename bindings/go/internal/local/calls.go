package local

import "github.com/tollbar/tollbar/bindings/go/internal/core"

// Numbers of what a new key gets if none of its slots is free, and of the answers to a request
// without a key.
const (
	onFullInherit = 1
	onFullAllow   = 2
	onFullDeny    = 3

	missingAllow  = 1
	missingReport = 2
)

// Reasons of decisions that a table gives, with their numbers in tollbar.h.
const (
	reasonTableFull     = 3
	reasonInheritedDebt = 4
	reasonMissingKey    = 5
	reasonFault         = 8
)

// withoutKey is the decision on a request with an empty key.
func (t *Table) withoutKey() (core.Answer, core.Code) {
	switch t.options.Missing {
	case missingAllow:
		return core.Answer{Verdict: core.Allowed, Reason: reasonMissingKey, Remaining: core.NoTime}, 0
	case missingReport:
		return closed(reasonFault), errMissingKey
	}
	return closed(reasonMissingKey), 0
}

// closed is a refusal for ever.
func closed(reason uint32) core.Answer {
	return core.Answer{Verdict: core.Denied, Reason: reason, RetryAfter: core.NoTime, ResetAfter: core.NoTime}
}

// full is a refusal by a full table, until a slot is free.
func full(until, now uint64) core.Answer {
	wait := core.After(until, now)
	return core.Answer{Verdict: core.Denied, Reason: reasonTableFull, RetryAfter: wait, ResetAfter: wait}
}

// outcome is the result of a request: the verdict, the key's state after it, and what the table
// did.
type outcome struct {
	verdict core.Verdict
	state   uint64
	// reason, if the table and not the policy has decided.
	reason uint32
	// until is the time at which a slot is free, for a refusal by a full table.
	until uint64
}

// request makes a step of the key's state, or of a fresh one for a new key. A step that keeps the
// state stores nothing.
func (k Key) request(now uint64, step func(a core.Algorithm, state uint64) core.Step) outcome {
	s, a := k.shard(), k.Algorithm()
	s.lock.Lock()
	defer s.lock.Unlock()
	if found := k.find(s); found != nil {
		next := step(a, found.state)
		found.state = next.Next
		return outcome{verdict: next.Verdict, state: next.Next}
	}
	next := step(a, 0)
	if next.Next == 0 {
		// The request is refused, or charges nothing.
		return outcome{verdict: next.Verdict}
	}
	free, expires := k.room(s)
	o := outcome{verdict: next.Verdict, state: next.Next}
	if expires > now {
		switch k.table.options.OnFull {
		case onFullDeny:
			return outcome{verdict: core.Denied, reason: reasonTableFull, until: expires}
		case onFullAllow:
			o.reason = reasonTableFull
			return o
		case onFullInherit:
			debt := k.inherited(free, expires)
			if next = step(a, debt); next.Next == debt {
				return outcome{verdict: next.Verdict, state: debt, reason: reasonInheritedDebt}
			}
			o = outcome{verdict: next.Verdict, state: next.Next}
		}
	}
	*free = slot{k.key, o.state}
	return o
}

// inherited is the state with which the key takes over a slot that expires at the given time.
func (k Key) inherited(from *slot, expires uint64) uint64 {
	if from.key&(PoliciesMost-1) == k.number() {
		return from.state
	}
	return k.Algorithm().Owing(expires)
}

// answer is the full decision of an outcome.
func (k Key) answer(o outcome, now, cost uint64) core.Answer {
	if o.until != 0 {
		return full(o.until, now)
	}
	d := core.Describe(k.Algorithm(), o.verdict, o.state, now, cost)
	if o.reason != 0 {
		d.Reason = o.reason
	}
	return d
}

// Take decides on cost permits.
func (k Key) Take(now, cost uint64) core.Verdict {
	return k.request(now, func(a core.Algorithm, state uint64) core.Step { return a.Step(state, now, cost) }).verdict
}

// Check decides on cost permits, and returns the full decision.
func (k Key) Check(now, cost uint64) core.Answer {
	o := k.request(now, func(a core.Algorithm, state uint64) core.Step { return a.Step(state, now, cost) })
	return k.answer(o, now, cost)
}

// Peek is the decision that Check would return. It changes nothing.
func (k Key) Peek(now, cost uint64) core.Answer { return k.peek(core.Peek, now, cost) }

// PeekUncounted is Peek of a request whose refusal would not count toward a ban.
func (k Key) PeekUncounted(now, cost uint64) core.Answer {
	return k.peek(core.PeekUncounted, now, cost)
}

func (k Key) peek(by func(a core.Algorithm, word, now, cost uint64) core.Answer, now, cost uint64) core.Answer {
	s, a := k.shard(), k.Algorithm()
	s.lock.Lock()
	defer s.lock.Unlock()
	if found := k.find(s); found != nil {
		return by(a, found.state, now, cost)
	}
	fresh := by(a, 0, now, cost)
	free, expires := k.room(s)
	if cost == 0 || expires <= now {
		return fresh
	}
	switch k.table.options.OnFull {
	case onFullDeny:
		if fresh.Verdict == core.Allowed {
			return full(expires, now)
		}
	case onFullAllow:
		if fresh.Verdict == core.Allowed {
			fresh.Reason = reasonTableFull
		}
	case onFullInherit:
		d := by(a, k.inherited(free, expires), now, cost)
		if d.Verdict == core.Denied {
			d.Reason = reasonInheritedDebt
		}
		return d
	}
	return fresh
}

// TakeUpTo takes all permits that are left, most at the most.
func (k Key) TakeUpTo(now, most uint64) (taken uint64) {
	o := k.request(now, func(a core.Algorithm, state uint64) core.Step {
		taken = core.Takes(a, state, now, most)
		// A bucket that starts without permits begins to refill at its first request, so the state
		// must be stored.
		if taken == 0 && state == 0 {
			taken = min(most, 1)
		}
		if taken == 0 {
			return core.Step{Verdict: core.Denied, Next: state}
		}
		return a.Step(state, now, taken)
	})
	if o.verdict != core.Allowed {
		return 0
	}
	return taken
}

// Charge charges permits without a decision, and returns the rest that the state has no room for.
func (k Key) Charge(now, cost uint64) (rest uint64) {
	o := k.request(now, func(a core.Algorithm, state uint64) core.Step {
		next, left := a.Charge(state, now, cost)
		rest = left
		return core.Step{Verdict: core.Allowed, Next: next}
	})
	if o.reason == reasonTableFull {
		return cost
	}
	return rest
}

// Reserve takes permits ahead of time, for a time up to latest, and returns that time and the
// number of permits that the key was charged.
func (k Key) Reserve(now, cost, latest uint64) (at, charged uint64, verdict core.Verdict) {
	at = now
	o := k.request(now, func(a core.Algorithm, state uint64) core.Step {
		if cost == 0 {
			return core.Step{Verdict: core.Allowed, Next: state}
		}
		next, earliest, ok := a.Reserve(state, now, cost)
		if ok && earliest <= latest {
			if earliest > now {
				k.table.booked[k.number()].Store(true)
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
	switch {
	case o.verdict != core.Allowed:
		return 0, 0, o.verdict
	case o.reason == reasonTableFull:
		return at, 0, core.Allowed
	}
	return at, cost, core.Allowed
}

// GiveBack gives the unused permits of a charge back, and returns their number.
func (k Key) GiveBack(charge core.Charge, now func() uint64) (permits uint64) {
	s, a := k.shard(), k.Algorithm()
	s.lock.Lock()
	defer s.lock.Unlock()
	if found := k.find(s); found != nil {
		// The time is read after the state: with an older one it would return permits that the
		// limit has refilled since.
		back := core.GiveBack{Charge: charge, Booked: k.table.booked[k.number()].Load()}
		found.state, permits = a.GiveBack(found.state, now(), &back)
	}
	return permits
}

// Reset gives the key a fresh state, unless it owes nothing at now: an idle bucket may have more
// permits than a fresh one.
func (k Key) Reset(now uint64) {
	s := k.shard()
	s.lock.Lock()
	defer s.lock.Unlock()
	if found := k.find(s); found != nil && k.table.expiresAt(found) > now {
		*found = slot{}
	}
}

// Count does nothing: no call without the library tells how many decisions there were.
func (Key) Count(core.Answer) {}
