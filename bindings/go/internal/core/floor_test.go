package core

import (
	"math"
	"math/rand/v2"
	"testing"
)

// For any word of any bucket, damaged ones too, the result has the wanted TAT or a later one, and the floor never falls.
func TestAFloorNeverFalls(t *testing.T) {
	random := rand.New(rand.NewPCG(71, 72))
	for range 200_000 {
		most := uint64(TATMost) >> random.IntN(2)
		f := newFloors([]uint64{1 + random.Uint64N(1<<62), 1 + random.Uint64N(1000), 1 << 62, 1 << random.IntN(63)}[random.IntN(4)], most)
		word := random.Uint64() >> random.IntN(2)
		if !f.isLowered(word) {
			word &= most
		}
		for range 5 {
			before, floor, tat := f.tat(word), f.floor(word), random.Uint64N(TATMost+1)
			if random.IntN(2) == 0 {
				if tat = addUpTo(before, tat>>40); tat > TATMost {
					continue
				}
				// Only damaged words have floors beyond all times.
				if word = f.raise(word, tat); f.tat(word) > tat+4095 && floor != math.MaxUint64 {
					t.Fatalf("%+v: raised to %d, not %d", f, f.tat(word), tat)
				}
			} else {
				tat = min(tat, subTo0(before, 1))
				if word = f.lower(word, tat); f.tat(word) > before {
					t.Fatalf("%+v: lowered from %d to %d", f, before, f.tat(word))
				}
			}
			if f.tat(word) < tat || f.floor(word) < floor || f.floor(word) < f.tat(word) || !f.isLowered(word) && f.floor(word) != word {
				t.Fatalf("%+v: %x has the TAT %d and the floor %d, after the floor %d and for the TAT %d", f, word, f.tat(word), f.floor(word), floor, tat)
			}
		}
	}
}

// A held word has the wanted TAT within 4,096 units, or 4 if it is exact, and the wanted floor within a fifteenth. Charges keep the floor.
func TestAHeldWordKeepsBothTimes(t *testing.T) {
	random := rand.New(rand.NewPCG(73, 74))
	near, wide, none := 0, 0, 0
	for range 400_000 {
		tolerance := uint64(1)<<random.IntN(61) + random.Uint64N(1000)
		f := newFloors(tolerance, uint64(TATMost)>>random.IntN(9))
		tat := random.Uint64N(1 << (20 + random.IntN(43)))
		floor := min(addUpTo(tat, random.Uint64N(1<<random.IntN(61))), TATMost-1)
		exact := random.IntN(2) == 0
		word, ok := f.held(tat, floor, exact)
		if !ok {
			none++
			continue
		}
		slack := uint64(4095)
		// A plain word owes until the floor, if that is as near.
		if exact && f.isLowered(word) {
			slack = 3
		}
		held, until := f.tat(word), f.floor(word)
		if held < tat || held-tat > slack || until < floor {
			t.Fatalf("%+v: %x has the TAT %d, for %d, and the floor %d, for %d", f, word, held, tat, until, floor)
		}
		switch {
		case !f.isLowered(word):
		case exact:
			near++
		default:
			wide++
			if until-floor > (floor-tat)/15+1<<12+tolerance/16+16 {
				t.Fatalf("%+v: %x has the floor %d, for %d after %d", f, word, until, floor, tat)
			}
		}
		for tat = held; random.IntN(3) != 0; {
			tat = min(addUpTo(max(f.tat(word), tat), random.Uint64N(1<<random.IntN(51))), TATMost-1-1<<12)
			before := f.floor(word)
			if word = f.raise(word, tat); f.floor(word) < before || f.tat(word) < tat {
				t.Fatalf("%+v: %x has the TAT %d, for %d, and the floor %d after %d", f, word, f.tat(word), tat, f.floor(word), before)
			}
		}
	}
	t.Logf("%d near, %d wide, %d no word", near, wide, none)
	if near < 10_000 || wide < 100_000 || none < 10_000 {
		t.Error("too few of a form")
	}
}
