// Package library has the calls by which a program without cgo loads libtollbar and calls it. The
// module tollpurego sets them, so that only programs that import it depend on purego.
package library

import (
	"errors"
	"math"
)

// ErrNeeded is the error of what only a library can do, if it is not there.
var ErrNeeded = errors.New(
	"tollbar: only the C library can do this; build with cgo, or with -tags tollbar_purego and import tollpurego")

// Missing is the code of calls of a library that cannot be called. No library has such a code.
const Missing = math.MinInt32

var (
	// Open loads a library, and Symbol finds an address in it.
	Open   func(name string) (handle uintptr, err error)
	Symbol func(handle uintptr, name string) (address uintptr, err error)
	// Call calls a C function with up to eight arguments. Its result is a word.
	Call func(function, a, b, c, d, e, f, g, h uintptr) uintptr
	// Errno is the errno of the thread's last call.
	Errno func() int32
)
