//go:build cgo || tollbar_purego

package tollbar

import (
	"encoding/binary"
	"runtime"
	"slices"
	"unsafe"
)

// Batch holds requests that a table decides on with one call into C. The zero value is empty. The
// batch copies keys into one block of memory, which it keeps after [Batch.Clear], so a batch that
// is used again allocates nothing. One goroutine at a time may use it.
type Batch struct {
	keys     []byte
	items    []batchItem
	verdicts []Verdict
}

// batchItem is a request whose key ends at offset end of the batch's bytes. C reads it as go_item.
type batchItem struct {
	end, cost uint64
	policy    uint32
	class     uint32
}

// Clear empties the batch.
func (b *Batch) Clear() { b.keys, b.items, b.verdicts = b.keys[:0], b.items[:0], b.verdicts[:0] }

// Len returns the number of requests.
func (b *Batch) Len() int { return len(b.items) }

// Add adds a request for one permit of the key under policy 0.
func (b *Batch) Add(key string) { b.AddN(0, key, 1) }

// AddN adds a request for n permits of the key under the policy of that number.
func (b *Batch) AddN(policy uint32, key string, n uint64) {
	b.keys = append(b.keys, key...)
	b.items = append(b.items, batchItem{end: uint64(len(b.keys)), cost: n, policy: policy})
}

// AddClassN adds a request of a class of the policy, which has the number class: 1 for the policy's
// first one. A class that the policy does not have is refused with a verdict below 0.
func (b *Batch) AddClassN(policy uint32, key string, n uint64, class uint32) {
	b.AddN(policy, key, n)
	b.items[len(b.items)-1].class = class
}

// AddAll adds a request for one permit of each key under policy 0. It takes about half of the time
// of as many calls of Add.
func (b *Batch) AddAll(keys []string) { b.AddAllN(0, keys, 1) }

// AddAllN adds a request for n permits of each key under the policy of that number.
func (b *Batch) AddAllN(policy uint32, keys []string, n uint64) {
	more := 0
	for _, key := range keys {
		more += len(key)
	}
	// The batch grows once for all keys, and copies keys of the usual length by two moves that may
	// overlap: for ten bytes, append and a call of memmove take longer than all other work.
	b.keys = slices.Grow(b.keys, more)
	b.items = slices.Grow(b.items, len(keys))
	at, bytes := len(b.keys), b.keys[:len(b.keys)+more]
	items := b.items[len(b.items) : len(b.items)+len(keys)]
	for i, key := range keys {
		end := at + len(key)
		to := bytes[at:end]
		if len(key) >= 8 && len(key) <= 16 {
			from := unsafe.Slice(unsafe.StringData(key), len(key))
			first, last := binary.NativeEndian.Uint64(from), binary.NativeEndian.Uint64(from[len(from)-8:])
			binary.NativeEndian.PutUint64(to, first)
			binary.NativeEndian.PutUint64(to[len(to)-8:], last)
		} else {
			copy(to, key)
		}
		items[i] = batchItem{end: uint64(end), cost: n, policy: policy}
		at = end
	}
	b.keys, b.items = bytes, b.items[:len(b.items)+len(keys)]
}

// Verdicts returns the verdicts of the last [Table.CheckMany], in the order of its requests. They
// are valid until the next call on the batch.
func (b *Batch) Verdicts() []Verdict { return b.verdicts }

// Allowed reports whether the i-th request may pass. It is false for a request that has not been
// decided.
func (b *Batch) Allowed(i int) bool { return i < len(b.verdicts) && b.verdicts[i] == Allowed }

// CheckMany decides on the batch's requests in turn with one reading of the clock. [Batch.Verdicts]
// has the verdicts. A verdict is a negative [Code] if only that request is wrong (a policy that the
// table does not have). After an error of the whole batch all verdicts are [Denied].
func (t *Table) CheckMany(b *Batch) error { return t.checkMany(false, 0, b) }

// CheckManyAt is [Table.CheckMany] at the caller's time, in nanoseconds.
func (t *Table) CheckManyAt(now uint64, b *Batch) error { return t.checkMany(true, now, b) }

func (t *Table) checkMany(at bool, now uint64, b *Batch) error {
	b.verdicts = slices.Grow(b.verdicts[:0], len(b.items))[:len(b.items)]
	err := error(ErrClosed)
	if c := t.enter(); c != nil {
		err = asError(tableMany(t.handle, at, now, b))
		c.Leave()
		runtime.KeepAlive(t)
	}
	if err != nil {
		denyAll(b.verdicts)
	}
	return err
}
