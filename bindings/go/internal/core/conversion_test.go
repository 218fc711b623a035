package core

import (
	"math/rand/v2"
	"testing"
)

// A word that is adopted under another policy expires no earlier than before, and a step, a charge or a return in a
// slot makes no word expire earlier.
func TestWordsInSlotsExpireNoEarlier(t *testing.T) {
	texts := []string{
		"10/s", "3/s burst 5", "7/333333333ns burst 9", "7/s burst 4", "10/s burst 6 init 0", "5/s burst 4 ban 2s after 2", "5/s borrow", "100/s burst 4 algo pacer slack 2",
		"3/s burst 5 algo interval", "3/s algo interval", "5/s algo interval anchor first", "10/s algo fixed-window", "6/s algo fixed-window count rejected",
		"5/s algo fixed-window anchor first", "30/s algo weighted-window", "2/s algo weighted-window", "1/min algo weighted-window", "0/s", "40/forever", "3/forever",
	}
	var all []Algorithm
	for _, text := range texts {
		_, algorithm, wrong := Parse(text)
		if wrong != nil {
			t.Fatalf("%s: %+v", text, wrong)
		}
		all = append(all, InSlots(algorithm))
	}
	random := rand.New(rand.NewPCG(7, 8))
	lasted := func(what string, a, b Algorithm, i, j int, word, next uint64) {
		if b.ExpiresAt(next) < a.ExpiresAt(word) {
			t.Fatalf("%s under %s: %x expires at %d, and then under %s %x at %d", what, texts[i], word, a.ExpiresAt(word), texts[j], next, b.ExpiresAt(next))
		}
	}
	for i, a := range all {
		for range 3000 {
			now := random.Uint64N(1 << 58)
			word := uint64(0)
			charge := Charge{At: now, Cost: 1}
			for range 1 + random.IntN(12) {
				now += random.Uint64N(600_000_000)
				n := 1 + random.Uint64N(4)
				step := a.Step(word, now, n)
				lasted("a step", a, a, i, i, word, step.Next)
				if word = step.Next; step.Verdict == Allowed {
					charge = Charge{At: now, Cost: n}
				}
				if random.IntN(3) == 0 {
					next, _ := a.GiveBack(word, now, &GiveBack{Charge: charge, Booked: random.IntN(2) == 0})
					lasted("a return", a, a, i, i, word, next)
					word = next
				}
				if random.IntN(8) == 0 {
					next, _ := a.Charge(word, now, n)
					lasted("a charge", a, a, i, i, word, next)
					word = next
				}
			}
			for j, b := range all {
				if word != 0 {
					lasted("a change", a, b, i, j, word, Adopt(b, a, word))
				}
			}
			if until := random.Uint64N(1 << 60); a.ExpiresAt(a.Owing(until)) < until {
				t.Fatalf("%s: owing until %d expires at %d", texts[i], until, a.ExpiresAt(a.Owing(until)))
			}
		}
	}
}
