package local

import (
	"fmt"
	"sync"
	"testing"

	"github.com/tollbar/tollbar/bindings/go/internal/core"
)

func table(t testing.TB, options Options, texts ...string) *Table {
	t.Helper()
	var compiled []Policy
	for _, text := range texts {
		policy, algorithm, wrong := core.Parse(text)
		if wrong != nil {
			t.Fatalf("%s: %+v", text, wrong)
		}
		compiled = append(compiled, Policy{policy, algorithm})
	}
	made, code := New(options, compiled)
	if code != 0 {
		t.Fatal(code)
	}
	return made
}

func key(t testing.TB, of *Table, number uint32, name string) Key {
	t.Helper()
	k, _, found, code := of.Find(number, name)
	if !found {
		t.Fatalf("%q: %v", name, code)
	}
	return k
}

const now = uint64(1e17)

// A table holds as many keys as its capacity says, in memory that does not grow.
func TestATableHoldsItsCapacity(t *testing.T) {
	for _, capacity := range []int{1, 16, 1000, 20_000, 100_000} {
		of := table(t, Options{Capacity: uint64(capacity), OnFull: onFullDeny}, "1/day")
		slots := 0
		for i := range of.shards {
			slots += len(of.shards[i].slots)
		}
		if slots < capacity || slots > capacity+capacity/3+2*groupSlots*len(of.shards) {
			t.Errorf("%d slots for %d keys", slots, capacity)
		}
		refused := 0
		for i := range capacity {
			if key(t, of, 0, fmt.Sprint("key ", i)).Take(now, 1) != core.Allowed {
				refused++
			}
		}
		if refused > capacity/1000 {
			t.Errorf("capacity %d: no slot for %d keys", capacity, refused)
		}
		held := 0
		for i := range capacity {
			if key(t, of, 0, fmt.Sprint("key ", i)).Peek(now, 1).Verdict == core.Denied {
				held++
			}
		}
		if held < capacity-refused {
			t.Errorf("capacity %d: %d keys are held", capacity, held)
		}
	}
}

// fill gives each slot of a small table a key with a debt.
func fill(t *testing.T, of *Table) {
	t.Helper()
	for i := range 10_000 {
		key(t, of, 0, fmt.Sprint("filler ", i)).Take(now, 1)
	}
	for _, s := range of.shards[0].slots {
		if s.key == 0 {
			t.Fatal("a slot is free")
		}
	}
}

// A new key in a full table gets what OnFull says, and its peek says the same.
func TestAFullTable(t *testing.T) {
	for _, want := range []struct {
		onFull  uint32
		verdict core.Verdict
		reason  uint32
		held    bool
	}{{0, core.Allowed, 0, true}, {onFullInherit, core.Denied, reasonInheritedDebt, false},
		{onFullAllow, core.Allowed, reasonTableFull, false}, {onFullDeny, core.Denied, reasonTableFull, false}} {
		of := table(t, Options{Capacity: 1, OnFull: want.onFull}, "1/day")
		// With onFullInherit no key but the first ones finds a slot.
		fill(t, of)
		ann := key(t, of, 0, "ann")
		peek := ann.Peek(now+1, 1)
		d := ann.Check(now+1, 1)
		if d.Verdict != want.verdict || d.Reason != want.reason || peek.Verdict != d.Verdict || peek.Reason != d.Reason ||
			peek.RetryAfter != d.RetryAfter {
			t.Errorf("onFull %d: %+v, by a peek %+v", want.onFull, d, peek)
		}
		if held := ann.find(ann.shard()) != nil; held != want.held {
			t.Errorf("onFull %d: held is %v", want.onFull, held)
		}
		if d.Verdict == core.Denied && (d.RetryAfter == 0 || d.RetryAfter > 86_401e9) {
			t.Errorf("onFull %d: again in %d ns", want.onFull, d.RetryAfter)
		}
		// A day later all slots are free.
		if verdict := key(t, of, 0, "bob").Take(now+86_401e9, 1); verdict != core.Allowed {
			t.Errorf("onFull %d: %d after a day", want.onFull, verdict)
		}
	}
}

// A new key takes the slot of the key that would have expired first.
func TestTheLeastUsefulKeyIsEvicted(t *testing.T) {
	of := table(t, Options{Capacity: 1}, "100/day")
	slots := len(of.shards[0].slots)
	if slots != 2*groupSlots {
		t.Fatalf("%d slots", slots)
	}
	for i := range slots {
		key(t, of, 0, fmt.Sprint(i)).Take(now, uint64(10+i))
	}
	key(t, of, 0, "ann").Take(now, 50)
	for i := range slots {
		k := key(t, of, 0, fmt.Sprint(i))
		if held := k.find(k.shard()) != nil; held != (i != 0) {
			t.Errorf("key %d: held is %v", i, held)
		}
	}
}

// Goroutines on one key get exactly the burst, while others insert and evict keys around it.
func TestGoroutinesShareAShard(t *testing.T) {
	of := table(t, Options{Capacity: 1}, "1000/day", "1/s")
	var all sync.WaitGroup
	var admitted [4]int
	for g := range admitted {
		all.Add(1)
		go func() {
			defer all.Done()
			ann := key(t, of, 0, "ann")
			for i := range 2000 {
				if ann.Take(now, 1) == core.Allowed {
					admitted[g]++
				}
				key(t, of, 1, fmt.Sprint(g, i)).Take(now, 1)
			}
		}()
	}
	all.Wait()
	if sum := admitted[0] + admitted[1] + admitted[2] + admitted[3]; sum != 1000 {
		t.Errorf("%d admitted", sum)
	}
}
