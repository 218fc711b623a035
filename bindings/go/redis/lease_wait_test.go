//go:build cgo || tollbar_purego

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/redis"
)

// hourly is a limit that brings no permit during a test.
const hourly = "5/h"

// none is an overdraft: only the store's permits pass.
var none = uint64(0)

// twoMachines share a limit in the store, which answers both.
func twoMachines(t *testing.T, policy string, options redis.LeaseOptions) [2]*redis.Lease {
	t.Helper()
	options.Nodes = 2
	machines := [2]*redis.Lease{mustLease(t, policy, options), mustLease(t, policy, options)}
	for _, lease := range machines {
		becomes(t, lease, redis.CircuitClosed)
	}
	return machines
}

func becomes(t *testing.T, lease *redis.Lease, circuit redis.Circuit) {
	t.Helper()
	until(t, func() bool { return lease.Circuit() == circuit })
}

// storeAdmits waits for the store's own answer. On a busy machine the circuit may be open for a
// moment, and then the machine has decided, so it asks again.
func storeAdmits(t *testing.T, lease *redis.Lease, key string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		err := lease.Wait(ctx, key)
		if err == nil {
			return true
		}
		if !errors.Is(err, tollbar.ErrDenied) {
			t.Fatal(err)
		}
		if d, err := lease.Peek(key, 1); err != nil || d.Reason == tollbar.ReasonStoreDenied {
			return false
		}
		time.Sleep(time.Millisecond)
	}
}

// admittedInTurn is how many of the tries pass, by the two machines in turn.
func admittedInTurn(t *testing.T, machines [2]*redis.Lease, key string, tries int) (n int) {
	t.Helper()
	for i := range tries {
		if storeAdmits(t, machines[i%2], key) {
			n++
		}
	}
	return n
}

func TestAnIdleKeyPassesAtOnceOnBothMachines(t *testing.T) {
	store := startRedis(t)
	for i, lease := range twoMachines(t, "5/min", redis.LeaseOptions{URL: store.url()}) {
		if !lease.Allow("idle") {
			stats, err := lease.Stats()
			t.Errorf("machine %d: %+v, %v", i, stats, err)
		}
	}
}

func TestFiveWaitingRequestsPassAndTheStoreRefusesTheSixth(t *testing.T) {
	store := startRedis(t)
	machines := twoMachines(t, "5/min", redis.LeaseOptions{URL: store.url(), Overdraft: &none})
	tries := 0
	until(t, func() bool {
		tries++
		d, err := machines[0].Check(fmt.Sprint("pending", tries), 1)
		return err == nil && d.Reason == tollbar.ReasonPending
	})
	for i := range 6 {
		if passes := storeAdmits(t, machines[i%2], "waits"); passes != (i < 5) {
			t.Errorf("request %d: %v", i+1, passes)
		}
	}
	if err := machines[0].WaitN(context.Background(), "many", 6); !errors.Is(err, tollbar.ErrNever) {
		t.Error(err)
	}
}

func TestAfterALossAnIdleKeyIsFullOrRefills(t *testing.T) {
	for _, refill := range []bool{false, true} {
		store := startRedis(t)
		machines := twoMachines(t, hourly, redis.LeaseOptions{URL: store.url(), Overdraft: &none, Refill: refill})
		// With Refill the keys of new data are empty for a second. A key that the store has refused
		// stays refused on this machine, so each try has a key of its own.
		tries := 0
		until(t, func() bool {
			tries++
			return storeAdmits(t, machines[0], fmt.Sprint("new", tries))
		})
		store.kill()
		for _, lease := range machines {
			becomes(t, lease, redis.CircuitOpen)
		}
		store.start()
		for _, lease := range machines {
			becomes(t, lease, redis.CircuitClosed)
		}
		want := 5
		if refill {
			want = 0
		}
		if n := admittedInTurn(t, machines, "idle", 6); n != want {
			t.Errorf("refill %v: %d of 6 pass, not %d", refill, n, want)
		}
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	store := startRedis(t)
	lease := twoMachines(t, slow, redis.LeaseOptions{URL: store.url(), Overdraft: &none})[0]
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := lease.Wait(ctx, "cancelled"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// A stopped store does not answer. The circuit opens 250 ms later, or earlier on a busy machine.
	until(t, func() bool {
		becomes(t, lease, redis.CircuitClosed)
		_ = store.process.Process.Signal(syscall.SIGSTOP)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		err := lease.Wait(ctx, "late")
		_ = store.process.Process.Signal(syscall.SIGCONT)
		return errors.Is(err, context.DeadlineExceeded)
	})
}

func TestWithoutAStoreNobodyWaits(t *testing.T) {
	lease := mustLease(t, slow, redis.LeaseOptions{})
	for i := range 9 {
		var want error
		if i == 8 {
			want = tollbar.ErrDenied
		}
		if err := lease.Wait(context.Background(), "k"); !errors.Is(err, want) {
			t.Errorf("request %d: %v", i+1, err)
		}
	}
}

func TestRequestsWithoutAPlaceAreCounted(t *testing.T) {
	store := startRedis(t)
	lease := twoMachines(t, slow, redis.LeaseOptions{URL: store.url(), Capacity: 64})[0]
	keys := 0
	until(t, func() bool {
		for range 1000 {
			keys++
			lease.Allow(fmt.Sprint("key", keys))
		}
		stats, err := lease.Stats()
		return err == nil && stats.Full > 0 && stats.Denied >= stats.Full
	})
}
