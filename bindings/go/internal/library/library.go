// Package library has the calls by which a program without cgo loads libtollbar and calls it. The module tollpurego
// sets them, so that only programs that import it depend on purego.
package library

var (
	// Open loads a library, and Symbol finds an address in it.
	Open   func(name string) (handle uintptr, err error)
	Symbol func(handle uintptr, name string) (address uintptr, err error)
	// Call calls a C function with up to eight arguments. Its result is a word.
	Call func(function, a, b, c, d, e, f, g, h uintptr) uintptr
	// Errno is the errno of the thread's last call.
	Errno func() int32
)
