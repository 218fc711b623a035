//go:build linux && (amd64 || arm64)

package shared

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"strings"
	"syscall"
	"unsafe"
)

// Whether the content of a file is of this boot of the machine, as in src/table/memory/region/boot.rs.

// bootID is the id of this boot of the machine (boot_id).
func bootID() (id [2]uint64, ok bool) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return id, false
	}
	line := strings.TrimSuffix(string(text), "\n")
	if len(line) != 36 || line[8] != '-' || line[13] != '-' || line[18] != '-' || line[23] != '-' {
		return id, false
	}
	bytes, err := hex.DecodeString(strings.ReplaceAll(line, "-", ""))
	if err != nil || len(bytes) != 16 {
		return id, false
	}
	return [2]uint64{binary.BigEndian.Uint64(bytes), binary.BigEndian.Uint64(bytes[8:])}, true
}

// inodeInMemory names the inode of a file in tmpfs by its handle, which has a random number that no other inode has
// (inode). 0 for a file in another filesystem, or if the system does not say.
func inodeInMemory(fd int) uint64 {
	const (
		tmpfs       = 0x0102_1994
		atEmptyPath = 0x1000
	)
	var system syscall.Statfs_t
	if err := again(func() error { return syscall.Fstatfs(fd, &system) }); err != nil || uint32(system.Type) != tmpfs {
		return 0
	}
	handle := struct {
		bytes, kind uint32
		words       [4]uint32
	}{bytes: 16}
	var empty byte
	var mount int32
	err := again(func() error {
		_, _, errno := syscall.Syscall6(sysNameToHandleAt, uintptr(fd), uintptr(unsafe.Pointer(&empty)), uintptr(unsafe.Pointer(&handle)),
			uintptr(unsafe.Pointer(&mount)), atEmptyPath, 0)
		if errno != 0 {
			return errno
		}
		return nil
	})
	if err != nil {
		return 0
	}
	pair := func(high, low uint32) uint64 { return uint64(high)<<32 | uint64(low) }
	w := handle.words
	return max(fold(pair(handle.kind, handle.bytes), pair(w[0], w[1]), pair(w[2], w[3])), 1)
}
