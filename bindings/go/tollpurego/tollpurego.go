//go:build tollbar_purego

package tollpurego

import (
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/tollbar/tollbar/bindings/go/internal/library"
)

func init() {
	library.Open = func(name string) (uintptr, error) {
		return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	}
	library.Symbol = purego.Dlsym
	library.Call = call
	library.Errno = errno
}

// arguments has the arguments of calls. The compiler puts those of SyscallN on the heap.
var arguments = sync.Pool{New: func() any { return new([8]uintptr) }}

func call(function, a, b, c, d, e, f, g, h uintptr) uintptr {
	all := arguments.Get().(*[8]uintptr)
	*all = [8]uintptr{a, b, c, d, e, f, g, h}
	result, _, _ := purego.SyscallN(function, all[:]...)
	arguments.Put(all)
	return result
}

// errno is the errno of this thread, or 0 if the system's C library has another name for it.
func errno() int32 {
	location, err := purego.Dlsym(purego.RTLD_DEFAULT, "__errno_location")
	if err != nil {
		return 0
	}
	at := call(location, 0, 0, 0, 0, 0, 0, 0, 0)
	return **(**int32)(unsafe.Pointer(&at))
}
