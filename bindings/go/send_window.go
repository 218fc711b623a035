package tollbar

import "sync/atomic"

// SendWindowMost is the highest limit of a [SendWindow].
const SendWindowMost = 1<<20 - 1

// SendWindow limits the permits of this process that are sent and not acknowledged, as the send
// window of TCP does. Its zero value has the limit 0, so [SendWindow.Acquire] refuses until
// [SendWindow.Resize]. It is pure Go, the same with and without the library: a call is one atomic
// swap, and takes a few nanoseconds.
//
//	number, ok := window.Acquire(1)
//	if !ok {
//		return errUnacknowledged
//	}
//	send(number, message)
//	...
//	window.Acknowledge(answer.Number) // releases all permits up to this number
//
// Any number of goroutines may use it at once. It must not be copied.
type SendWindow struct {
	// 63       44 43                    22 21                     0
	// ┌───────────┬────────────────────────┬────────────────────────┐
	// │ limit 20  │ sent 22                │ acknowledged 22        │
	// └───────────┴────────────────────────┴────────────────────────┘
	//
	// sent and acknowledged count permits modulo 2^22. Their difference is in flight.
	word atomic.Uint64
}

// SendWindowState is a [SendWindow] at one instant.
type SendWindowState struct {
	// Limit is the most permits that may be in flight.
	Limit uint32
	// Sent is the number of the last permit that was sent, modulo 2^22.
	Sent uint32
	// Acknowledged is the number of the last permit that was acknowledged. With
	// [SendWindow.Release] it is how many permits were released, modulo 2^22.
	Acknowledged uint32
	// InFlight is the number of permits that are sent and not acknowledged.
	InFlight uint32
	// Usable is the number of permits that may be sent now.
	Usable uint32
}

const (
	sendCount = 22
	sendMask  = 1<<sendCount - 1
)

// NewSendWindow makes a window. The error is [ErrOutOfRange] if the limit is above
// [SendWindowMost].
func NewSendWindow(limit uint32) (*SendWindow, error) {
	w := new(SendWindow)
	if err := w.Resize(limit); err != nil {
		return nil, err
	}
	return w, nil
}

// Acquire sends n permits and returns the number of the last one, for [SendWindow.Acknowledge]. ok
// is false, and it sends none, if fewer are usable. It never waits. Numbers count from 1, and 0
// follows 2^22 - 1.
func (w *SendWindow) Acquire(n uint32) (number uint32, ok bool) {
	for {
		word := w.word.Load()
		s := sendWindowOf(word)
		if n > s.Usable {
			return 0, false
		}
		s.Sent = (s.Sent + n) & sendMask
		if w.word.CompareAndSwap(word, s.word()) {
			return s.Sent, true
		}
	}
}

// Acknowledge releases all permits up to a number that Acquire has returned. If no permit in flight
// has this number, Acknowledge returns false and releases none.
func (w *SendWindow) Acknowledge(number uint32) bool {
	for {
		word := w.word.Load()
		s := sendWindowOf(word)
		released := (number - s.Acknowledged) & sendMask
		if number > sendMask || released == 0 || released > s.InFlight {
			return false
		}
		s.Acknowledged = number
		if w.word.CompareAndSwap(word, s.word()) {
			return true
		}
	}
}

// Release releases any n permits. If fewer are in flight, it returns false and releases none. Use
// either Release or Acknowledge on a window, not both.
func (w *SendWindow) Release(n uint32) bool {
	for {
		word := w.word.Load()
		s := sendWindowOf(word)
		if n > s.InFlight {
			return false
		}
		s.Acknowledged = (s.Acknowledged + n) & sendMask
		if w.word.CompareAndSwap(word, s.word()) {
			return true
		}
	}
}

// Resize sets the limit. If more permits are in flight, none is usable until enough of them are
// released. The error is [ErrOutOfRange] if the limit is above [SendWindowMost].
func (w *SendWindow) Resize(limit uint32) error {
	if limit > SendWindowMost {
		return ErrOutOfRange
	}
	for {
		word := w.word.Load()
		s := sendWindowOf(word)
		s.Limit = limit
		if w.word.CompareAndSwap(word, s.word()) {
			return nil
		}
	}
}

// Read returns the window's state. Another goroutine may change it at once.
func (w *SendWindow) Read() SendWindowState { return sendWindowOf(w.word.Load()) }

func sendWindowOf(word uint64) SendWindowState {
	s := SendWindowState{
		Limit: uint32(word >> (2 * sendCount)), Sent: uint32(word>>sendCount) & sendMask,
		Acknowledged: uint32(word) & sendMask,
	}
	s.InFlight = (s.Sent - s.Acknowledged) & sendMask
	s.Usable = max(s.Limit, s.InFlight) - s.InFlight
	return s
}

func (s SendWindowState) word() uint64 {
	return uint64(s.Limit)<<(2*sendCount) | uint64(s.Sent)<<sendCount | uint64(s.Acknowledged)
}
