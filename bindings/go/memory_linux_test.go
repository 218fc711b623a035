//go:build cgo || tollbar_purego

package tollbar_test

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

// virtualSize is the bytes of this process's address space.
func virtualSize(t *testing.T) int {
	t.Helper()
	fields, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatalf("%v; expected: a Linux with /proc", err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(fields))[0])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// The C memory of an unreachable limiter or table is freed.
//
// The test program starts itself with one malloc arena instead of 64 MB for each thread, and with
// large blocks returned to the system at once.
func TestDroppedMemoryComesBack(t *testing.T) {
	const asked = "TOLLBAR_TEST_MEMORY"
	if os.Getenv(asked) == "" {
		child := exec.Command(os.Args[0], "-test.run=^TestDroppedMemoryComesBack$")
		child.Env = append(os.Environ(), asked+"=1", "MALLOC_ARENA_MAX=1", "MALLOC_MMAP_THRESHOLD_=1048576")
		if output, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		return
	}
	const each, many, rounds = 8 << 20, 20, 6
	for name, drop := range map[string]func(){
		"limiter": func() {
			l := mustLimiter(t, "1000000/s algo sliding-log") // 8 bytes an entry
			l.Allow()
		},
		"table": func() {
			table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: each / 20}, "1/s")
			if err != nil {
				t.Fatal(err)
			}
			table.Allow("key")
		},
		"closed table": func() {
			table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: each / 20}, "1/s")
			if err != nil {
				t.Fatal(err)
			}
			table.Close()
		},
	} {
		round := func() {
			for range many {
				drop()
			}
			// Cleanups run after a collection, in a goroutine of their own.
			for range 3 {
				runtime.GC()
				time.Sleep(10 * time.Millisecond)
			}
		}
		// Threads and Go's own memory come with the first round.
		round()
		before := virtualSize(t)
		for range rounds {
			round()
		}
		grown := virtualSize(t) - before
		// A busy machine may be behind with it.
		for tries := 0; grown >= rounds*many*each/2 && tries < 500; tries++ {
			runtime.GC()
			time.Sleep(10 * time.Millisecond)
			grown = virtualSize(t) - before
		}
		if grown >= rounds*many*each/2 {
			t.Errorf("%s: %d MB more after %d", name, grown>>20, rounds*many)
		}
	}
}
