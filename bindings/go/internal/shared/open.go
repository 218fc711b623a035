// Package shared is a table in memory that processes of all languages may share: the published layout and protocol of
// docs/table.md in Go alone. It follows src/table file by file, and steps the words of slots by package core.
package shared

import (
	"crypto/rand"
	"encoding/binary"

	"github.com/tollbar/tollbar/bindings/go/internal/core"
)

// Making and opening tables, as in src/table/admin/open.rs and files.rs.

// Policy is a policy of a new table.
type Policy struct {
	Policy    core.Policy
	Algorithm core.Algorithm
}

// Options of a table, with the numbers of tollbar.h.
type Options struct {
	Capacity               uint64
	OnFull, Missing, Clock uint32
	// Seed of the hash; nil for a random one.
	Seed      *uint64
	Overrides uint32
	// HugePages: asks the system for huge pages.
	HugePages bool
}

// Numbers of the answers to a request without a key (Missing).
const (
	missingDeny   = 0
	missingAllow  = 1
	missingReport = 2
)

// Table is keyed limits in memory that processes may share. Any number of goroutines, threads and processes may make
// calls at once.
type Table struct {
	policies
	secrets secrets
	// offset is added to the clock, modulo 2^64.
	offset uint64
}

// New makes a table in this process's own memory (Table::private).
func New(options *Options, of []Policy) (*Table, *Error) {
	f, wrong := parameters(options, of, false)
	if wrong != nil {
		return nil, wrong
	}
	r, wrong := private(f.bytes, options.HugePages)
	if wrong != nil {
		return nil, wrong
	}
	if wrong = begin(&r, &f, of); wrong != nil {
		r.free()
		return nil, wrong
	}
	t, wrong := over(r)
	if wrong != nil {
		r.free()
	}
	return t, wrong
}

// OpenOrMake opens the table in the file at path, or makes the file if there is none (Table::file_at). If the file
// has another table, the call fails and the file stays unchanged.
func OpenOrMake(path string, access Access, options *Options, of []Policy) (*Table, *Error) {
	f, wrong := parameters(options, of, true)
	if wrong != nil {
		return nil, wrong
	}
	inspector := func(head []byte) (uint64, core.Code) {
		found, code := inspect(head)
		if code == 0 {
			code = agrees(&found, &f, options.Seed)
		}
		if code == 0 && differ(head, of) {
			code = errOtherPolicies
		}
		return found.bytes, code
	}
	r, wrong := openOrCreate(path, f.bytes, access, inspector, func(r *region) *Error { return begin(r, &f, of) })
	if wrong != nil {
		return nil, wrong
	}
	t, wrong := over(r)
	if wrong != nil {
		r.free()
		return nil, wrong
	}
	// This comes before the first write, because a refused file must stay unchanged.
	code := agrees(&t.fixed, &f, options.Seed)
	if code == 0 {
		code = t.has(of)
	}
	if code != 0 {
		r.free()
		return nil, failed(code)
	}
	if options.HugePages {
		adviseHuge(&r)
	}
	return t.goingOn()
}

// Open opens the table in the file at path, with any options and policies (Table::open_at).
func Open(path string, trustAnyone bool) (*Table, *Error) {
	r, wrong := openFile(path, Access{TrustAnyone: trustAnyone}, func(head []byte) (uint64, core.Code) {
		found, code := inspect(head)
		return found.bytes, code
	})
	if wrong != nil {
		return nil, wrong
	}
	t, wrong := over(r)
	if wrong != nil {
		r.free()
		return nil, wrong
	}
	return t.goingOn()
}

// Free gives the memory back. No call may be running.
func (t *Table) Free() { t.region.free() }

// over is the table in a region, after this process has inspected or written the header (Table::over).
func over(r region) (*Table, *Error) {
	m, wrong := newMemory(r)
	if wrong != nil {
		return nil, wrong
	}
	f := &m.fixed
	if f.onFull > onFullDeny || f.missing > missingReport || f.clock > wallClock {
		return nil, failed(errCorrupt)
	}
	if f.side != 0 {
		return nil, needs("a table of sliding windows or logs")
	}
	t := &Table{secrets: newSecrets(f.seed), offset: m.header.offset.Load()}
	t.memory = m
	for number := range m.header.current {
		// A slot under a policy that Go cannot step would end requests for other keys, so such a table is refused as a whole.
		if stamp := m.currentStamp(uint32(number)); stamp != 0 {
			if v := t.version(stamp); v != nil && v.algorithm == nil {
				return nil, needs("a table with a policy that only the library steps")
			}
		}
	}
	return t, nil
}

