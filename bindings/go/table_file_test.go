//go:build cgo || tollbar_purego

package tollbar_test

import (
	"path/filepath"
	"runtime"
	"testing"

	"github.com/tollbar/tollbar/bindings/go"
)

// A thread of a table with hot keys takes permits in advance: the table is charged for them, and
// that thread still has them.
func TestHotKeys(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	path := filepath.Join(t.TempDir(), "table")
	plain, err := tollbar.OpenTable(path, thousand, "100000/day")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	hot, err := tollbar.OpenTable(path, tollbar.TableOptions{HotKeys: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer hot.Close()
	for n := 0; n < 100; n++ {
		if !hot.Allow("a") {
			t.Fatal(n)
		}
	}
	own, _ := hot.Under(0).Peek("a", 1)
	rest, _ := plain.Under(0).Peek("a", 1)
	if own.Remaining <= rest.Remaining || own.Remaining > 100000-100+2 {
		t.Error(own, rest)
	}
}

// A table in a file is written to its disk.
func TestSync(t *testing.T) {
	table, err := tollbar.OpenTable(filepath.Join(t.TempDir(), "table"), thousand, "3/day")
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if err := table.Sync(); err != nil {
		t.Error(err)
	}
}
