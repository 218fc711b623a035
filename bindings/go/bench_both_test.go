package tollbar_test

import (
	"fmt"
	"testing"

	"github.com/tollbar/tollbar/bindings/go"
)

// bench.sh runs these benchmarks in all builds, with cgo, in Go alone and through purego, and
// compares their times.

func benchmarkKeys(b *testing.B, policy string, ask func(keys tollbar.Keys, key string)) {
	table := memory(b, tollbar.TableOptions{Capacity: 10_000}, policy)
	var names [64]string
	for i := range names {
		names[i] = fmt.Sprintf("192.0.2.%d", i)
	}
	b.ReportAllocs()
	for i := range b.N {
		ask(table.Under(0), names[i%64])
	}
}

func BenchmarkKeysAllow(b *testing.B) {
	benchmarkKeys(b, "1000000000/s", func(keys tollbar.Keys, key string) { keys.Allow(key) })
}

func BenchmarkKeysAllowDenied(b *testing.B) {
	benchmarkKeys(b, "1/day", func(keys tollbar.Keys, key string) { keys.Allow(key) })
}

func BenchmarkKeysCheckAt(b *testing.B) {
	now := uint64(1e17)
	benchmarkKeys(b, "1000000000/s", func(keys tollbar.Keys, key string) {
		now++
		if _, err := keys.CheckAt(key, now, 1); err != nil {
			b.Fatal(err)
		}
	})
}
