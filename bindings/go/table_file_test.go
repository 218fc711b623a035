//go:build cgo

package tollbar_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tollbar/tollbar/bindings/go"
)

var thousand = tollbar.TableOptions{Capacity: 1000, Mode: 0o640}

// A thread of a table with hot keys takes permits in advance: the table is charged for them, and that thread still has them.
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

func TestAFileIsSharedByItsOpeners(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	a, err := tollbar.OpenTable(path, thousand, "3/day")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Error(info.Mode(), err)
	}
	// Without policies and capacity, OpenTable opens the file with its own.
	b, err := tollbar.OpenTable(path, tollbar.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !a.Allow("key") || !b.Allow("key") || !a.Allow("key") || b.Allow("key") {
		t.Error("two openers, two counts")
	}
	if err := b.Sync(); err != nil {
		t.Error(err)
	}
	b.Close()
	if a.Allow("key") || !a.Allow("another") {
		t.Error("one closed, the other too")
	}
}

// The test program starts itself several times, and each process takes as many permits of one key as it can.
func TestProcessesShareATable(t *testing.T) {
	const asked = "TOLLBAR_TEST_TABLE"
	take := func(path string) int {
		table, err := tollbar.OpenTable(path, thousand, "5000/day")
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		taken := 0
		for range 4000 {
			if table.Allow("key") {
				taken++
			}
		}
		return taken
	}
	if path := os.Getenv(asked); path != "" {
		fmt.Printf("took %d\n", take(path))
		return
	}
	path := filepath.Join(t.TempDir(), "table")
	var children []*exec.Cmd
	var outputs []*strings.Builder
	for range 3 {
		child := exec.Command(os.Args[0], "-test.run=^TestProcessesShareATable$")
		child.Env = append(os.Environ(), asked+"="+path)
		output := new(strings.Builder)
		child.Stdout, child.Stderr = output, output
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		children, outputs = append(children, child), append(outputs, output)
	}
	all := 0
	for i, child := range children {
		if err := child.Wait(); err != nil {
			t.Fatal(err, outputs[i])
		}
		var taken int
		if _, err := fmt.Sscanf(outputs[i].String(), "took %d", &taken); err != nil {
			t.Fatal(outputs[i])
		}
		all += taken
	}
	if all != 5000 {
		t.Errorf("%d of 5000 taken", all)
	}
}

func TestAFileThatIsNotThisTable(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "table")
	table, err := tollbar.OpenTable(path, thousand, "3/day")
	if err != nil {
		t.Fatal(err)
	}
	table.Close()
	text := filepath.Join(directory, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no table\n", 10000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path    string
		options tollbar.TableOptions
		policy  []string
		is      error
	}{
		{path, tollbar.TableOptions{Capacity: 1000000}, []string{"3/day"}, tollbar.ErrOtherCapacity},
		{path, thousand, []string{"4/day"}, tollbar.ErrOtherPolicies},
		{path, tollbar.TableOptions{Capacity: 1000, OnFull: tollbar.OnFullAllow}, []string{"3/day"}, tollbar.ErrOtherOptions},
		{text, thousand, []string{"3/day"}, tollbar.ErrNotATable},
		{filepath.Join(directory, "none", "table"), thousand, []string{"3/day"}, fs.ErrNotExist},
		{filepath.Join(directory, "none"), tollbar.TableOptions{}, nil, fs.ErrNotExist},
		{directory, thousand, []string{"3/day"}, tollbar.ErrNotATable},
		{"", thousand, []string{"3/day"}, tollbar.ErrOpen},
	} {
		table, err := tollbar.OpenTable(c.path, c.options, c.policy...)
		var refused *tollbar.TableError
		if !errors.Is(err, c.is) || !errors.As(err, &refused) || refused.Path != c.path || table != nil {
			t.Errorf("%s: %v", c.path, err)
		} else if c.path != "" && !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: %v", c.path, err)
		}
	}
}
