package shared

import "github.com/tollbar/tollbar/bindings/go/internal/core"

// How one request is decided, as in src/table/decide/mod.rs and answer.rs.

// Reasons of decisions that a table gives, with their numbers in tollbar.h.
const (
	reasonTableFull     = 3
	reasonInheritedDebt = 4
	reasonMissingKey    = 5
	reasonExempt        = 6
	reasonFault         = 8
	reasonBanned        = 12
)

// Place is a key under a policy of a table. It is for one request: another process may change the policy meanwhile.
type Place struct {
	table   *Table
	number  uint32
	hash    uint64
	version *version
}

// Find finds the key of a request (Table::prepare). For an empty or an exempt key the request has been decided: found
// is false. code is below 0 if there is no such policy, Go cannot step it, or the empty key is to be reported.
func (t *Table) Find(number uint32, key string) (p Place, decided core.Answer, found bool, code core.Code) {
	if key == "" {
		switch t.fixed.missing {
		case missingAllow:
			return p, uncharged(reasonMissingKey), false, 0
		case missingReport:
			return p, closed(reasonFault), false, errMissingKey
		}
		return p, closed(reasonMissingKey), false, 0
	}
	hash := t.secrets.hash(key) ^ salt(number)
	v, code := t.current(number, hash)
	if code != errNoSuchPolicy && t.isExempt(hash) {
		return p, uncharged(reasonExempt), false, 0
	}
	if code != 0 {
		return p, closed(reasonFault), false, code
	}
	return Place{t, number, hash, v}, decided, true, 0
}

// uncharged is an admission that charges no slot (uncharged).
func uncharged(reason uint32) core.Answer {
	return core.Answer{Verdict: core.Allowed, Reason: reason, Remaining: core.NoTime}
}

// closed is a refusal for ever (closed).
func closed(reason uint32) core.Answer {
	return core.Answer{Verdict: core.Denied, Reason: reason, RetryAfter: core.NoTime, ResetAfter: core.NoTime}
}

// full is a refusal by a full table, until a slot expires (full).
func full(until, now uint64) core.Answer {
	wait := core.After(until, now)
	return core.Answer{Verdict: core.Denied, Reason: reasonTableFull, RetryAfter: wait, ResetAfter: wait}
}

// CountDecided counts a decision under a policy number that the caller has not checked (Memory::count_with_reason).
func (t *Table) CountDecided(number uint32, decision core.Answer) {
	if t.currentStamp(number) != 0 {
		t.countDecision(number, decision.Verdict)
		t.countReason(decision.Reason)
	}
}

// request makes a request by the protocol (Table::request), and returns the version that decided and the outcome. If
// another call changes the policy meanwhile, it makes the request under the new one.
func (p *Place) request(
	now uint64, step func(a core.Algorithm, state uint64) core.Step,
) (*version, outcome, core.Code) {
	t, v := p.table, p.version
	t.noteTime(now)
	c := t.candidates(p.hash)
	for round := range rounds {
		if round != 0 {
			var code core.Code
			if v, code = t.current(p.number, p.hash); code != 0 {
				return v, outcome{}, code
			}
		}
		s := states{policies: &t.policies, version: v}
		stepUnder := func(state uint64) core.Step { return step(v.algorithm, state) }
		o, end := request(&s, &c, v.key|c.tag, now, t.fixed.onFull, stepUnder)
		switch end {
		case foreign:
			return v, o, core.NeedsLibrary
		case done:
			if o.event != eventKnown || o.retries != 0 {
				t.countEvent(o.event, o.retries)
			}
			return v, o, 0
		}
	}
	return v, outcome{}, errCorrupt
}

// answer is the full decision of an outcome (Table::decide_by).
func (o *outcome) answer(a core.Algorithm, now, cost uint64) core.Answer {
	if o.event == eventRefused {
		return full(o.until, now)
	}
	d := core.Describe(a, o.verdict, o.state, now, cost)
	switch o.event {
	case eventUnremembered:
		d.Reason = reasonTableFull
	case eventRefusedByDebt:
		d.Reason = reasonInheritedDebt
	}
	return d
}
