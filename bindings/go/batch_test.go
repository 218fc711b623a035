//go:build cgo || tollbar_purego

package tollbar

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// AddAll gives the same batch as Add for each key, of any lengths, in an empty batch, a used one
// and one with room.
func TestAddAllIsAddOfEach(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var each, all Batch
	for round := range 300 {
		if round%3 == 0 {
			each.Clear()
			all.Clear()
		}
		keys := make([]string, random.IntN(20))
		for i := range keys {
			key := make([]byte, random.IntN(40))
			for j := range key {
				key[j] = byte(random.Uint32())
			}
			keys[i] = string(key)
		}
		policy, n := random.Uint32N(3), random.Uint64N(9)
		for _, key := range keys {
			each.AddN(policy, key, n)
		}
		all.AddAllN(policy, keys, n)
		if !bytes.Equal(each.keys, all.keys) || !slices.Equal(each.items, all.items) {
			t.Fatalf("%q under %d: %v, one after the other %v", keys, policy, all, each)
		}
	}
	each.Clear()
	each.AddAll([]string{"a", "b"})
	if each.Len() != 2 || each.items[1] != (batchItem{end: 2, cost: 1}) {
		t.Error(each)
	}
	if n := testing.AllocsPerRun(100, func() { each.Clear(); each.AddAll([]string{"c", "0123456789"}) }); n != 0 {
		t.Error(n, "allocations")
	}
}
