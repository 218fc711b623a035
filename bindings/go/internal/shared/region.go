package shared

import "unsafe"

// private is zeroed memory of this process, aligned to a cache line. The garbage collector frees it.
func private(bytes uint64) region {
	const line = 64
	words := make([]uint64, bytes/8+line/8)
	at := uintptr(unsafe.Pointer(unsafe.SliceData(words)))
	return region{base: unsafe.Pointer(&words[(line-at%line)%line/8]), len: bytes, free: func() {}}
}

// Access says which users may own a table's file, and which may write it, as in crates/tollbar/src/table/memory/region/trust.rs.
type Access struct {
	// Mode is the permissions of a new file. An existing file may be writable for the users for whom these permissions make it writable.
	Mode uint32
	// TrustAnyone takes any file.
	TrustAnyone bool
}
