package shared

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go/internal/core"
)

const now = uint64(1e17)

// keyOf is a key of the table's first policy, with its slots, its key word and its states.
func keyOf(t *testing.T, table *Table, name string) (place Place, c candidates, word uint64, s *states) {
	t.Helper()
	place, _, found, code := table.Find(0, name)
	if !found {
		t.Fatal(code)
	}
	c = table.candidates(place.hash)
	return place, c, place.version.key | c.tag, &states{policies: &table.policies, version: place.version}
}

// amid makes a step that calls f before its first result: between the loads of a call and its swap.
func amid(a core.Algorithm, n uint64, f func()) (stepper, *int) {
	calls := new(int)
	return func(state uint64) core.Step {
		if *calls++; *calls == 1 {
			f()
		}
		return a.Step(state, now, n)
	}, calls
}

// Another call changes the slot between the loads of a request and its swap.
func TestASlotThatChangesAmidARequest(t *testing.T) {
	table := tableOf(t, onFullEvictNearest, "3/day")
	place, c, word, s := keyOf(t, table, "ann")
	slot := c.slot(5)
	algorithm := place.version.algorithm
	state := algorithm.Step(0, now, 1).Next
	full := algorithm.Step(algorithm.Step(state, now, 1).Next, now, 1).Next
	other := Pair{word ^ 1, 12345}

	// The state: the request steps the new one.
	*slot = Slot{word, state}
	step, calls := amid(algorithm, 1, func() { *slot = Slot{word, algorithm.Step(state, now, 1).Next} })
	o, end := request(s, &c, word, now, onFullDeny, step)
	if end != done || *calls != 2 || o.retries != 1 || o.verdict != core.Allowed || slot.Pair() != (Pair{word, full}) {
		t.Errorf("%+v (%v), %d calls, %x", o, end, *calls, slot.Pair())
	}
	// The key: the request charges no other key.
	*slot = Slot{word, state}
	step, _ = amid(algorithm, 1, func() { *slot = Slot{other.Key, other.State} })
	if o, end := request(s, &c, word, now, onFullDeny, step); end != changed || slot.Pair() != other {
		t.Errorf("%+v (%v), %x", o, end, slot.Pair())
	}
	// The key, of a request that is refused: the state was perhaps another key's.
	*slot = Slot{word, full}
	step, _ = amid(algorithm, 1, func() { *slot = Slot{other.Key, full} })
	if o, end := request(s, &c, word, now, onFullDeny, step); end != changed {
		t.Errorf("%+v (%v)", o, end)
	}
	// The state, of a request that is refused: it is asked again.
	*slot = Slot{word, full}
	step, calls = amid(algorithm, 1, func() { *slot = Slot{word, state} })
	if o, end := request(s, &c, word, now, onFullDeny, step); end != done || o.verdict != core.Allowed || *calls != 2 {
		t.Errorf("%+v (%v), %d calls", o, end, *calls)
	}
	// A slot that another key takes before the new one.
	*slot = Slot{}
	step, _ = amid(algorithm, 1, func() { *c.slot(0) = Slot{other.Key, other.State} })
	if o, end := request(s, &c, word, now, onFullDeny, step); end != changed || c.find(word) != nil {
		t.Errorf("%+v (%v)", o, end)
	}
	// A request that always loses gives up, and the caller begins again.
	*slot = Slot{word, state}
	n := uint64(0)
	_, end = request(s, &c, word, now, onFullDeny, func(seen uint64) core.Step {
		n++
		*slot = Slot{word, state + n}
		return algorithm.Step(seen, now, 1)
	})
	if end != changed || n != tries {
		t.Errorf("%v after %d calls", end, n)
	}
}

// A call that moved a key was killed when the key had left its slot. The key owes until that slot's time, and its
// next charge removes the mark.
func TestAKeyBetweenTwoSlots(t *testing.T) {
	for _, until := range []uint64{now + uint64(time.Hour), now + 5} {
		table := tableOf(t, onFullEvictNearest, "3/day")
		place, c, word, s := keyOf(t, table, "ann")
		marked := c.slot(2)
		mark := Pair{word & tagMask, until}
		*marked = Slot{mark.Key, mark.State}
		// The third permit, which three at 3/day leave after 8 hours, is missing.
		d, code := place.PeekFull(now, 3)
		if code != 0 || d.Verdict != core.Denied || d.RetryAfter < until-now {
			t.Errorf("%+v (%v)", d, code)
		}
		if pair := marked.Pair(); pair != mark || c.find(word) != nil {
			t.Errorf("a peek has changed %x", pair)
		}
		verdict, code := place.Take(now, 1)
		if code != 0 || verdict != core.Allowed {
			t.Fatal(verdict, code)
		}
		slot := c.find(word)
		if slot == nil || slot == marked || marked.Pair() != (Pair{0, until}) {
			t.Fatalf("%x", marked.Pair())
		}
		if owes := s.expiresAt(slot.Pair()); owes < until {
			t.Errorf("the key owes until %d, not %d", owes, until)
		}
		// A reset removes the mark, too.
		*slot, *marked = Slot{}, Slot{mark.Key, mark.State}
		if began, code := table.Reset(0, "ann", now); code != 0 || !began || marked.Pair() != (Pair{0, until}) {
			t.Errorf("%v (%v), %x", began, code, marked.Pair())
		}
	}
}

