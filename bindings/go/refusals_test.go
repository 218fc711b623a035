//go:build cgo || tollbar_purego

package tollbar_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

func TestTheMostRefusedKeys(t *testing.T) {
	table := mustTable(t, tollbar.TableOptions{Capacity: 100}, "1/day", "2/day")
	if on, err := table.RecordsRefusals(); on || err != nil {
		t.Error(on, err)
	}
	if err := table.RecordRefusals(true); err != nil {
		t.Fatal(err)
	}
	// Counts are halved when such a time begins.
	const period = 1 << 36
	for now, err := table.Now(); period-now%period < uint64(10*time.Second); now, err = table.Now() {
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	long := strings.Repeat("x", 100)
	for n := 0; n < 6; n++ {
		_ = table.Allow("alice")
		_ = table.Under(1).Allow(long)
	}
	want := []tollbar.Refused{{0, 5, "alice", false}, {1, 4, long[:48], true}}
	if top, err := table.TopRefused(20); err != nil || !reflect.DeepEqual(top, want) {
		t.Error(top, err)
	}
	for most, length := range map[int]int{0: 0, 1: 1, 1000: 2} {
		if top, err := table.TopRefused(most); err != nil || len(top) != length {
			t.Error(most, top, err)
		}
	}
	if _, err := table.TopRefused(-1); !errors.Is(err, tollbar.ErrOutOfRange) {
		t.Error(err)
	}
	if err := table.RecordRefusals(false); err != nil {
		t.Error(err)
	}
	if on, err := table.RecordsRefusals(); on || err != nil {
		t.Error(on, err)
	}
	_ = table.Close()
	if _, err := table.TopRefused(1); !errors.Is(err, tollbar.ErrClosed) {
		t.Error(err)
	}
}
