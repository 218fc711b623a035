//go:build cgo || tollbar_purego

package tollbar_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tollbar/tollbar/bindings/go"
)

// These tests hold with cgo and through purego.

var thousand = tollbar.TableOptions{Capacity: 1000, Mode: 0o640}

// Two views of a file are one table, and the end of one leaves the other.
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
	b.Close()
	if a.Allow("key") || !a.Allow("another") {
		t.Error("one closed, the other too")
	}
}

// The test program starts itself several times, and each process takes as many permits of one key
// as it can.
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
		if err := child.Start(); errors.Is(err, syscall.ENOEXEC) {
			t.Skip("an emulator runs this program, and the system cannot start it")
		} else if err != nil {
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
		{path, tollbar.TableOptions{Capacity: 1000, OnFull: tollbar.OnFullAllow},
			[]string{"3/day"}, tollbar.ErrOtherOptions},
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

// A file that strangers may write or replace is refused, and a caller that trusts anyone takes it.
func TestWhoseFile(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "table")
	open := func(path string, options tollbar.TableOptions) error {
		table, err := tollbar.OpenTable(path, options)
		if err == nil {
			table.Close()
		}
		return err
	}
	table, err := tollbar.OpenTable(path, thousand, "3/day")
	if err != nil {
		t.Fatal(err)
	}
	table.Close()
	anyone := tollbar.TableOptions{TrustAnyone: true}
	check := func(name string, change, undo func() error) {
		t.Helper()
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if err := open(path, tollbar.TableOptions{}); !errors.Is(err, tollbar.ErrOwner) {
			t.Errorf("%s: %v", name, err)
		}
		if err := open(path, anyone); err != nil {
			t.Errorf("%s, with trust: %v", name, err)
		}
		if err := undo(); err != nil {
			t.Fatal(err)
		}
		if err := open(path, tollbar.TableOptions{}); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
	mode := func(name string, mode fs.FileMode) func() error {
		return func() error { return os.Chmod(name, mode) }
	}
	check("a file that all may write", mode(path, 0o666), mode(path, 0o600))
	check("a file that the group may write", mode(path, 0o660), mode(path, 0o600))
	check("a directory that all may write", mode(directory, 0o777), mode(directory, 0o700))
	// A caller whose mode lets the group write takes such a file, without policies too.
	err = os.Chmod(path, 0o660)
	err = errors.Join(err, open(path, tollbar.TableOptions{Mode: 0o660}), os.Chmod(path, 0o600))
	if err != nil {
		t.Errorf("a file that the group may write, with that mode: %v", err)
	}
	second := filepath.Join(directory, "second")
	check("a second name in a directory of strangers", func() error {
		return errors.Join(os.Chmod(directory, 0o777|fs.ModeSticky), os.Link(path, second))
	}, func() error { return os.Remove(second) })
	if os.Geteuid() == 0 {
		check("a file of another user",
			func() error { return os.Chown(path, 12345, 0) },
			func() error { return os.Chown(path, 0, 0) })
		check("a directory of another user",
			func() error { return os.Chown(directory, 12345, 0) },
			func() error { return os.Chown(directory, 0, 0) })
	}
	link := filepath.Join(directory, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := open(link, anyone); !errors.Is(err, tollbar.ErrNotATable) {
		t.Error(err)
	}
}

// A file that is shorter or longer than its table, or has a damaged header, is refused with the
// reason, and stays as it is.
func TestADamagedFile(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "table")
	table, err := tollbar.OpenTable(path, thousand, "3/day", "5/s")
	if err != nil {
		t.Fatal(err)
	}
	table.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(at int, by byte) []byte {
		content := append([]byte(nil), whole...)
		content[at] ^= by
		return content
	}
	for name, c := range map[string]struct {
		content []byte
		is      error
	}{
		"empty":             {nil, tollbar.ErrNotATable},
		"short":             {whole[:len(whole)-1], tollbar.ErrTruncated},
		"long":              {append(append([]byte(nil), whole...), 0), tollbar.ErrTruncated},
		"a beginning":       {whole[:100], tollbar.ErrTruncated},
		"another magic":     {changed(3, 1), tollbar.ErrNotATable},
		"another layout":    {changed(9, 1), tollbar.ErrTableVersion},
		"another length":    {changed(16, 1), tollbar.ErrCorrupt},
		"another seed":      {changed(16+6*8, 1), tollbar.ErrCorrupt},
		"another checksum":  {changed(16+10*8, 1), tollbar.ErrCorrupt},
		"a damaged version": {changed(4096+256+16, 1), tollbar.ErrCorrupt},
	} {
		if err := os.WriteFile(path, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		table, err := tollbar.OpenTable(path, thousand, "3/day", "5/s")
		if !errors.Is(err, c.is) || table != nil {
			t.Errorf("%s: %v", name, err)
		}
		if content, err := os.ReadFile(path); err != nil || string(content) != string(c.content) {
			t.Errorf("%s: the file has changed (%v)", name, err)
		}
	}
}

// E6: one key through two views of one file is one limit, and a refused request charges nothing.
func TestTwoViewsOfOneFileAreOneLimit(t *testing.T) {
	for _, policy := range []string{
		"10/h burst 10", "7/s burst 10", "10/h algo fixed-window",
		"10/h burst 10 algo interval", "7/s burst 10 ban 1h",
	} {
		path := filepath.Join(t.TempDir(), "table")
		open := func() *tollbar.Table {
			table, err := tollbar.OpenTable(path, tollbar.TableOptions{Capacity: 100}, policy)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { table.Close() })
			return table
		}
		a, b := open(), open()
		now := uint64(1_000_000_007)
		taken, err := tollbar.TakeManyAt(now, nil, a.Limit("k", 6), b.Limit("k", 6))
		if err != nil || taken.Verdict != tollbar.Never {
			t.Errorf("%s: %+v, %v", policy, taken, err)
		}
		if d, err := a.Under(0).PeekAt("k", now, 0); err != nil || d.Remaining != 10 {
			t.Errorf("%s: %+v, %v", policy, d, err)
		}
		taken, err = tollbar.TakeManyAt(now, nil, a.Limit("k", 6), b.Limit("k", 4))
		if err != nil {
			t.Errorf("%s: %v", policy, err)
		}
		if d, err := b.Under(0).PeekAt("k", now, 0); err != nil || !taken.Allowed() || d.Remaining != 0 {
			t.Errorf("%s: %+v, %+v, %v", policy, taken, d, err)
		}
	}
}

// E6: the wait of a refusal is true for a bucket that begins to fill at its first request.
func TestARetryCountsABucketThatHasNotBegun(t *testing.T) {
	limiter := func(policy string) *tollbar.Limiter {
		l, err := tollbar.NewLimiter(policy)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	second, empty := limiter("1/s"), limiter("1/s burst 5 init 0")
	now := uint64(1_000_000_007)
	limits := []tollbar.Limit{second.Limit(1), empty.Limit(1)}
	if d, err := second.CheckAt(now, 1); err != nil || !d.Allowed() {
		t.Fatal(d, err)
	}
	taken, err := tollbar.TakeManyAt(now, nil, limits...)
	if err != nil || taken.Verdict != tollbar.Denied {
		t.Fatal(taken, err)
	}
	if taken, err = tollbar.TakeManyAt(now+uint64(taken.RetryAfter), nil, limits...); err != nil || !taken.Allowed() {
		t.Error(taken, err)
	}
}
