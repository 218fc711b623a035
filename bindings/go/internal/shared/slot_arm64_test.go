package shared

import (
	"sync"
	"testing"
)

// The exclusive pair and, where the processor has it, CASP swap the same slot at the same time.
func TestBothFormsOfTheSwap(t *testing.T) {
	forms := []func(slot *Slot, oldKey, oldState, newKey, newState uint64) (key, state uint64, swapped bool){casExclusive, cas128}
	t.Log("CASP:", hasLSE)
	slot := &slotsOf(1)[0]
	const each = 20_000
	var all sync.WaitGroup
	for _, swap := range forms {
		all.Add(1)
		go func() {
			defer all.Done()
			for range each {
				key, state, swapped := uint64(0), uint64(0), false
				for !swapped {
					if key != 0 && state != mix(key) {
						t.Errorf("a torn pair %x %x", key, state)
					}
					key, state, swapped = swap(slot, key, state, key+1, mix(key+1))
				}
			}
		}()
	}
	all.Wait()
	if last := slot.Pair(); last.Key != uint64(len(forms))*each || last.State != mix(last.Key) {
		t.Errorf("%x after %d swaps", last, len(forms)*each)
	}
}
