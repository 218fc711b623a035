package shared

import "sync/atomic"

// The turns of calls that give permits back, as in src/table/memory/returns.rs, which says why of the returns to one
// key one runs at a time. A turn names the process that has it: its PID namespace and its number there.

const (
	turns = 64
	// turnSpins is the number of tries before a look at the holder, and turnRounds the number of looks. After each look
	// the caller lets others run.
	turnSpins, turnRounds = 500, 64
)

// turn takes the turn of a return to a key with this tag (Memory::turn, Turn::take). The caller must store 0 in it at
// the end. nil: another return sleeps, or the memory is damaged.
func (m *memory) turn(tag uint64) *atomic.Uint64 {
	turn := &m.header.returns[tag%turns]
	for range turnRounds {
		for range turnSpins {
			if turn.CompareAndSwap(0, self) {
				return turn
			}
		}
		// A process of another PID namespace, or of an unknown one, may look ended and run. If two find that the holder has
		// ended, one swap succeeds.
		holder := turn.Load()
		if holder>>32 != 0 && holder>>32 == self>>32 && holder != self && isGone(uint32(holder)) && turn.CompareAndSwap(holder, self) {
			return turn
		}
		rest()
	}
	return nil
}
