package shared

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/tollbar/tollbar/bindings/go/internal/core"
)

func tableOf(t *testing.T, onFull uint32, texts ...string) *Table {
	t.Helper()
	of := make([]Policy, len(texts))
	for i, text := range texts {
		policy, algorithm, wrong := core.Parse(text)
		if wrong != nil {
			t.Fatalf("%s: %+v", text, wrong)
		}
		of[i] = Policy{policy, algorithm}
	}
	table, wrong := New(&Options{Capacity: 1000, OnFull: onFull, Overrides: 64}, of)
	if wrong != nil {
		t.Fatalf("%+v", wrong)
	}
	t.Cleanup(table.Free)
	return table
}

// ask makes all kinds of calls for a key, and returns their codes.
func ask(t *testing.T, table *Table, number uint32, key string, now, n uint64) (codes []core.Code) {
	t.Helper()
	place, _, found, code := table.Find(number, key)
	if !found {
		return []core.Code{code}
	}
	add := func(code core.Code) { codes = append(codes, code) }
	verdict, code := place.Take(now, n)
	if add(code); code != 0 && verdict == core.Allowed {
		t.Errorf("%v with the error %v", verdict, code)
	}
	d, code := place.TakeFull(now, n)
	if add(code); code != 0 && d.Verdict == core.Allowed {
		t.Errorf("%v with the error %v", d, code)
	}
	d, code = place.PeekFull(now, n)
	if add(code); code != 0 && d.Verdict == core.Allowed {
		t.Errorf("%v with the error %v", d, code)
	}
	_, code = place.TakeUpTo(now, n)
	add(code)
	_, code = place.Charge(now, n)
	add(code)
	at, _, verdict, code := place.Reserve(now, n, now+uint64(time.Hour))
	if add(code); code == 0 && verdict == core.Allowed {
		_, code = place.Return(core.Charge{At: at, Cost: n}, func() uint64 { return now })
		add(code)
	}
	_, code = table.Reset(number, key, now)
	add(code)
	return codes
}

// With any words in slots, records, stamps, overrides and counters every call ends, and in time, without a fault. The
// words of most slots are random, and some are of versions and tags that the table has.
func TestAnyWordsEndEveryCall(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 8
	}
	texts := []string{
		"10/s", "3/s burst 5", "10/s burst 6 init 0", "5/s burst 4 ban 2s after 2", "5/s borrow", "100/s burst 4 algo pacer slack 2", "3/s burst 5 algo interval",
		"5/s algo interval anchor first", "6/s algo fixed-window count rejected", "9/s algo weighted-window", "0/s", "40/forever", "7/s burst 4",
	}
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[core.Code]int{}
	for round := range rounds {
		table := tableOf(t, uint32(round%4), texts...)
		words := unsafe.Slice((*atomic.Uint64)(table.region.base), table.fixed.bytes/8)
		word := func() uint64 {
			switch random.IntN(6) {
			case 0:
				return uint64(1+random.IntN(len(texts)+2))<<tagBits | random.Uint64()&tagMask
			case 1:
				return uint64(random.IntN(3))
			case 2:
				return 1<<64 - 1 - uint64(random.IntN(3))
			case 3:
				return 1 << random.IntN(64)
			}
			return random.Uint64()
		}
		what := round % 5
		for at := bucketsAt / 8; at < len(words); at++ {
			words[at].Store(word())
		}
		if what >= 1 {
			// The keys that are asked for are in their slots, with any state.
			for i := range 200 {
				place, _, found, _ := table.Find(uint32(i%len(texts)), fmt.Sprint("key ", i%20))
				if found {
					c := table.candidates(place.hash)
					slot := c.slot(random.IntN(candidatesOfKey))
					*slot = Slot{place.version.key | c.tag, word()}
				}
			}
		}
		if what >= 2 {
			// Exempt keys, overrides and changes are looked for.
			table.header.special.Store(word() | 1<<12 | 1)
		}
		if what >= 3 {
			for range 40 {
				words[versionsAt/8+random.IntN((countersAt-versionsAt)/8)].Store(word())
			}
			for range 3 {
				table.header.current[random.IntN(PoliciesMost)].Store(word())
			}
		}
		if what == 4 {
			// Records with a right checksum and any words.
			for number := range texts {
				r := &table.records()[1+number]
				var content [recordWords]uint64
				for i := range content {
					if content[i] = r.words[i].Load(); random.IntN(12) == 0 {
						content[i] = []uint64{0, 1, 2, 7, 11, word()}[random.IntN(6)]
					}
					r.words[i].Store(content[i])
				}
				r.check.Store(fold(content[:]...))
				table.compiled[1+number].Store(nil)
			}
		}
		from := time.Now()
		for i := range 4_000 {
			now := []uint64{uint64(i), 1e17 + uint64(i)*1e6, random.Uint64()}[random.IntN(3)]
			n := []uint64{0, 1, 1, 2, 5, 1<<64 - 1}[random.IntN(6)]
			number := uint32(random.IntN(len(texts) + 1))
			if random.IntN(30) == 0 {
				number = random.Uint32()
			}
			for _, code := range ask(t, table, number, fmt.Sprint("key ", random.IntN(20)), now, n) {
				seen[code]++
			}
		}
		if took := time.Since(from); took > 30*time.Second {
			t.Errorf("round %d took %s", round, took)
		}
	}
	for _, code := range []core.Code{0, errNoSuchPolicy, errCorrupt, core.NeedsLibrary} {
		if seen[code] == 0 {
			t.Errorf("no call ended with %d: %v", code, seen)
		}
	}
	t.Log(seen)
}
