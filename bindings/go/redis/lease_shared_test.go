//go:build cgo || tollbar_purego

package redis_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/redis"
)

// connections counts the library's in the store.
func (r *server) connections() int { return strings.Count(r.ask("CLIENT LIST"), "name=tollbar") }

// named makes a lease of that name, which has an overdraft.
func named(t *testing.T, store *server, name string, onChange func(redis.Circuit)) *redis.Lease {
	t.Helper()
	lease, err := redis.NewLease(name, slow, redis.LeaseOptions{Nodes: 2, URL: store.url(), OnChange: onChange})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeIn(lease, 0) })
	return lease
}

func TestLeasesOfAStoreHaveOneConnection(t *testing.T) {
	store := startRedis(t)
	before := runtime.NumGoroutine()
	var leases []*redis.Lease
	for n := range 100 {
		leases = append(leases, named(t, store, fmt.Sprint("limit", n), nil))
	}
	for _, lease := range leases {
		becomes(t, lease, redis.CircuitClosed)
		// A late answer opens it for a while.
		until(t, func() bool { return lease.Err() == nil })
		if !lease.Allow("ann") {
			t.Fatal("refused")
		}
	}
	if n, more := store.connections(), runtime.NumGoroutine()-before; n != 1 || more > 10 {
		t.Fatalf("%d connections, %d goroutines more", n, more)
	}
	// A limit's second lease is another machine.
	second := named(t, store, "limit7", nil)
	becomes(t, second, redis.CircuitClosed)
	if n := store.connections(); n != 2 {
		t.Fatal(n, "connections")
	}
	for n, lease := range leases {
		if n%2 == 0 {
			if err := closeIn(lease, 10*time.Second); err != nil {
				t.Fatal(n, err)
			}
			if said := store.ask(fmt.Sprintf("EXISTS tollbar:{limit%d}:k:ann", n)); said != ":1" {
				t.Fatal(n, "is not charged:", said)
			}
		}
	}
	for n, lease := range leases {
		if n%2 != 0 && !storeAdmits(t, lease, "bob") {
			t.Fatal(n, "refused")
		}
	}
	// The first place that is free is a new lease's.
	again := named(t, store, "limit2", nil)
	if !storeAdmits(t, again, "bob") || store.connections() != 2 {
		t.Fatal("no place in the client")
	}
	for _, lease := range append(leases, again, second) {
		if err := closeIn(lease, 10*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	until(t, func() bool { return store.connections() == 0 })
}

func TestMoreLeasesThanAClientHas(t *testing.T) {
	store := startRedis(t)
	for n := range 130 {
		named(t, store, fmt.Sprint("limit", n), nil)
	}
	last := named(t, store, "last", nil)
	becomes(t, last, redis.CircuitClosed)
	until(t, func() bool { return store.connections() == 2 })
}

// Each lease hears of its own circuit, and may make another one then.
func TestEachLeaseHearsOfItsCircuit(t *testing.T) {
	store := startRedis(t)
	store.ask("ACL SETUSER default resetkeys ~tollbar:{good}:* ~tollbar:{late}:*")
	var good, bad atomic.Uint32
	var late atomic.Pointer[redis.Lease]
	first := named(t, store, "good", func(to redis.Circuit) {
		good.Store(uint32(to))
		if late.Load() == nil {
			late.Store(named(t, store, "late", nil))
		}
	})
	second := named(t, store, "bad", func(to redis.Circuit) { bad.Store(uint32(to)) })
	becomes(t, first, redis.CircuitClosed)
	becomes(t, second, redis.CircuitOpen)
	until(t, func() bool {
		return good.Load() == uint32(redis.CircuitClosed) && bad.Load() == uint32(redis.CircuitOpen) && late.Load() != nil
	})
	becomes(t, late.Load(), redis.CircuitClosed)
	until(t, func() bool { return second.Err() != nil && strings.Contains(second.Err().Error(), "NOPERM") })
	until(t, func() bool { return first.Err() == nil })
}

// Closing many leases beside a store that has gone takes the patience once.
func TestALostStoreHoldsManyClosesOnce(t *testing.T) {
	store := startRedis(t)
	var leases []*redis.Lease
	for n := range 20 {
		leases = append(leases, named(t, store, fmt.Sprint("limit", n), nil))
		becomes(t, leases[n], redis.CircuitClosed)
	}
	store.kill()
	for _, lease := range leases {
		lease.Allow("ann")
	}
	start := time.Now()
	var all sync.WaitGroup
	for _, lease := range leases {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := closeIn(lease, time.Second); err == nil || errors.Is(err, tollbar.ErrClosed) {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	if took := time.Since(start); took > 8*time.Second {
		t.Fatal(took)
	}
}

// A lease that cannot tell its store keeps no other one from joining or leaving.
func TestARefusedLeaseHoldsNoOther(t *testing.T) {
	store := startRedis(t)
	bad, good := named(t, store, "bad", nil), named(t, store, "good", nil)
	becomes(t, bad, redis.CircuitClosed)
	becomes(t, good, redis.CircuitClosed)
	store.does("ACL SETUSER default resetkeys ~tollbar:{good}:* ~tollbar:{late}:*")
	if !bad.Allow("ann") || !good.Allow("ann") {
		t.Fatal("refused")
	}
	closed := make(chan error)
	go func() { closed <- closeIn(bad, 20*time.Second) }()
	time.Sleep(50 * time.Millisecond)
	late := named(t, store, "late", nil)
	becomes(t, late, redis.CircuitClosed)
	if err := closeIn(good, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-closed:
		t.Fatal("it was told: ", err)
	default:
	}
	store.does("ACL SETUSER default ~*")
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
}

// Leases come and go from many goroutines at once: each is admitted, and what it took is charged.
func TestLeasesComeAndGo(t *testing.T) {
	store := startRedis(t)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			random := rand.New(rand.NewPCG(uint64(worker), 1))
			for turn := range 10 {
				name := fmt.Sprintf("limit%d", random.IntN(6))
				lease, err := redis.NewLease(name, slow, redis.LeaseOptions{Nodes: 60, URL: store.url()})
				if err != nil {
					t.Error(err)
					return
				}
				key := fmt.Sprintf("%d-%d", worker, turn)
				if random.IntN(4) != 0 && !storeAdmits(t, lease, key) {
					t.Error("refused")
				}
				if random.IntN(4) == 0 {
					runtime.KeepAlive(lease)
					continue
				}
				if err := closeIn(lease, 20*time.Second); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	all.Wait()
	until(t, func() bool {
		runtime.GC()
		return store.connections() == 0
	})
}
