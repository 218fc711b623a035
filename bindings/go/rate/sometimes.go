package rate

import (
	"sync"
	"time"
)

// Sometimes runs a function occasionally. Its fields say which calls of [Sometimes.Do] run it. They
// may be combined: a call runs the function if any of them says so. The zero value runs it once.
//
//	var sometimes = rate.Sometimes{First: 3, Interval: 10 * time.Second}
//
//	func spammy() {
//		sometimes.Do(func() { log.Print("here I am") })
//	}
type Sometimes struct {
	First    int           // The first so many calls do it.
	Every    int           // Every so many-th call does it, the first among them.
	Interval time.Duration // A call does it if so much time has passed since it was last done.

	mu    sync.Mutex
	calls int
	done  time.Time
}

// Do runs f if the fields say so; the first call always does. Calls at the same time run one after
// the other, so f should be short, and must not call Do.
func (s *Sometimes) Do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.due() {
		f()
		if s.Interval > 0 {
			s.done = time.Now()
		}
	}
	s.calls++
}

func (s *Sometimes) due() bool {
	return s.calls == 0 ||
		s.First > 0 && s.calls < s.First ||
		s.Every > 0 && s.calls%s.Every == 0 ||
		s.Interval > 0 && time.Since(s.done) >= s.Interval
}
