package tollbar_test

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"tollbar"
)

// virtualSize is the bytes of this process's address space.
func virtualSize(t *testing.T) int {
	t.Helper()
	fields, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(fields))[0])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// What C holds for a limiter or a table that nobody can reach any more is given back.
func TestDroppedMemoryComesBack(t *testing.T) {
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
		// The C library keeps some of what it gets back for the next one, so the first round does not count.
		round()
		before := virtualSize(t)
		for range rounds {
			round()
		}
		grown := virtualSize(t) - before
		if grown >= rounds*many*each/2 {
			t.Errorf("%s: %d MB more after %d", name, grown>>20, rounds*many)
		}
	}
}
