package main

import (
	"encoding/binary"
	"os"
	"runtime"
	"sync"
	"time"
)

// Does the requests from one number to another. Returns the number allowed, so that the compiler
// can leave no call out.
type runner func(from, to int) int

var total int

// Nanoseconds per request of one thread. All threads do `count` requests at once, after `warm` that
// do not count.
func (run runner) turn(threads, at, warm, count int) float64 {
	runtime.GC()
	var ready, done sync.WaitGroup
	ready.Add(threads)
	done.Add(threads)
	took := make([]time.Duration, threads)
	passed := make([]int, threads)
	for thread := 0; thread < threads; thread++ {
		go func(thread int) {
			defer done.Done()
			from := at + thread*len(order)/threads
			run(from, from+warm)
			ready.Done()
			ready.Wait()
			start := time.Now()
			passed[thread] = run(from+warm, from+warm+count)
			took[thread] = time.Since(start)
		}(thread)
	}
	done.Wait()
	sum := 0.0
	for thread := range took {
		sum += float64(took[thread].Nanoseconds())
		total += passed[thread]
	}
	return sum / float64(threads) / float64(count)
}

// Keys in the order in which they are asked for, again and again. Their number is a power of two.
var order []uint64

func readKeys(path string) []uint64 {
	bytes, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	keys := make([]uint64, len(bytes)/8)
	for i := range keys {
		keys[i] = binary.NativeEndian.Uint64(bytes[8*i:])
	}
	return keys
}

// Bytes of the heap that are in use.
func heap() float64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}