// When the policy changes to one under which a key expires sooner, the key moves, and no key takes its former slot
// before that one's time.
func TestAKeyMovesToAnotherSlot(t *testing.T) {
	table := tableOf(t, onFullDeny, "3/day", "3/s")
	place, c, word, s := keyOf(t, table, "ann")
	if verdict, code := place.Take(now, 2); code != 0 || verdict != core.Allowed {
		t.Fatal(verdict, code)
	}
	former := c.find(word)
	until := s.expiresAt(former.Pair())
	// The policy's new version has the words of the second policy.
	r := &table.records()[9]
	policy, _ := table.PolicyOf(1)
	r.publish(&policy, 100<<16|9)
	table.header.current[0].Store(100<<16 | 9)
	place, c, next, s := keyOf(t, table, "ann")
	// A slot of an unknown version never expires, so no key takes it.
	for n := range candidatesOfKey {
		if c.slot(n) != former && n != 7 {
			*c.slot(n) = Slot{200<<tagBits | uint64(n), 5}
		}
	}
	if d, code := place.TakeFull(now, 1); code != 0 || d.Verdict != core.Allowed || d.Remaining != 0 {
		t.Errorf("%+v (%v)", d, code)
	}
	if former.Pair() != (Pair{0, until}) || c.find(next) != c.slot(7) || s.expiresAt(c.slot(7).Pair()) > now+uint64(time.Second)+10 {
		t.Errorf("%x, %x", former.Pair(), c.slot(7).Pair())
	}
	// No slot is free for another key there.
	*c.slot(7) = Slot{201 << tagBits, 5}
	d, code := place.TakeFull(now, 1)
	if code != 0 || d.Verdict != core.Denied || d.Reason != reasonTableFull || d.RetryAfter != until-now {
		t.Errorf("%+v (%v)", d, code)
	}
	*former = Slot{202 << tagBits, 5}
	if d, code := place.TakeFull(now, 1); code != 0 || d.Verdict != core.Denied || d.RetryAfter != core.NoTime {
		t.Errorf("%+v (%v)", d, code)
	}
}

// Of two words of one policy the greater one expires no sooner, except for words that got permits back.
func TestTheFirstToExpireAmongLoweredWords(t *testing.T) {
	table := tableOf(t, onFullInherit, "3/s burst 100")
	_, c, word, s := keyOf(t, table, "ann")
	b := s.version.algorithm.(*core.SlotBucket)
	long, _ := b.Charge(0, now, 150)
	short, _ := b.Charge(0, now, 3)
	lowered, _ := b.GiveBack(short, now, &core.GiveBack{Charge: core.Charge{At: now, Cost: 3}})
	if lowered <= core.TATMost || lowered < long || s.expiresAt(Pair{word, lowered}) >= s.expiresAt(Pair{word, long}) {
		t.Fatalf("%x of %x", lowered, long)
	}
	for n := range candidatesOfKey {
		*c.slot(n) = Slot{word ^ uint64(n+1), long}
	}
	*c.slot(3) = Slot{word ^ 99, lowered}
	room, end := firstToExpire(s, &c, word, now)
	if end != done || room.first.slot != c.slot(3) {
		t.Errorf("%+v (%v)", room.first, end)
	}
}

