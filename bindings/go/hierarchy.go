//go:build cgo || tollbar_purego

package tollbar

import (
	"runtime"
	"strings"
	"time"

	"github.com/tollbar/tollbar/bindings/go/internal/guard"
)

// HierarchyPolicy is the policy of a table's nodes.
const HierarchyPolicy = "1000000000/s burst 1099511627776"

// HierarchyRoot is the class that [NewHierarchy] makes.
const HierarchyRoot = 0

// Hierarchy is a tree of classes, for example tenants and their users. Each class has a guaranteed
// rate and a ceiling, and borrows what is idle. The classes' nodes are keys of a table, so
// processes share them. tollbar.h ("Hierarchies") has the rules.
//
//	nodes, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 10000}, tollbar.HierarchyPolicy)
//	shop, err := tollbar.NewHierarchy("1000/s", 100*time.Millisecond, 8, 0)
//	acme, err := shop.Add(tollbar.HierarchyRoot, tollbar.Child{Name: "acme", Guaranteed: "400/s"})
//	users, err := shop.Add(acme, tollbar.Child{Name: "users", Guaranteed: "1/s", Ceiling: "50/s", Keys: 100})
//	share, err := shop.Take(nodes, users, "ann", 1)
type Hierarchy struct {
	handle  uintptr
	guard   *guard.Guard
	cleanup runtime.Cleanup
}

// Child says how a class is added below another one.
type Child struct {
	// Name is the name by which processes find the same nodes. No other child of the class's parent
	// has it.
	Name string
	// Guaranteed is the rate that the class gets whatever others ask for, such as "100/s". "" is
	// none.
	Guaranteed string
	// Ceiling is the rate that the class never exceeds. "" is that of its parent.
	Ceiling string
	// Keys is the number of keys that each get such a node. 0 is 1.
	Keys uint32
}

// Share is the answer to a request for a class.
type Share struct {
	// Allowed says whether the request may pass. Then it has been charged.
	Allowed bool
	// Never: the cost can never pass.
	Never bool
	// Remaining is the number of permits that the leaf could take at once.
	Remaining uint64
	// RetryAfter is the wait of this request; 0 if it was admitted or can never pass.
	RetryAfter time.Duration
	// Interval is the time that one permit costs the leaf at present.
	Interval time.Duration
	// Bound is the class that decided: the one with the longest wait if the request was refused,
	// else the one with the fewest permits left.
	Bound uint32
}

// NewHierarchy makes a hierarchy of up to classes classes, whose root admits rate. Its nodes are
// keys under the policy of that number, which is [HierarchyPolicy]. burst is 1 ms to 10 s and at
// least twenty permits of rate. The error is a [Code].
func NewHierarchy(rate string, burst time.Duration, classes, policy uint32) (*Hierarchy, error) {
	if strings.IndexByte(rate, 0) >= 0 {
		return nil, ErrClassRate
	}
	handle, code := newHierarchy(rate, uint64(max(burst, 0)), classes, policy)
	if code != 0 {
		return nil, code
	}
	h := &Hierarchy{handle: handle, guard: new(guard.Guard)}
	h.cleanup = runtime.AddCleanup(h, freeHierarchy, handle)
	return h, nil
}

// Close waits for the calls under way and frees the hierarchy. Later calls get [ErrClosed]. The
// table keeps its nodes. Close always returns nil.
func (h *Hierarchy) Close() error {
	if h.guard.Close() {
		h.cleanup.Stop()
		freeHierarchy(h.handle)
	}
	return nil
}

// Add adds a child of the class parent, and returns its number. No other call may use the hierarchy
// at the same time.
func (h *Hierarchy) Add(parent uint32, class Child) (uint32, error) {
	if strings.IndexByte(class.Name, 0) >= 0 {
		return 0, ErrClassTree
	}
	if strings.IndexByte(class.Guaranteed+class.Ceiling, 0) >= 0 {
		return 0, ErrClassRate
	}
	c := h.guard.Enter()
	if c == nil {
		return 0, ErrClosed
	}
	number, code := hierarchyAdd(h.handle, parent, &class)
	c.Leave()
	runtime.KeepAlive(h)
	if code != 0 {
		return 0, code
	}
	return number, nil
}

// Take takes n permits for a request of a leaf class. It charges the leaf, or the key's node below
// it, and every class above it. If one of them lacks the permits, it charges none. All requests
// with an empty key share one node.
func (h *Hierarchy) Take(nodes *Table, leaf uint32, key string, n uint64) (Share, error) {
	return h.take(nodes, leaf, key, n, false, 0)
}

// TakeAt is [Hierarchy.Take] at the caller's time, in nanoseconds on the scale of the table's
// clock.
func (h *Hierarchy) TakeAt(nodes *Table, leaf uint32, key string, now, n uint64) (Share, error) {
	return h.take(nodes, leaf, key, n, true, now)
}

func (h *Hierarchy) take(
	nodes *Table, leaf uint32, key string, n uint64, at bool, now uint64,
) (share Share, err error) {
	c := h.guard.Enter()
	if c == nil {
		return Share{}, ErrClosed
	}
	_, err = nodes.ask(func(table tableHandle) (code Code) {
		share, code = hierarchyTake(h.handle, table, leaf, key, n, at, now)
		return min(code, 0)
	})
	c.Leave()
	runtime.KeepAlive(h)
	return share, err
}
