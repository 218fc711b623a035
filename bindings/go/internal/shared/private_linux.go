package shared

import (
	"math"
	"syscall"
	"unsafe"
)

// private is zeroed memory of this process (Region::private). All of it is allocated now, so that it does not grow
// later.
func private(bytes uint64, hugePages bool) (region, *Error) {
	const page = 4096
	if bytes > math.MaxInt {
		return region{}, failed(errCapacity)
	}
	data, err := syscall.Mmap(-1, 0, int(bytes), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err == syscall.ENOMEM {
		return region{}, failed(errNoMemory)
	}
	if err != nil {
		return region{}, system(errMap, err)
	}
	r := region{base: unsafe.Pointer(unsafe.SliceData(data)), len: bytes, free: func() { syscall.Munmap(data) }}
	if hugePages {
		// Before the first access, because existing pages stay small.
		adviseHuge(&r)
	}
	for at := 0; at < len(data); at += page {
		data[at] = 0
	}
	return r, nil
}

// adviseHuge asks the system for huge pages (Region::advise_huge).
func adviseHuge(r *region) {
	const hugePage = 14
	syscall.Madvise(unsafe.Slice((*byte)(r.base), int(r.len)), hugePage)
}
