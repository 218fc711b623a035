package shared

import (
	"math"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go/internal/core"
)

// E10: between the read and the swap of one return, another return and a request at a later time bring the state
// back. Without turns five permits would pass at one instant.
func TestAStateThatCameBackGivesNothingTwice(t *testing.T) {
	table := tableOf(t, onFullDeny, "1/s burst 4")
	place, _, _, _ := keyOf(t, table, "ann")
	take := func(now, n uint64) bool {
		verdict, code := place.Take(now, n)
		return code == 0 && verdict == core.Allowed
	}
	for _, n := range []uint64{2, 1, 1} {
		if !take(now, n) {
			t.Fatal("refused")
		}
	}
	// The state is marked from now on.
	one := core.Charge{At: now, Cost: 1}
	if back, code := place.Return(one, func() uint64 { return now }); back != 1 || code != 0 {
		t.Fatal(back, code)
	}
	later, taken := now, 0
	slept := func() uint64 {
		read := later
		if read == now {
			// The other return waits for the turn, and then gives nothing back.
			if _, code := place.Return(one, func() uint64 { return now }); code != 0 {
				t.Error(code)
			}
			later += uint64(time.Second)
			if take(later, 1) {
				taken++
			}
		}
		return read
	}
	if _, code := place.Return(core.Charge{At: now, Cost: 2}, slept); code != 0 {
		t.Error(code)
	}
	for take(later, 1) {
		taken++
	}
	if taken > 4 || taken < 3 {
		t.Errorf("%d permits at one instant", taken)
	}
}

// A return whose process was killed in its turn holds up no other.
func TestTheTurnOfAKilledProcess(t *testing.T) {
	table := tableOf(t, onFullDeny, "1/s burst 4")
	place, c, _, _ := keyOf(t, table, "ann")
	if verdict, code := place.Take(now, 4); code != 0 || verdict != core.Allowed {
		t.Fatal(verdict, code)
	}
	turn := &table.header.returns[c.tag%turns]
	// No process has the highest number. One of another namespace, or another goroutine of this process, may run.
	gone := self>>32<<32 | math.MaxInt32
	holders := []uint64{0, gone, gone ^ 1<<40, self}
	want := []uint64{1, 1, 0, 0}
	if !isGone(math.MaxInt32) || self>>32 == 0 {
		// Another system, where no other process uses the table, or one that does not say its namespaces.
		t.Log("no process is known to have ended here")
		want[1] = 0
	}
	for i, holder := range holders {
		turn.Store(holder)
		back, code := place.Return(core.Charge{At: now, Cost: 1}, func() uint64 { return now })
		if code != 0 || back != want[i] {
			t.Errorf("%d came back beside %x, not %d (%v)", back, holder, want[i], code)
		}
		if left := turn.Load(); want[i] != 0 && left != 0 {
			t.Errorf("the turn is %x's after the return", left)
		}
	}
}