// parameters of a new table (fixed).
func parameters(options *Options, of []Policy, file bool) (f fixed, wrong *Error) {
	if len(of) == 0 || len(of) > PoliciesMost {
		return f, failed(errPolicyCount)
	}
	s, code := newSizes(options.Capacity, 0, uint64(options.Overrides))
	if code != 0 {
		return f, failed(code)
	}
	f = fixed{
		bytes: s.bytes, capacity: options.Capacity, buckets: s.buckets, onFull: uint64(options.OnFull), clock: uint64(options.Clock),
		missing: uint64(options.Missing), file: bit(file), overrides: uint64(options.Overrides),
	}
	if options.Seed != nil {
		f.seed = *options.Seed
		return f, nil
	}
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return f, failed(errRandom)
	}
	f.seed = binary.NativeEndian.Uint64(random[:])
	return f, nil
}

// begin writes a table's header and policies into zeroed memory that no other thread or process sees yet (begin).
func begin(r *region, f *fixed, of []Policy) *Error {
	m := &memory{region: *r, header: (*header)(r.base)}
	m.header.begin(f)
	if f.clock != wallClock {
		m.header.offset.Store(utcOffset())
	}
	m.header.onMachineClock.Store(bit(onMachineClock))
	if f.file != 0 {
		here := r.boot()
		switch {
		case f.clock == wallClock:
		case !onMachineClock:
			return failed(errTimeNamespace)
		case !here.known():
			return failed(errBootID)
		}
		m.header.note(here)
	}
	for number := range of {
		m.add(number, &of[number].Policy)
	}
	m.header.magic.Store(magic)
	return nil
}

// agrees checks that found are the parameters that asked describes (agrees). It does not compare policies.
func agrees(found, asked *fixed, seed *uint64) core.Code {
	switch {
	case found.capacity != asked.capacity:
		return errOtherCapacity
	case seed != nil && *seed != found.seed || found.onFull != asked.onFull || found.clock != asked.clock || found.missing != asked.missing ||
		found.overrides != asked.overrides:
		return errOtherOptions
	}
	return 0
}

// has checks that these are the table's policies (Table::has).
func (t *Table) has(of []Policy) core.Code {
	for number := range t.header.current {
		stamp := t.currentStamp(uint32(number))
		if stamp == 0 && number >= len(of) {
			continue
		}
		if stamp == 0 || number >= len(of) {
			return errOtherPolicies
		}
		words, ok := t.currentWords(uint32(number))
		if !ok {
			return errCorrupt
		}
		if !samePolicy(&words, &of[number].Policy) {
			return errOtherPolicies
		}
	}
	return 0
}

// goingOn joins a table that another process may have made, and continues the time of one in a file (Table::going_on,
// continue_time): after a boot it advances by as much as the wall clock has since the table noted it. An error frees
// the memory.
func (t *Table) goingOn() (*Table, *Error) {
	// Unix time is the same in all time namespaces and goes on over a boot.
	if t.fixed.clock == wallClock {
		return t, nil
	}
	wrong := t.continueTime()
	if wrong != nil {
		t.Free()
		return nil, wrong
	}
	return t, nil
}

func (t *Table) continueTime() *Error {
	h := t.header
	if h.onMachineClock.Load() == 0 || !onMachineClock {
		return failed(errTimeNamespace)
	}
	if t.fixed.file == 0 {
		return nil
	}
	here := t.region.boot()
	switch h.noted().agrees(here) {
	case unknownBoot:
		return failed(errBootID)
	case otherBoot:
		// The first process after a boot sets the offset for all. If that process is killed, the kernel releases the lock.
		wrong := t.region.named.exclusively(func() {
			if h.noted().agrees(here) == sameBoot {
				return
			}
			// If the wall clock went back meanwhile, the table's time stands still. No debt is forgiven for it.
			now := h.tableTime.Load()
			if wall, noted := wall(), h.wallTime.Load(); wall > noted {
				now = addUpTo(now, wall-noted)
			}
			h.offset.Store(now - read(t.fixed.clock))
			h.note(here)
		})
		if wrong != nil {
			return wrong
		}
	}
	t.offset = h.offset.Load()
	t.noteTimes()
	return nil
}

// noteTimes stores the table's time and the wall clock's time (Table::note_time). It reads the table's first and
// stores the wall clock's first. So if the process is killed in between, too little time seems to have passed, never
// too much.
func (t *Table) noteTimes() {
	now, wall := t.Now(), wall()
	t.header.wallTime.Store(wall)
	t.header.tableTime.Store(now)
}

// Now is the table's time in nanoseconds, which calls without a time use (Table::now).
func (t *Table) Now() uint64 { return read(t.fixed.clock) + t.offset }

func addUpTo(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return core.NoTime
}
