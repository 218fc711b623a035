//go:build cgo || tollbar_purego

package tollbar_test

import (
	"errors"
	"testing"

	"github.com/tollbar/tollbar/bindings/go"
)

func TestAnyAlgorithmBecomesAnyOtherWhereSlotsHaveRoom(t *testing.T) {
	texts := []string{"20/s", "30/h algo sliding-window segments 10", "25/h algo sliding-log"}
	table := mustTable(t, tollbar.TableOptions{Capacity: 100, Room: 30}, "20/h", "1/s")
	if stats, err := table.Stats(); err != nil || stats.Room != 30 {
		t.Error(stats.Room, err)
	}
	if taken, err := table.Under(0).TakeUpTo("k", 14); taken != 14 || err != nil {
		t.Fatal(taken, err)
	}
	for _, text := range texts[1:] {
		if err := table.SetPolicy(0, text); err != nil {
			t.Fatal(text, err)
		}
		if left, err := table.Under(0).Peek("k", 1); left.Remaining != 6 || err != nil {
			t.Error(text, left, err)
		}
	}
	if err := table.SetPolicy(0, "31/s algo sliding-log"); !errors.Is(err, tollbar.ErrSlotRoom) {
		t.Error(err)
	}
	without := mustTable(t, tollbar.TableOptions{Capacity: 100}, "20/h")
	if err := without.SetPolicy(0, texts[1]); !errors.Is(err, tollbar.ErrMixedPolicies) {
		t.Error(err)
	}
}
