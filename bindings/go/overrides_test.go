//go:build cgo || tollbar_purego

package tollbar_test

import (
	"errors"
	"testing"

	"github.com/tollbar/tollbar/bindings/go"
)

func TestAKeyHasAPolicyOfItsOwn(t *testing.T) {
	table := mustTable(t, tollbar.TableOptions{Capacity: 100, Overrides: 2}, "3/day", "4/day")
	calls := table.Under(0)
	if err := calls.SetOverride("acme", "1000/day burst 50", tollbar.KeepCount); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]uint64{"acme": 50, "other": 3} {
		if taken, err := calls.TakeUpTo(key, 100); taken != want || err != nil {
			t.Errorf("%s took %d of %d, %v", key, taken, want, err)
		}
	}
	if taken, _ := table.Under(1).TakeUpTo("acme", 100); taken != 4 {
		t.Errorf("under another policy %d", taken)
	}
	if own, has, err := calls.Override("acme"); own.Burst != 50 || !has || err != nil {
		t.Error(own, has, err)
	}
	if _, has, err := calls.Override("other"); has || err != nil {
		t.Error(has, err)
	}
	hash, _ := calls.Hash("acme")
	list, err := table.Overrides()
	if err != nil || len(list) != 1 || list[0].Hash != hash || list[0].Policy != 0 || list[0].Own.Burst != 50 {
		t.Error(list, err)
	}
	if stats, _ := table.Stats(); stats.Overrides != 1 {
		t.Error(stats.Overrides)
	}
	if had, err := calls.ClearOverride("acme"); !had || err != nil {
		t.Error(had, err)
	}
	if had, err := calls.ClearOverride("acme"); had || err != nil {
		t.Error(had, err)
	}
	if calls.Allow("acme") {
		t.Error("the debt is gone")
	}
}

func TestOverridesThatAreRefused(t *testing.T) {
	table := mustTable(t, tollbar.TableOptions{Capacity: 100, Overrides: 1}, "3/day")
	keys := table.Under(0)
	var refused *tollbar.PolicyError
	if err := keys.SetOverride("a", "5/dy", tollbar.KeepCount); !errors.As(err, &refused) {
		t.Error(err)
	}
	if err := keys.SetOverride("a", "5/day", tollbar.KeepReset); err != nil {
		t.Error(err)
	}
	if err := keys.SetOverride("b", "5/day", tollbar.KeepCount); !errors.Is(err, tollbar.ErrOverridesFull) {
		t.Error(err)
	}
	if err := keys.SetOverride("", "5/day", tollbar.KeepCount); !errors.Is(err, tollbar.ErrMissingKey) {
		t.Error(err)
	}
	if err := table.Under(1).SetOverride("a", "5/day", tollbar.KeepCount); !errors.Is(err, tollbar.ErrNoSuchPolicy) {
		t.Error(err)
	}
	table.Close()
	_, cleared := keys.ClearOverride("a")
	_, _, got := keys.Override("a")
	_, listed := table.Overrides()
	for _, err := range []error{keys.SetOverride("a", "5/day", tollbar.KeepCount), cleared, got, listed} {
		if !errors.Is(err, tollbar.ErrClosed) {
			t.Error(err)
		}
	}
}
