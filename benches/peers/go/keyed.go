package main

import (
	"sync"

	"golang.org/x/time/rate"
)

// A limiter a key in a sync.Map: what x/time/rate leaves to its users.
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

// Bytes of the heap that each key has taken.
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
