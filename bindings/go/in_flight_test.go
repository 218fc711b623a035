//go:build cgo || tollbar_purego

package tollbar_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

func inFlight(t *testing.T, capacity uint64) *tollbar.InFlight {
	t.Helper()
	table, err := tollbar.NewInFlight(tollbar.InFlightOptions{Capacity: capacity})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table
}

// held is how many permits of "k" a table counts.
func held(t *testing.T, table *tollbar.InFlight) uint64 {
	t.Helper()
	count, err := table.Count("k")
	if err != nil {
		t.Fatal(err)
	}
	return count
}

func TestInFlightLimit(t *testing.T) {
	table := inFlight(t, 100)
	var tickets []tollbar.Ticket
	for n := 0; n < 3; n++ {
		ticket, ok, err := table.Acquire("k", 3)
		if !ok || err != nil {
			t.Fatal(n, err)
		}
		tickets = append(tickets, ticket)
	}
	if _, ok, err := table.Acquire("k", 3); ok || err != nil || held(t, table) != 3 {
		t.Fatal("the fourth of three", ok, err)
	}
	if !tickets[0].Release() {
		t.Fatal("not released")
	}
	// A lower limit refuses until enough has come back.
	if _, ok, _ := table.Acquire("k", 2); ok {
		t.Fatal("a third of two")
	}
	if !tickets[1].Release() || !tickets[2].Release() || tickets[2].Release() || (tollbar.Ticket{}).Release() {
		t.Fatal("released wrongly")
	}
	if held(t, table) != 0 {
		t.Fatal("something is left")
	}
}

func TestInFlightGoroutines(t *testing.T) {
	table := inFlight(t, 100)
	var inside, admitted atomic.Int64
	var all sync.WaitGroup
	for n := 0; n < 8; n++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for n := 0; n < 2000; n++ {
				func() {
					ticket, ok, err := table.Acquire("k", 2)
					if err != nil {
						t.Error(err)
					}
					if !ok {
						return
					}
					defer ticket.Release()
					if inside.Add(1) > 2 {
						t.Error("more than two")
					}
					admitted.Add(1)
					inside.Add(-1)
				}()
			}
		}()
	}
	all.Wait()
	if admitted.Load() < 2000 || held(t, table) != 0 {
		t.Fatal(admitted.Load(), held(t, table))
	}
}

func TestInFlightErrors(t *testing.T) {
	if _, err := tollbar.NewInFlight(tollbar.InFlightOptions{}); !errors.Is(err, tollbar.ErrCapacity) {
		t.Fatal(err)
	}
	if _, err := tollbar.OpenInFlight(filepath.Join(t.TempDir(), "none"), tollbar.InFlightOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if _, err := tollbar.OpenInFlight("", tollbar.InFlightOptions{Capacity: 1}); !errors.Is(err, tollbar.ErrOpen) {
		t.Fatal(err)
	}
	full := inFlight(t, 1)
	var err error
	for n := 0; n < 100 && err == nil; n++ {
		_, _, err = full.Acquire(fmt.Sprint(n), 1)
	}
	if err != tollbar.ErrInFlightFull {
		t.Fatal(err)
	}
	table := inFlight(t, 100)
	ticket, _, _ := table.Acquire("k", 1)
	table.Close()
	table.Close()
	if _, ok, err := table.Acquire("k", 1); ok || err != tollbar.ErrClosed || ticket.Release() {
		t.Fatal(ok, err)
	}
	if _, err := table.Count("k"); err != tollbar.ErrClosed {
		t.Fatal(err)
	}
}

// TestInFlightHolder is the process that TestInFlightKilled kills.
func TestInFlightHolder(t *testing.T) {
	path := os.Getenv("TOLLBAR_IN_FLIGHT")
	if path == "" {
		t.Skip("for TestInFlightKilled")
	}
	table, err := tollbar.OpenInFlight(path, tollbar.InFlightOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < 2; n++ {
		if _, ok, err := table.Acquire("k", 3); !ok {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path+".ready", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Hour)
}

func TestInFlightKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	table, err := tollbar.OpenInFlight(path, tollbar.InFlightOptions{Capacity: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	mine, _, _ := table.Acquire("k", 3)
	for round := 0; round < 5; round++ {
		child := exec.Command(os.Args[0], "-test.run=^TestInFlightHolder$")
		child.Env = append(os.Environ(), "TOLLBAR_IN_FLIGHT="+path)
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		for start := time.Now(); ; time.Sleep(time.Millisecond) {
			if os.Remove(path+".ready") == nil {
				break
			}
			if time.Since(start) > time.Minute {
				t.Fatal("the child is not ready")
			}
		}
		if _, ok, _ := table.Acquire("k", 3); ok {
			t.Fatal("a fourth of three")
		}
		child.Process.Kill()
		start := time.Now()
		for {
			// The child is not waited for yet.
			if ticket, ok, _ := table.Acquire("k", 3); ok {
				ticket.Release()
				break
			}
			if time.Since(start) > 30*time.Second {
				t.Fatal("what the child held did not come back")
			}
			time.Sleep(time.Millisecond)
		}
		child.Wait()
	}
	if held(t, table) != 1 || !mine.Release() {
		t.Fatal("a live ticket was lost")
	}
}
