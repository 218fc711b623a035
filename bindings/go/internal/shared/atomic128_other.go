//go:build !amd64 && !arm64

package shared

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// locks, for slots by their addresses, make both words of a slot change at once. So only this process may use the
// slots.
var locks [64]struct {
	sync.Mutex
	_ [56]byte
}

func lockOf(slot *Slot) *sync.Mutex {
	return &locks[uintptr(unsafe.Pointer(slot))>>4%uintptr(len(locks))].Mutex
}

// load128 reads both words of the slot at one instant.
func load128(slot *Slot) (key, state uint64) {
	mu := lockOf(slot)
	mu.Lock()
	defer mu.Unlock()
	return slot.key, slot.state
}

// cas128 stores the new words if the slot holds the old ones. key and state are the words that it held.
func cas128(slot *Slot, oldKey, oldState, newKey, newState uint64) (key, state uint64, swapped bool) {
	mu := lockOf(slot)
	mu.Lock()
	defer mu.Unlock()
	key, state = slot.key, slot.state
	if key != oldKey || state != oldState {
		return key, state, false
	}
	// Atomic, because a probe reads the words without the lock.
	atomic.StoreUint64(&slot.key, newKey)
	atomic.StoreUint64(&slot.state, newState)
	return key, state, true
}

func supported() bool { return true }
