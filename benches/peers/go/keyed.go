package main

import (
	"sync"

	"golang.org/x/time/rate"
)

// One limiter for each key in a sync.Map: x/time/rate leaves the map to its users.
type limiters struct {
	keys   sync.Map
	allows bool
}

var yes, no *limiters

func (l *limiters) allow(key uint64) bool {
	found, ok := l.keys.Load(key)
	if !ok {
		found, _ = l.keys.LoadOrStore(key, limiter(l.allows))
	}
	return found.(*rate.Limiter).Allow()
}

// Fills in the keys and returns the bytes of the heap that each has taken.
func fill(work string, keys []uint64) float64 {
	filled := &limiters{allows: work == "allowed"}
	before := heap()
	for _, key := range keys {
		filled.allow(key)
	}
	grown := heap() - before
	if work == "allowed" {
		yes = filled
	} else {
		no = filled
	}
	return grown / float64(len(keys))
}

func keyed(work string) runner {
	return func(from, to int) (passed int) {
		for i := from; i < to; i++ {
			key := order[i&(len(order)-1)]
			of := yes
			if work == "denied" || work == "mixed" && key&1 == 1 {
				of = no
			}
			if of.allow(key) {
				passed++
			}
		}
		return passed
	}
}

func forget() {
	yes, no, order = nil, nil, nil
	heap()
}
