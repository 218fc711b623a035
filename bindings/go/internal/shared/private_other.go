//go:build !linux

package shared

import (
	"math"
	"runtime"
	"unsafe"
)

// private is zeroed memory of this process, aligned to a cache line. The garbage collector frees it.
func private(bytes uint64, _ bool) (region, *Error) {
	const line = 64
	if bytes > math.MaxInt-2*line {
		return region{}, failed(errCapacity)
	}
	words := make([]uint64, bytes/8+line/8)
	at := uintptr(unsafe.Pointer(unsafe.SliceData(words)))
	return region{base: unsafe.Pointer(&words[(line-at%line)%line/8]), len: bytes, free: func() {}}, nil
}

func adviseHuge(*region) {}

// self is this process's name in turns of returns. No other process uses the memory.
const self uint64 = 1

func isGone(uint32) bool { return false }

func rest() { runtime.Gosched() }
