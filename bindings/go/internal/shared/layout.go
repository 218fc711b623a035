package shared

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"github.com/tollbar/tollbar/bindings/go/internal/core"
)

// The layout of a table's memory, as in src/table/memory/layout.rs, which has a picture of it.

const (
	// PoliciesMost is the most policies of a table.
	PoliciesMost = 128

	layoutVersion = 12
	versionsMost  = 256
	shardsCount   = 64
	countersCount = 16
	exemptMost    = 2048
	recordWords   = 30
	fixedWords    = 10
	// partsOfDecisions: each policy has this many counters of each verdict for the threads that own no line.
	partsOfDecisions = 4

	versionsAt  = 4 << 10
	countersAt  = 68 << 10
	exemptAt    = 76 << 10
	decisionsAt = 92 << 10
	linesAt     = 108 << 10
	receiptsAt  = 140 << 10
	refusalsAt  = 204 << 10
	bucketsAt   = 219 << 10

	// The sizes of parts that Go does not use.
	lineBytes     = 64
	receiptsBytes = refusalsAt - receiptsAt
	refusalsBytes = 32*64 + 32*7*56
)

// magic is the first word of every table.
var magic = binary.NativeEndian.Uint64([]byte("tollbar\n"))

// layout is a fingerprint of everything that two builds must agree on beside the version (LAYOUT).
var layout = fold(
	layoutVersion, uint64(unsafe.Offsetof(header{}.current)), uint64(unsafe.Sizeof(header{})), uint64(unsafe.Sizeof(record{})),
	uint64(unsafe.Sizeof(shard{})), uint64(unsafe.Sizeof(Bucket{})), exemptMost, receiptsBytes, refusalsBytes, lineBytes, bucketsAt,
	binary.NativeEndian.Uint64([]byte{1, 2, 3, 4, 5, 6, 7, 8}),
)

// header has the table's fixed parameters, and the few words that change while it is in use (Header).
type header struct {
	magic, layout atomic.Uint64
	fixed         [fixedWords]atomic.Uint64
	check         atomic.Uint64
	// The id of the boot that offset is for, beside inode; 0 if it is unknown.
	boot [2]atomic.Uint64
	// Nanoseconds that every process adds to its clock, modulo 2^64.
	offset              atomic.Uint64
	tableTime, wallTime atomic.Uint64
	generation          atomic.Uint64
	special             atomic.Uint64
	booked, lent        [PoliciesMost / 64]atomic.Uint64
	// The inode of a file in tmpfs.
	inode atomic.Uint64
	// 1 if offset is for the clock of the machine's first time namespace.
	onMachineClock atomic.Uint64
	current        [PoliciesMost]atomic.Uint64
	references     [versionsMost]atomic.Uint64
	// The turns of returns.
	returns [turns]atomic.Uint64
}

// fixed are a table's parameters (Fixed). Each is a word of the header, in this order.
type fixed struct {
	bytes, capacity, buckets, side, onFull, clock, seed, missing, file, overrides uint64
}

// record is a version of a policy (Record). The writer stores the stamp last, which publishes the record.
type record struct {
	// 0: free. 1: a writer has claimed it. Otherwise: generation, policy, version.
	stamp atomic.Uint64
	check atomic.Uint64
	words [recordWords]atomic.Uint64
}

// shard has counters of rare events (Shard).
type shard struct{ counts [countersCount]atomic.Uint64 }

// decisions of threads that own no line, by policy and verdict (Decisions).
type decisions [PoliciesMost][4]atomic.Uint64

func (f *fixed) words() [fixedWords]uint64 {
	return [fixedWords]uint64{f.bytes, f.capacity, f.buckets, f.side, f.onFull, f.clock, f.seed, f.missing, f.file, f.overrides}
}

// sum is the value of header.check for these parameters (Fixed::check).
func (f *fixed) sum() uint64 {
	words := f.words()
	return fold(append([]uint64{magic, layout}, words[:]...)...)
}

// checkWords checks that word, which returns the words of a table's beginning, begins a table of this version, and
// returns its parameters (Header::check_words). word returns false beyond the end.
func checkWords(word func(n int) (uint64, bool)) (f fixed, code core.Code) {
	if first, ok := word(0); !ok || first != magic {
		return f, errNotATable
	}
	var words [2 + fixedWords + 1]uint64
	for i := range words {
		read, ok := word(i)
		if !ok {
			return f, errTruncated
		}
		if words[i] = read; i == 1 && read != layout {
			return f, errVersion
		}
	}
	if fold(words[:2+fixedWords]...) != words[2+fixedWords] {
		return f, errCorrupt
	}
	w := words[2:]
	f = fixed{w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9]}
	// A wrong program can write a valid checksum. Later offsets are sound because the sizes must be those that this code
	// computes.
	if s, code := newSizes(f.capacity, f.side, f.overrides); code != 0 || s != (sizes{f.buckets, f.bytes}) {
		return f, errCorrupt
	}
	return f, 0
}

// inspect checks the first bytes of a file (Header::inspect).
func inspect(head []byte) (fixed, core.Code) {
	return checkWords(func(n int) (uint64, bool) { return wordOf(head, n) })
}

// wordOf is word number n of a table's first bytes (word_of).
func wordOf(head []byte, n int) (uint64, bool) {
	if len(head)/8 <= n {
		return 0, false
	}
	return binary.NativeEndian.Uint64(head[8*n:]), true
}

// parameters are the header's (Header::fixed).
func (h *header) parameters() (fixed, core.Code) {
	return checkWords(func(n int) (uint64, bool) {
		switch {
		case n == 0:
			return h.magic.Load(), true
		case n == 1:
			return h.layout.Load(), true
		case n < 2+fixedWords:
			return h.fixed[n-2].Load(), true
		}
		return h.check.Load(), true
	})
}

// begin writes the layout, the fixed words and their checksum, but not the magic (Header::begin).
func (h *header) begin(f *fixed) {
	for i, word := range f.words() {
		h.fixed[i].Store(word)
	}
	h.check.Store(f.sum())
	h.layout.Store(layout)
}

// currentAt is the offset of the current stamps in a table.
const currentAt = int(unsafe.Offsetof(header{}.current))
