//go:build amd64 || arm64

package shared

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go/internal/core"
)

// fileOf makes a table in a file.
func fileOf(t *testing.T, path string, clock uint32) *Table {
	t.Helper()
	policy, algorithm, wrong := core.Parse("3/day")
	if wrong != nil {
		t.Fatalf("%+v", wrong)
	}
	table, failed := OpenOrMake(path, Access{Mode: 0o600}, &Options{Capacity: 1000, Clock: clock}, []Policy{{policy, algorithm}})
	if failed != nil {
		t.Fatalf("%+v", failed)
	}
	t.Cleanup(table.Free)
	return table
}

// After a boot a table's time goes on from the time that was noted, by as much as the wall clock has, and stands still if that went back.
func TestTimeGoesOnAfterABoot(t *testing.T) {
	for _, clock := range []uint32{0, 1, 2} {
		for _, passed := range []time.Duration{0, time.Hour, -time.Hour} {
			path := filepath.Join(t.TempDir(), "table")
			table := fileOf(t, path, clock)
			const noted = uint64(5e17)
			table.header.boot[1].Add(1)
			table.header.tableTime.Store(noted)
			table.header.wallTime.Store(wall() - uint64(passed))
			again := fileOf(t, path, clock)
			if got, want := again.Now(), noted+uint64(max(passed, 0)); got < want || got > want+uint64(10*time.Second) {
				t.Errorf("clock %d, %s: %d, not %d", clock, passed, got, want)
			}
			boot, _ := bootID()
			if h := again.header; h.boot[0].Load() != boot[0] || h.boot[1].Load() != boot[1] || h.tableTime.Load() < noted {
				t.Error("the file has another boot")
			}
			// The second opener takes the first one's time.
			third, wrong := Open(path, false)
			if wrong != nil {
				t.Fatalf("%+v", wrong)
			}
			if third.offset != again.offset {
				t.Errorf("%d, not %d", third.offset, again.offset)
			}
			third.Free()
		}
	}
	table := fileOf(t, filepath.Join(t.TempDir(), "wall"), wallClock)
	if got := table.Now(); got < wall()-uint64(10*time.Second) || got > wall() {
		t.Errorf("%d", got)
	}
}

// The lock of a file whose name leads to another file is an error.
func TestALockIsOfTheOpenFile(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "table")
	table := fileOf(t, path, 0)
	called := 0
	if wrong := table.region.named.exclusively(func() { called++ }); wrong != nil || called != 1 {
		t.Errorf("%+v", wrong)
	}
	if err := syscall.Rename(path, filepath.Join(directory, "former")); err != nil {
		t.Fatal(err)
	}
	fileOf(t, path, 0)
	if wrong := table.region.named.exclusively(func() { called++ }); wrong == nil || wrong.Errno != syscall.ESTALE || called != 1 {
		t.Errorf("%+v", wrong)
	}
}

// A file with a temporary name, for filesystems without unnamed ones, is linked when it is complete, and leaves no other name.
func TestAFileWithATemporaryName(t *testing.T) {
	directory := t.TempDir()
	p, wrong := placeOf(filepath.Join(directory, "table"))
	if wrong != nil {
		t.Fatalf("%+v", wrong)
	}
	defer p.close()
	for n := range 2 {
		r, made, wrong := create(p, 4096, 0o640, func(r *region) *Error {
			names, _ := filepath.Glob(filepath.Join(directory, ".tollbar-*"))
			if len(names) != 1 || r.len != 4096 {
				t.Errorf("%v", names)
			}
			return nil
		}, false)
		if wrong != nil || made != (n == 0) {
			t.Fatalf("%v (%+v)", made, wrong)
		}
		if made {
			r.free()
		}
	}
	names, _ := filepath.Glob(filepath.Join(directory, "*"))
	hidden, _ := filepath.Glob(filepath.Join(directory, ".*"))
	var status syscall.Stat_t
	if err := syscall.Stat(filepath.Join(directory, "table"), &status); err != nil || len(names) != 1 || len(hidden) != 0 || status.Mode&0o777 != 0o640 {
		t.Errorf("%v, %v, %o (%v)", names, hidden, status.Mode, err)
	}
}
