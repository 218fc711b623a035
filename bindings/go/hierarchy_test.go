//go:build cgo || tollbar_purego

package tollbar_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

func shop(t *testing.T) (*tollbar.Table, *tollbar.Hierarchy) {
	t.Helper()
	nodes, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 2000}, tollbar.HierarchyPolicy)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := tollbar.NewHierarchy("1000/s", 100*time.Millisecond, 8, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close(); nodes.Close() })
	return nodes, tree
}

func TestHierarchyOfUsersOfATenant(t *testing.T) {
	nodes, tree := shop(t)
	acme, err := tree.Add(tollbar.HierarchyRoot, tollbar.Child{Name: "acme", Guaranteed: "400/s"})
	if err != nil {
		t.Fatal(err)
	}
	users, err := tree.Add(acme, tollbar.Child{Name: "users", Guaranteed: "1/s", Ceiling: "50/s", Keys: 100})
	if err != nil {
		t.Fatal(err)
	}
	const now = uint64(time.Hour)
	for left := uint64(6); left > 0; left-- {
		want := tollbar.Share{Allowed: true, Remaining: left - 1, Interval: 20 * time.Millisecond, Bound: users}
		if share, err := tree.TakeAt(nodes, users, "ann", now, 1); err != nil || share != want {
			t.Fatal(share, err)
		}
	}
	share, err := tree.TakeAt(nodes, users, "ann", now, 1)
	if err != nil || share.Allowed || share.RetryAfter != 20*time.Millisecond || share.Bound != users {
		t.Fatal(share, err)
	}
	if share, err := tree.TakeAt(nodes, users, "eve", now, 1_000_000_000); err != nil || share.Allowed || !share.Never {
		t.Fatal(share, err)
	}
	if share, err := tree.Take(nodes, users, "", 1); err != nil || !share.Allowed {
		t.Fatal(share, err)
	}
}

// Each class asks for so many requests a second in virtual time, for eight seconds; what passes in
// the last one is fair within a hundredth of the whole rate.
func TestHierarchySharesAreFair(t *testing.T) {
	for _, c := range []struct{ asked, fair [3]uint64 }{
		{[3]uint64{0, 2000, 0}, [3]uint64{0, 1000, 0}},
		{[3]uint64{0, 0, 2000}, [3]uint64{0, 0, 300}},
		{[3]uint64{0, 2000, 2000}, [3]uint64{0, 700, 300}},
		{[3]uint64{2000, 2000, 2000}, [3]uint64{600, 200, 200}},
		{[3]uint64{100, 2000, 2000}, [3]uint64{100, 600, 300}},
	} {
		nodes, tree := shop(t)
		var leaves [3]uint32
		for n, child := range []tollbar.Child{{Name: "ann", Guaranteed: "600/s"}, {Name: "bob"}, {Name: "eve", Ceiling: "300/s"}} {
			number, err := tree.Add(tollbar.HierarchyRoot, child)
			if err != nil {
				t.Fatal(err)
			}
			leaves[n] = number
		}
		var passed [3]uint64
		for ms := range uint64(8000) {
			for leaf, rate := range c.asked {
				for range (ms+1)*rate/1000 - ms*rate/1000 {
					now := uint64(time.Hour) + ms*uint64(time.Millisecond)
					share, err := tree.TakeAt(nodes, leaves[leaf], "", now, 1)
					if err != nil {
						t.Fatal(err)
					}
					if share.Allowed && ms >= 7000 {
						passed[leaf]++
					}
				}
			}
		}
		for leaf, fair := range c.fair {
			if passed[leaf]+10 < fair || passed[leaf] > fair+10 {
				t.Errorf("%v asked for, %v passed, %v is fair", c.asked, passed, c.fair)
			}
		}
	}
}

func TestHierarchyErrors(t *testing.T) {
	nodes, tree := shop(t)
	for _, wrong := range []struct {
		parent uint32
		class  tollbar.Child
		want   tollbar.Code
	}{
		{0, tollbar.Child{Name: "a", Guaranteed: "1001/s"}, tollbar.ErrGuarantee},
		{0, tollbar.Child{Name: "a", Ceiling: "many"}, tollbar.ErrClassRate},
		{0, tollbar.Child{Name: "a", Ceiling: "10/s\x00"}, tollbar.ErrClassRate},
		{0, tollbar.Child{}, tollbar.ErrClassTree},
		{0, tollbar.Child{Name: "a\x00b"}, tollbar.ErrClassTree},
		{5, tollbar.Child{Name: "a"}, tollbar.ErrClassNumber},
	} {
		if _, err := tree.Add(wrong.parent, wrong.class); !errors.Is(err, wrong.want) {
			t.Error(wrong, err)
		}
	}
	if _, err := tollbar.NewHierarchy("1000/s", -1, 8, 0); !errors.Is(err, tollbar.ErrOutOfRange) {
		t.Error(err)
	}
	if _, err := tollbar.NewHierarchy("1000\x00/s", time.Second, 8, 0); !errors.Is(err, tollbar.ErrClassRate) {
		t.Error(err)
	}
	if share, err := tree.Take(nodes, 5, "k", 1); share.Allowed || !errors.Is(err, tollbar.ErrClassNumber) {
		t.Error(share, err)
	}
	tree.Close()
	if share, err := tree.Take(nodes, 0, "k", 1); share.Allowed || !errors.Is(err, tollbar.ErrClosed) {
		t.Error(share, err)
	}
	if _, err := tree.Add(0, tollbar.Child{Name: "a"}); !errors.Is(err, tollbar.ErrClosed) {
		t.Error(err)
	}
}
