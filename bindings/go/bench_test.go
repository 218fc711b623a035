//go:build cgo || tollbar_purego

package tollbar

import (
	"strconv"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go/cell"
)

// A policy that lets everything pass: what costs most.
const everything = "1000000000/s burst 1000000000"

func mustLimiter(tb testing.TB, policy string) *Limiter {
	tb.Helper()
	l, err := NewLimiter(policy)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func BenchmarkEmptyCall(b *testing.B) {
	l := mustLimiter(b, everything)
	for range b.N {
		emptyCall(l)
	}
}

func BenchmarkClock(b *testing.B) {
	start := time.Now()
	for range b.N {
		_ = time.Since(start)
	}
}

func BenchmarkAllow(b *testing.B) {
	l := mustLimiter(b, everything)
	for range b.N {
		l.Allow()
	}
}

func BenchmarkAllowDenied(b *testing.B) {
	l := mustLimiter(b, "1/day")
	for range b.N {
		l.Allow()
	}
}

func BenchmarkAllowAt(b *testing.B) {
	l := mustLimiter(b, everything)
	for i := range b.N {
		AllowNanos(l, uint64(i), 1)
	}
}

func BenchmarkCheck(b *testing.B) {
	l := mustLimiter(b, everything)
	for range b.N {
		if _, err := l.Check(1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckMany64(b *testing.B) {
	l := mustLimiter(b, everything)
	verdicts := make([]Verdict, 64)
	for range b.N {
		if err := l.CheckMany(nil, verdicts); err != nil {
			b.Fatal(err)
		}
	}
	perKey(b, 64)
}

func perKey(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
}

func benchTable(b *testing.B) *Table {
	table, err := NewTable(TableOptions{Capacity: 10000}, everything)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { table.Close() })
	return table
}

func addresses(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "192.0.2." + strconv.Itoa(i)
	}
	return keys
}

func BenchmarkTableAllow(b *testing.B) {
	table, keys := benchTable(b), addresses(64)
	for i := range b.N {
		table.Allow(keys[i%64])
	}
}

func BenchmarkTableCheckMany64(b *testing.B) {
	table, keys := benchTable(b), addresses(64)
	var batch Batch
	for range b.N {
		batch.Clear()
		for _, key := range keys {
			batch.Add(key)
		}
		if err := table.CheckMany(&batch); err != nil {
			b.Fatal(err)
		}
	}
	perKey(b, 64)
}

func BenchmarkTableCheckAll64(b *testing.B) {
	table, keys := benchTable(b), addresses(64)
	var batch Batch
	for range b.N {
		batch.Clear()
		batch.AddAll(keys)
		if err := table.CheckMany(&batch); err != nil {
			b.Fatal(err)
		}
	}
	perKey(b, 64)
}

// The time in C and of the call into C, without Add: the same requests each time.
func BenchmarkTableFilled64(b *testing.B) {
	table, keys := benchTable(b), addresses(64)
	var batch Batch
	batch.AddAll(keys)
	for range b.N {
		if err := table.CheckMany(&batch); err != nil {
			b.Fatal(err)
		}
	}
	perKey(b, 64)
}

// C's own batch of the same requests, without a call from Go.
func BenchmarkTableManyInC64(b *testing.B) {
	table, keys := benchTable(b), addresses(64)
	var batch Batch
	batch.AddAll(keys)
	b.ResetTimer()
	if code := manyInC(table, &batch, b.N); code != 0 || !batch.Allowed(63) {
		b.Fatal(code)
	}
	perKey(b, 64)
}

func BenchmarkBatchAddAll64(b *testing.B) {
	keys := addresses(64)
	var batch Batch
	for range b.N {
		batch.Clear()
		batch.AddAll(keys)
	}
	perKey(b, 64)
}

func BenchmarkBatchAdd64(b *testing.B) {
	keys := addresses(64)
	var batch Batch
	for range b.N {
		batch.Clear()
		for _, key := range keys {
			batch.Add(key)
		}
	}
	perKey(b, 64)
}

func BenchmarkCellAt(b *testing.B) {
	p, err := cell.New(1_000_000_000, time.Second, 1_000_000_000)
	if err != nil {
		b.Fatal(err)
	}
	var c cell.Cell
	for i := range b.N {
		c.Allow(p, uint64(i))
	}
}

func BenchmarkCellDeniedAt(b *testing.B) {
	p, err := cell.New(1, 24*time.Hour, 1)
	if err != nil {
		b.Fatal(err)
	}
	var c cell.Cell
	for i := range b.N {
		c.Allow(p, uint64(i))
	}
}

func BenchmarkCellNow(b *testing.B) {
	p, err := cell.New(1_000_000_000, time.Second, 1_000_000_000)
	if err != nil {
		b.Fatal(err)
	}
	var c cell.Cell
	for range b.N {
		c.Allow(p, cell.Now())
	}
}
