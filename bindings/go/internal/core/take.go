package core

// Limit is a limiter's word, or a key of a table, as one of several limits. Check counts no
// decision.
type Limit interface {
	// Peek returns the decision that Charge would make.
	Peek(now, cost uint64) Answer
	// Check charges.
	Check(now, cost uint64) Answer
	// GiveBack gives a charge back.
	GiveBack(charge Charge, now func() uint64) uint64
	// Algorithm is the compiled policy.
	Algorithm() Algorithm
	// Count counts the decision on a request with several limits.
	Count(decision Answer)
	// Rank is the order of limits that refill equally fast. It is the same for all goroutines.
	Rank() uint64
}

// Uncounted is a limiter whose decisions are not counted.
type Uncounted struct{ *Limiter }

// Check charges.
func (l Uncounted) Check(now, cost uint64) Answer {
	l.note(now)
	verdict, word := Take(&l.word, l.algorithm, now, cost)
	if verdict == Allowed && cost != 0 {
		l.admitted(now)
	}
	return Describe(l.algorithm, verdict, word, now, cost)
}

// Count counts a decision.
func (l Uncounted) Count(decision Answer) { l.count(decision.Verdict) }

// Rank is the limiter's number in this process.
func (l Uncounted) Rank() uint64 { return l.serial }

// Part is a limit of a request, and the sum of its costs if the request names it several times.
type Part struct {
	Limit Limit
	// Index of the limit in the request: that of the first, if it is named several times.
	Index int
	Cost  uint64
	Now   uint64
	// Clock is the time for a charge that is given back.
	Clock func() uint64
	// Decided is the limit's decision; if another limit refuses, the one that this limit would make
	// alone.
	Decided Answer
	refuses bool
}

// Taken is the common answer of several limits: the decision of the binding one with the least
// permits and the longest waits of all, and its index among the parts.
type Taken struct {
	Answer Answer
	Bound  int
}

// TakeAll charges each part with its cost, or charges none. src/take_many/mod.rs has the guarantee
// and the reason for the order: limits that refill a permit fastest come first, and limits that
// cannot take permits back last.
func TakeAll(parts []Part) Taken {
	admits := true
	for i := range parts {
		p := &parts[i]
		p.refuses = p.Limit.Peek(p.Now, p.Cost).Verdict != Allowed
		admits = admits && !p.refuses
	}
	if !admits {
		for i := range parts {
			if parts[i].refuses {
				parts[i].refuse()
			}
		}
		return refused(parts)
	}
	order := orderOf(parts)
	for n, i := range order {
		if parts[i].Decided = parts[i].Limit.Check(parts[i].Now, parts[i].Cost); parts[i].Decided.Verdict == Allowed {
			continue
		}
		for _, charged := range order[:n] {
			parts[charged].undo()
			parts[charged].Decided = Answer{}
		}
		return refused(parts)
	}
	all := Taken{parts[0].Decided, 0}
	for i := 1; i < len(parts); i++ {
		all = all.and(parts[i].Decided, i, parts[i].Decided.Remaining < all.Answer.Remaining)
	}
	for i := range parts {
		parts[i].Limit.Count(parts[i].Decided)
	}
	return all
}

// refused combines the decisions of the limits on a refused request.
func refused(parts []Part) Taken {
	all := Taken{}
	for i := range parts {
		p := &parts[i]
		// A limit that refused its charge may have permits again now. The decision is still its
		// refusal.
		if p.Decided.Verdict == Allowed {
			p.Decided = p.Limit.Peek(p.Now, p.Cost)
		}
		if i == 0 {
			all = Taken{p.Decided, 0}
			continue
		}
		d, worst := p.Decided, all.Answer
		all = all.and(d, i, d.Verdict > worst.Verdict || d.Verdict == worst.Verdict && d.RetryAfter > worst.RetryAfter)
	}
	bound := all.Bound
	if all.Answer.Verdict == Allowed {
		// One limit refused the request, and now all limits would admit it.
		all = Taken{Answer{Verdict: Denied, Reason: uint32(Denied)}, 0}
	}
	parts[bound].Limit.Count(all.Answer)
	return all
}

// and combines the answers of two limits. binds says that `one` is the binding limit of both.
func (t Taken) and(one Answer, index int, binds bool) Taken {
	all := t
	if binds {
		all = Taken{one, index}
	}
	all.Answer.Remaining = min(t.Answer.Remaining, one.Remaining)
	all.Answer.RetryAfter = max(t.Answer.RetryAfter, one.RetryAfter)
	all.Answer.ResetAfter = max(t.Answer.ResetAfter, one.ResetAfter)
	return all
}

func (p *Part) undo() { p.Limit.GiveBack(Charge{At: p.Now, Cost: p.Cost}, p.Clock) }

// refuse records the refusal that the peek has found: some policies count it, and a bucket with
// init begins to fill. If the limit now admits the cost, because of a reset or another goroutine,
// the call gives the charge back.
func (p *Part) refuse() {
	if d := p.Limit.Check(p.Now, p.Cost); d.Verdict == Allowed {
		p.undo()
	} else {
		p.Decided = d
	}
}

// orderOf is the order in which all goroutines charge these limits.
func orderOf(parts []Part) []int {
	order := make([]int, len(parts))
	for i := range order {
		at := i
		for ; at > 0 && before(&parts[i], &parts[order[at-1]]); at-- {
			order[at] = order[at-1]
		}
		order[at] = i
	}
	return order
}

func before(a, b *Part) bool {
	x, y := a.Limit.Algorithm().Refill(), b.Limit.Algorithm().Refill()
	if x != y {
		return x < y
	}
	return a.Limit.Rank() < b.Limit.Rank()
}