// Slots under a policy that Go cannot step end a request for a new key, which then changes nothing. Keys that have a
// slot are decided.
func TestSlotsThatGoCannotStep(t *testing.T) {
	for onFull := range uint32(4) {
		table := tableOf(t, onFull, "3/day")
		known, _, _, _ := keyOf(t, table, "known")
		if verdict, code := known.Take(now, 1); code != 0 || verdict != core.Allowed {
			t.Fatal(verdict, code)
		}
		// A list of two policies: version 7 of policy 5.
		const stamp = 50<<16 | 5<<8 | 7
		policy, _ := table.PolicyOf(0)
		words := encode(&policy, keepCount)
		words[wordFlags] = 2
		r := &table.records()[7]
		for i, word := range words {
			r.words[i].Store(word)
		}
		r.check.Store(fold(words[:]...))
		r.stamp.Store(stamp)
		place, c, word, _ := keyOf(t, table, "ann")
		*c.slot(11) = Slot{7<<tagBits | 5, 12345}
		// The other key may have its slot among them.
		first, spare := *c.first, *c.spare
		for _, code := range ask(t, table, 0, "ann", now, 1) {
			if code != core.NeedsLibrary {
				t.Errorf("%v", code)
			}
		}
		if c.find(word) != nil || *c.first != first || *c.spare != spare {
			t.Error("the request has changed a slot")
		}
		if verdict, code := known.Take(now, 1); code != 0 || verdict != core.Allowed {
			t.Error(verdict, code)
		}
		// A key under such a policy, by a change or an override.
		table.header.current[0].Store(stamp&^0xff00 | 7)
		r.stamp.Store(stamp &^ 0xff00)
		if _, _, found, code := table.Find(0, "known"); found || code != core.NeedsLibrary {
			t.Error(found, code)
		}
		if _, code := table.PolicyOf(0); code != core.NeedsLibrary {
			t.Error(code)
		}
		if _, wrong := over(table.region); wrong == nil || wrong.Code != core.NeedsLibrary {
			t.Errorf("%+v", wrong)
		}
		_ = place
	}
}

// A request under a version whose record is gone does not put its key beside the one that the table has.
func TestAVersionThatIsGone(t *testing.T) {
	table := tableOf(t, onFullEvictNearest, "3/day")
	place, c, word, s := keyOf(t, table, "ann")
	if verdict, code := place.Take(now, 3); code != 0 || verdict != core.Allowed {
		t.Fatal(verdict, code)
	}
	// Another process has changed the policy twice, carried the key over, and freed the record of the first version.
	policy, _ := table.PolicyOf(0)
	table.records()[9].publish(&policy, 100<<16|9)
	table.header.current[0].Store(100<<16 | 9)
	slot := c.find(word)
	*slot = Slot{9<<tagBits | c.tag, slot.state}
	table.records()[1].stamp.Store(0)
	if _, end := firstToExpire(s, &c, word, now); end != changed {
		t.Errorf("%v", end)
	}
	if verdict, code := place.Take(now, 1); code != 0 || verdict != core.Denied {
		t.Error(verdict, code)
	}
	held := 0
	for n := range candidatesOfKey {
		if pair := c.slot(n).Pair(); pair.Key&tagMask == c.tag && !pair.isVacant() {
			held++
		}
	}
	if held != 1 {
		t.Errorf("the key has %d slots: %s", held, fmt.Sprint(c))
	}
}

// While a key moves, its former slot has a mark with the key's tag: another goroutine sees it sooner or later.
func TestAMoveLeavesAMark(t *testing.T) {
	table := tableOf(t, onFullDeny, "3/day", "3/s")
	place, c, former, s := keyOf(t, table, "ann")
	state := place.version.algorithm.Step(0, now, 2).Next
	until := s.expiresAt(Pair{former, state})
	r := &table.records()[9]
	policy, _ := table.PolicyOf(1)
	r.publish(&policy, 100<<16|9)
	table.header.current[0].Store(100<<16 | 9)
	_, c, word, s := keyOf(t, table, "ann")
	slot, mark := c.slot(6), Pair{word & tagMask, until}
	var marks, end atomic.Bool
	var reader sync.WaitGroup
	reader.Add(1)
	go func() {
		defer reader.Done()
		for !end.Load() {
			switch pair := slot.Pair(); {
			case pair == mark:
				marks.Store(true)
			case pair != Pair{former, state} && pair != Pair{0, until} && pair != Pair{}:
				t.Errorf("the slot had %x", pair)
				return
			}
		}
	}()
	for from := time.Now(); !marks.Load() && time.Since(from) < 20*time.Second; {
		for range 100 {
			slot.swap(slot.Pair(), Pair{former, state})
			if _, e := firstToExpire(s, &c, word, now); e != changed {
				t.Fatal(e)
			}
			moved := c.find(word)
			if moved == nil || moved == slot || slot.Pair() != (Pair{0, until}) {
				t.Fatalf("%x", slot.Pair())
			}
			moved.swap(moved.Pair(), Pair{})
		}
	}
	end.Store(true)
	reader.Wait()
	if !marks.Load() {
		t.Error("no mark was seen")
	}
}
