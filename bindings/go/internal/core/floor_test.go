package core

import (
	"math/rand/v2"
	"testing"
)

// slotBuckets are buckets of whole units in a nanosecond and of rounded ones, with steps shorter
// and longer than a burst.
func slotBuckets(t *testing.T) (buckets []*SlotBucket) {
	for _, rate := range [][3]uint64{
		{100, 3600e9, 100}, {1000, 86400e9, 1000}, {990, 86400e9, 1000}, {6, 1e9, 6}, {11, 1e9, 5},
		{1e9, 1e9, 1e6}, {3, 1e9, 1}, {9, 60e9, 100}, {1, 3600e9, 3},
	} {
		a, code := Compile(&Policy{Kind: kindGCRA, Limit: rate[0], Period: rate[1], Burst: rate[2], Init: rate[2]})
		if code != 0 {
			t.Fatal(rate, code)
		}
		b, ok := InSlots(a).(*SlotBucket)
		if !ok || !b.floors.exist() {
			t.Fatal(rate, "has no floors")
		}
		buckets = append(buckets, b)
	}
	return buckets
}

// Each change of any word leaves a word whose TAT is not before the wanted one
// and whose slot stays taken at least as long as before.
func TestAFloorNeverFalls(t *testing.T) {
	random := rand.New(rand.NewPCG(71, 72))
	buckets := slotBuckets(t)
	for range 200_000 {
		b := buckets[random.IntN(len(buckets))]
		most := b.Grid.Units(b.Last)
		word := random.Uint64() >> random.IntN(2)
		if word &^= roomBit; !b.floors.isLowered(word) {
			word = max(word&most, 1)
		}
		for range 5 {
			before, expires, tat := b.floors.tat(word), b.ExpiresAt(word), random.Uint64()>>random.IntN(64)
			if random.IntN(2) == 0 {
				// No request charges a damaged word that is later than all times.
				if tat = min(addUpTo(before, tat>>20), most); tat < before || expires == NoTime {
					continue
				}
				if word = b.raise(word, tat); b.floors.tat(word) > tat+3 {
					t.Fatalf("%+v: raised to %d, not %d", b, b.floors.tat(word), tat)
				}
			} else {
				tat = min(tat, subTo0(before, 1))
				if word = b.lower(word, tat); b.floors.tat(word) > before {
					t.Fatalf("%+v: lowered from %d to %d", b, before, b.floors.tat(word))
				}
			}
			if b.floors.tat(word) < tat || b.ExpiresAt(word) < expires || b.floor(word) < b.floors.tat(word) {
				t.Fatalf("%+v: %x has the TAT %d and expires at %d, after %d and for the TAT %d",
					b, word, b.floors.tat(word), b.ExpiresAt(word), expires, tat)
			}
		}
	}
}
