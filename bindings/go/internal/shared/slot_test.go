package shared

import (
	"sync"
	"testing"
	"unsafe"
)

// slots are n slots, aligned as in a table.
func slotsOf(n int) []Slot {
	r, wrong := private(uint64(n)*slotBytes, false)
	if wrong != nil {
		panic(wrong.Code)
	}
	return unsafe.Slice((*Slot)(r.base), n)
}

// Goroutines swap a slot from one pair to the next at the same time. Each swap is made once, no reader sees words of
// two pairs, and a failed swap returns a pair that was there.
func TestASlotChangesAtOnce(t *testing.T) {
	if !supported() {
		t.Fatal("no swap of 16 bytes")
	}
	// Long enough that the goroutines meet: each waits for the others to begin.
	const workers, each = 4, 200_000
	var begin sync.WaitGroup
	begin.Add(workers)
	slot := &slotsOf(3)[1]
	pairOf := func(n uint64) Pair { return Pair{n, mix(n)} }
	check := func(pair Pair) {
		if pair != (Pair{}) && pair != pairOf(pair.Key) {
			t.Errorf("a torn pair %x", pair)
		}
	}
	var all sync.WaitGroup
	for range workers {
		all.Add(1)
		go func() {
			defer all.Done()
			begin.Done()
			begin.Wait()
			for range each {
				for {
					before := slot.Pair()
					check(before)
					seen, swapped := slot.swap(before, pairOf(before.Key+1))
					check(seen)
					if swapped != (seen == before) {
						t.Errorf("swapped is %v, of %x, which was %x", swapped, before, seen)
					}
					if swapped {
						break
					}
				}
			}
		}()
	}
	all.Wait()
	if last := slot.Pair(); last != pairOf(workers*each) || slot.Key() != last.Key || slot.State() != last.State {
		t.Errorf("%x after %d swaps", last, workers*each)
	}
}

// A swap compares and stores both words, and leaves the slots beside.
func TestASwapComparesBothWords(t *testing.T) {
	slots := slotsOf(3)
	for n := range slots {
		slots[n] = Slot{7, 9}
	}
	for _, old := range []Pair{{7, 8}, {8, 9}, {9, 7}, {7 + 1<<63, 9}, {7, 9 + 1<<63}, {}} {
		if seen, swapped := slots[1].swap(old, Pair{1, 2}); swapped || seen != (Pair{7, 9}) {
			t.Errorf("%x: %x, %v", old, seen, swapped)
		}
	}
	if seen, swapped := slots[1].swap(Pair{7, 9}, Pair{1 << 63, 1<<64 - 1}); !swapped || seen != (Pair{7, 9}) {
		t.Errorf("%x, %v", seen, swapped)
	}
	if slots[0] != (Slot{7, 9}) || slots[1].Pair() != (Pair{1 << 63, 1<<64 - 1}) || slots[2] != (Slot{7, 9}) {
		t.Errorf("%x", slots)
	}
}
