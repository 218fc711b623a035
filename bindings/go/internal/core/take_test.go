package core

import "testing"

// racing is a limit that admits a peek, and refuses a charge: another goroutine was faster. It
// records the charges of a request.
type racing struct {
	*Limiter
	name    string
	refuses bool
	order   *string
}

func (r racing) Check(now, cost uint64) Answer {
	*r.order += r.name
	if r.refuses {
		return Answer{Verdict: Denied, Reason: uint32(Denied), RetryAfter: 1}
	}
	return r.Limiter.Check(now, cost)
}

func (racing) Count(Answer) {}

func (racing) Rank() uint64 { return 0 }

func limiterOf(t *testing.T, text string) *Limiter {
	t.Helper()
	_, algorithm, wrong := Parse(text)
	if wrong != nil {
		t.Fatalf("%s: %+v", text, wrong)
	}
	return NewLimiter(algorithm)
}

// If a limit refuses its charge after all peeks have passed, the limits before it get their permits
// back. Limits that refill a permit fastest are charged first, and limits that take nothing back
// last, whatever their order in the request.
func TestALostRaceChargesNothing(t *testing.T) {
	const now = 1e17
	clock := func() uint64 { return now }
	for _, refusing := range []string{"", "a", "b", "c"} {
		order := ""
		texts := map[string]string{"a": "10/s", "b": "5/day", "c": "7/s algo pacer"}
		parts := []Part{}
		for i, name := range []string{"c", "b", "a"} {
			limit := racing{limiterOf(t, texts[name]), name, name == refusing, &order}
			parts = append(parts, Part{Limit: limit, Index: i, Cost: 1, Now: now, Clock: clock})
		}
		taken := TakeAll(parts)
		want := map[string]string{"": "abc", "a": "a", "b": "ab", "c": "abc"}[refusing]
		if order != want || (taken.Answer.Verdict == Allowed) != (refusing == "") {
			t.Errorf("%q refuses: charged in the order %q, %+v", refusing, order, taken)
		}
		for _, part := range parts {
			left := part.Limit.Peek(now, 1).Remaining
			whole := map[string]uint64{"a": 10, "b": 5, "c": 1}[part.Limit.(racing).name]
			if refusing == "" {
				whole--
			}
			if left != whole {
				t.Errorf("%q refuses: %q has %d permits left", refusing, part.Limit.(racing).name, left)
			}
		}
	}
}

// After a rest a pacer gives the permits of its slack, at most its burst in one call: it gave none
// where the slack was larger.
func TestAPacerGivesItsSlackToCallersWhoTakeWhatThereIs(t *testing.T) {
	l := limiterOf(t, "2/5ms algo pacer slack 4")
	for _, one := range [][2]uint64{{1e9, 1}, {2e9, 2}, {2e9, 2}, {2e9, 1}, {2e9, 0}} {
		if taken := l.TakeUpTo(one[0], 100); taken != one[1] {
			t.Error(one, taken)
		}
	}
}
