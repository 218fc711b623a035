//go:build amd64 || arm64

package shared

import (
	"os"
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

// After a boot a table's time goes on from the time that was noted, by as much as the wall clock has, and stands
// still if that went back.
func TestTimeGoesOnAfterABoot(t *testing.T) {
	for _, clock := range []uint32{0, 1, 2} {
		for _, passed := range []time.Duration{0, time.Hour, -time.Hour} {
			path := filepath.Join(t.TempDir(), "table")
			table := fileOf(t, path, clock)
			const noted = uint64(5e17)
			table.header.boot[1].Add(1)
			table.header.inode.Add(1)
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

// A file with a temporary name, for filesystems without unnamed ones, is linked when it is complete, and leaves no
// other name.
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

// E1: a name that cannot be read agrees with nothing, and is no other boot. The cases are those of
// src/table/memory/region/boot.rs.
func TestOneNameThatAgreesIsEnough(t *testing.T) {
	of := func(id, inode uint64) boot { return boot{[2]uint64{id, id}, inode} }
	for _, c := range []struct {
		noted, here boot
		want        int
	}{
		{of(1, 0), of(1, 0), sameBoot}, {of(1, 0), of(2, 0), otherBoot}, {of(1, 0), of(0, 0), unknownBoot}, {of(0, 0), of(0, 0), unknownBoot},
		{of(1, 7), of(1, 7), sameBoot}, {of(1, 7), of(0, 7), sameBoot}, {of(1, 7), of(2, 7), sameBoot}, {of(1, 7), of(1, 0), sameBoot},
		{of(0, 7), of(0, 7), sameBoot}, {of(1, 7), of(1, 8), sameBoot}, {of(1, 7), of(2, 8), otherBoot}, {of(1, 7), of(0, 8), unknownBoot},
		{of(0, 7), of(1, 8), unknownBoot}, {of(0, 7), of(0, 0), unknownBoot}, {of(1, 7), of(1, 0), sameBoot}, {of(1, 7), of(2, 0), otherBoot},
	} {
		if got := c.noted.agrees(c.here); got != c.want {
			t.Errorf("%v %v: %d, not %d", c.noted, c.here, got, c.want)
		}
	}
}

// E3: the offset of a time namespace, of either sign.
func TestOffsetsOfATimeNamespace(t *testing.T) {
	for text, want := range map[string]int64{
		"monotonic    86400         7\nboottime        -2 500000000\n": 86_400_000_000_007, "boottime 1 2\nmonotonic -2 500000000\n": -1_500_000_000,
	} {
		if got, ok := parseOffset(text); !ok || got != want {
			t.Errorf("%q: %d (%v)", text, got, ok)
		}
	}
	for _, broken := range []string{"", "monotonic 1\n", "monotonic x 0\n", "monotonic 9223372037 0\n", "monotonic 99999999999999999999 0\n"} {
		if got, ok := parseOffset(broken); ok {
			t.Errorf("%q: %d", broken, got)
		}
	}
	for link, request := range map[string]uintptr{"/proc/self/ns/time": getTimeNamespace, "/proc/self/ns/pid": getPIDNamespace} {
		if number, ok := linkNumber(link); ok {
			if by, also := byPidfd(request); also && by != number {
				t.Errorf("%s: %d, not %d", link, by, number)
			}
		}
	}
}

// A file in tmpfs needs no boot's id, and its copy is another file.
func TestAFileInMemoryHasAName(t *testing.T) {
	directory, err := os.MkdirTemp("/dev/shm", "tollbar-go-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(directory)
	path := filepath.Join(directory, "table")
	table := fileOf(t, path, 0)
	name := table.region.named.inode
	if name == 0 || table.header.noted().inode != name {
		t.Errorf("%d, not %d", table.header.noted().inode, name)
	}
	bytes, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path+"2", bytes, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if other := fileOf(t, path+"2", 0).region.named.inode; other == 0 || other == name {
		t.Errorf("%d and %d", name, other)
	}
	if on := fileOf(t, filepath.Join(t.TempDir(), "table"), 0).region.named.inode; on == name {
		t.Errorf("%d", on)
	}
}
