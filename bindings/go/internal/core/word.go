package core

import "sync/atomic"

// Word is a state word. Any number of goroutines may change it at the same time.
type Word = atomic.Uint64

// Take decides on a request, and returns the verdict and the word after the decision. A refusal
// that keeps the word only loads it.
func Take(w *Word, a Algorithm, now, cost uint64) (Verdict, uint64) {
	for {
		word := w.Load()
		step := a.Step(word, now, cost)
		if step.Next == word || w.CompareAndSwap(word, step.Next) {
			return step.Verdict, step.Next
		}
	}
}

// Peek is the decision that a request would get. It shows the ban to which the refusal would lead.
func Peek(a Algorithm, word, now, cost uint64) Answer {
	step := a.Step(word, now, cost)
	if a.CountsRefusals() && step.Verdict == Denied {
		word = step.Next
	}
	return Describe(a, step.Verdict, word, now, cost)
}

// PeekUncounted is Peek of a request whose refusal would not count toward a ban. It tells when
// permits come to a client that waits for them.
func PeekUncounted(a Algorithm, word, now, cost uint64) Answer {
	return Describe(a, a.Step(word, now, cost).Verdict, word, now, cost)
}

// Takes is what TakeUpTo takes: the permits that are there, most at the most, and no more than a
// request may cost. After a rest a pacer lets more requests pass than one may cost.
func Takes(a Algorithm, word, now, most uint64) uint64 {
	n := min(a.Available(word, now), most)
	if pacer, paces := a.(*Pacer); paces {
		n = min(n, pacer.most)
	}
	return n
}

// TakeUpTo takes all permits that are left, most at the most.
func TakeUpTo(w *Word, a Algorithm, now, most uint64) uint64 {
	for {
		word := w.Load()
		n := Takes(a, word, now, most)
		if n == 0 && word == 0 {
			// A bucket that starts without permits begins to fill at its first request, and this is
			// one.
			n = min(most, 1)
		}
		step := a.Step(word, now, n)
		if step.Next == word {
			return 0
		}
		if !w.CompareAndSwap(word, step.Next) {
			continue
		}
		if step.Verdict == Allowed {
			return n
		}
		return 0
	}
}

// Reserve takes permits ahead of time, if they may be used by the time latest, and returns that
// time. It calls ahead before it books permits for a later time than now.
func Reserve(w *Word, a Algorithm, now, cost, latest uint64, ahead func()) (at uint64, ok bool) {
	for {
		word := w.Load()
		next, at, ok := a.Reserve(word, now, cost)
		if !ok || at > latest {
			// A bucket that starts without permits begins to fill at its first request, and this is
			// one.
			if word == 0 && a.BooksAhead() && !a.CountsRefusals() {
				if step := a.Step(word, now, cost); step.Verdict == Denied && step.Next != word {
					w.CompareAndSwap(word, step.Next)
				}
			}
			return 0, false
		}
		if at > now {
			ahead()
		}
		if w.CompareAndSwap(word, next) {
			return at, true
		}
	}
}

// ChargeWord charges permits without a decision, and returns the rest that the word has no room
// for.
func ChargeWord(w *Word, a Algorithm, now, cost uint64) (rest uint64) {
	for {
		word := w.Load()
		next, rest := a.Charge(word, now, cost)
		if next == word || w.CompareAndSwap(word, next) {
			return rest
		}
	}
}
