package waiting

import "sync/atomic"

// Most is the usual most goroutines that wait at one time, as in tollbar.h.
const Most = 1024

// Places are those of a limiter's queue, or of all queues of a table: so many goroutines may wait
// at one time.
type Places struct {
	// Most goroutines; 0 for no bound.
	Most  int64
	taken atomic.Int64
}

// Nobody reports whether nobody waits. Then a caller takes the permits that are there without a
// lock.
func (p *Places) Nobody() bool { return p.taken.Load() == 0 }

func (p *Places) full() bool { return p.isFull(p.taken.Load()) }

func (p *Places) isFull(taken int64) bool { return p.Most != 0 && taken >= p.Most }

func (p *Places) take() bool {
	for taken := p.taken.Load(); !p.isFull(taken); taken = p.taken.Load() {
		if p.taken.CompareAndSwap(taken, taken+1) {
			return true
		}
	}
	return false
}
