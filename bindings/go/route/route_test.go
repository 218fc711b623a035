package route

import (
	"encoding/binary"
	"math"
	"testing"
)

var nodes = []Node{{"a", 1}, {"b", 2}, {"c", 3}, {"10.0.0.4:8080", 4}}

// The same routes as in Rust and C.
func TestRoutesNeverChange(t *testing.T) {
	keys := []string{"alice", "bob", "carol", "dave", "erin", "frank", "", "192.0.2.1"}
	for i, want := range []int{1, 3, 2, 3, 3, 2, 2, 2} {
		if got, ok := Of(nodes, keys[i], 42); got != want || !ok {
			t.Errorf("%q goes to %d, not to %d", keys[i], got, want)
		}
	}
}

// The vectors of the paper that defines SipHash-2-4 (Aumasson and Bernstein 2012), whose key is the
// bytes 0 to 15.
func TestSipHash(t *testing.T) {
	text := string([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14})
	if got := sipHash(0x0706050403020100, 0x0f0e0d0c0b0a0908, text); got != 0xa129ca6149be45e5 {
		t.Errorf("%#x", got)
	}
}

func TestTheLogarithmIsRightToItsLastBits(t *testing.T) {
	for _, n := range []uint64{0, 1, 2, 3, 1 << 20, 1<<53 - 1, 1 << 63, 1<<64 - 2, 1<<64 - 1} {
		want := 64 - math.Log2(float64(n)+1)
		if got := float64(minusLog2(n)) / (1 << 48); math.Abs(got-want) > 64e-13 {
			t.Errorf("%d: %v, not %v", n, got, want)
		}
	}
}

func TestAQuarterMoves(t *testing.T) {
	before := []Node{{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}}
	after := []Node{{"a", 1}, {"b", 1}, {"c", 0}, {"d", 1}}
	moved := 0
	for n := range uint32(100_000) {
		key := string(binary.LittleEndian.AppendUint32(nil, n))
		was, _ := Of(before, key, 7)
		is, _ := Of(after, key, 7)
		if was != is {
			moved++
			if was != 2 {
				t.Fatalf("a key of node %d moved", was)
			}
		}
	}
	if moved < 24_000 || moved > 26_000 {
		t.Errorf("%d of 100000 keys moved", moved)
	}
}

func TestNobodyToGoTo(t *testing.T) {
	if _, ok := Of(nil, "k", 0); ok {
		t.Error("no nodes")
	}
	if _, ok := Of([]Node{{"a", 0}}, "k", 0); ok {
		t.Error("no weights")
	}
	if allocated := testing.AllocsPerRun(100, func() { Of(nodes, "key", 0) }); allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
}

func BenchmarkOfFourNodes(b *testing.B) {
	for range b.N {
		Of(nodes, "192.0.2.1", 42)
	}
}
