//go:build tollbar_purego

package library

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Library is a library that is loaded at the first call of one of its functions.
type Library struct {
	// Name of the library, and the variable of the environment that may name another file.
	Name, Variable string
	// ABI is a symbol that no library of another ABI has. Empty: there is none.
	ABI string
	// Version is the name of the function that returns the version: major << 16 | minor << 8 |
	// patch. Empty: there is none. The library must have at least the version Least, and its major
	// version.
	Version string
	Least   uint32

	functions []*Function
	loading   sync.Once
	loaded    atomic.Bool
	err       error
}

// Function is a function of a library.
type Function struct {
	library *Library
	name    string
	address uintptr
}

// Need returns the function of that name, whose address is found when the library is loaded.
func (l *Library) Need(name string) *Function {
	f := &Function{library: l, name: name}
	l.functions = append(l.functions, f)
	return f
}

// Err loads the library, and returns the reason for which it cannot be called, or nil.
func (l *Library) Err() error {
	if Call == nil {
		return loadError("built with -tags tollbar_purego, without the package tollpurego; expected: " +
			`import _ "github.com/tollbar/tollbar/bindings/go/tollpurego"`)
	}
	l.loading.Do(func() {
		l.err = l.load()
		l.loaded.Store(l.err == nil)
	})
	return l.err
}

// loadError is the reason for which a library cannot be called. It is an [ErrNeeded].
type loadError string

func (e loadError) Error() string { return "tollbar: " + string(e) }

func (loadError) Unwrap() error { return ErrNeeded }

// load finds the library and all its functions.
func (l *Library) load() error {
	name := os.Getenv(l.Variable)
	if name == "" {
		name = l.Name
	}
	handle, err := Open(name)
	if err != nil {
		return loadError(fmt.Sprintf("%v; expected: %s where the system finds libraries, or its file in %s",
			err, l.Name, l.Variable))
	}
	unfit := func(found string) error {
		expected := l.Name
		if l.Version != "" {
			expected = fmt.Sprintf("%s of version %d.%d.%d or later, of the same major version", l.Name, l.Least>>16,
				l.Least>>8&255, l.Least&255)
		}
		return loadError(fmt.Sprintf("%s %s; expected: %s", name, found, expected))
	}
	if l.ABI != "" {
		if _, err := Symbol(handle, l.ABI); err != nil {
			return unfit("has another ABI, without " + l.ABI)
		}
	}
	for _, f := range l.functions {
		if f.address, err = Symbol(handle, f.name); err != nil {
			return unfit("has no " + f.name)
		}
	}
	if l.Version == "" {
		return nil
	}
	address, err := Symbol(handle, l.Version)
	if err != nil {
		return unfit("has no " + l.Version)
	}
	version := uint32(Call(address, 0, 0, 0, 0, 0, 0, 0, 0))
	if version>>16 != l.Least>>16 || version < l.Least {
		return unfit(fmt.Sprintf("is version %d.%d.%d", version>>16, version>>8&255, version&255))
	}
	return nil
}

// Arguments of 64 bits are words here: this compiles only for 64-bit processors.
const _ = uint(unsafe.Sizeof(uintptr(0)) - 8)

// Call0 to Call8 call a function with so many arguments. An address is converted to a number in the
// argument list, so the compiler moves what it points to from the goroutine's stack to the heap,
// where nothing moves, and keeps it alive until the call returns. They are not one function of a
// variable number of arguments, because the compiler would put the arguments on the heap too.
func Call0(f *Function) int32 { return int32(f.Word(0, 0, 0, 0, 0, 0, 0, 0)) }

// Call1 is [Call0] with 1 argument.
//
//go:uintptrescapes
func Call1(f *Function, a uintptr) int32 {
	return int32(f.Word(a, 0, 0, 0, 0, 0, 0, 0))
}

// Call2 is [Call0] with 2 arguments.
//
//go:uintptrescapes
func Call2(f *Function, a, b uintptr) int32 {
	return int32(f.Word(a, b, 0, 0, 0, 0, 0, 0))
}

// Call3 is [Call0] with 3 arguments.
//
//go:uintptrescapes
func Call3(f *Function, a, b, c uintptr) int32 {
	return int32(f.Word(a, b, c, 0, 0, 0, 0, 0))
}

// Call4 is [Call0] with 4 arguments.
//
//go:uintptrescapes
func Call4(f *Function, a, b, c, d uintptr) int32 {
	return int32(f.Word(a, b, c, d, 0, 0, 0, 0))
}

// Call5 is [Call0] with 5 arguments.
//
//go:uintptrescapes
func Call5(f *Function, a, b, c, d, e uintptr) int32 {
	return int32(f.Word(a, b, c, d, e, 0, 0, 0))
}

// Call6 is [Call0] with 6 arguments.
//
//go:uintptrescapes
func Call6(f *Function, a, b, c, d, e, x uintptr) int32 {
	return int32(f.Word(a, b, c, d, e, x, 0, 0))
}

// Call7 is [Call0] with 7 arguments.
//
//go:uintptrescapes
func Call7(f *Function, a, b, c, d, e, x, y uintptr) int32 {
	return int32(f.Word(a, b, c, d, e, x, y, 0))
}

// Call8 is [Call0] with 8 arguments.
//
//go:uintptrescapes
func Call8(f *Function, a, b, c, d, e, x, y, z uintptr) int32 {
	return int32(f.Word(a, b, c, d, e, x, y, z))
}

// Word calls the function with numbers and addresses that do not move, and returns its whole result
// of 64 bits.
func (f *Function) Word(a, b, c, d, e, x, y, z uintptr) uintptr {
	if l := f.library; !l.loaded.Load() && l.Err() != nil {
		code := Missing
		return uintptr(code)
	}
	return Call(f.address, a, b, c, d, e, x, y, z)
}

// At is the function's address; 0 if the library cannot be called.
func (f *Function) At() uintptr {
	if f.library.Err() != nil {
		return 0
	}
	return f.address
}

// WithErrno returns the code of a call, and the errno if it failed.
func WithErrno(call func() int32) (int32, syscall.Errno) {
	// The errno is the thread's.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	code := call()
	if code == 0 || code == Missing {
		return code, 0
	}
	return code, syscall.Errno(Errno())
}

// Text is the address of a string's bytes. It is never nil.
func Text(s string) unsafe.Pointer {
	if s == "" {
		return unsafe.Pointer(&noBytes)
	}
	return unsafe.Pointer(unsafe.StringData(s))
}

// noBytes is the target of an empty string's address.
var noBytes byte

// First is the address of a slice's bytes.
func First(bytes []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(bytes)) }

// Terminated is the address of a copy of a string with a NUL at its end.
func Terminated(s string) unsafe.Pointer { return First(append([]byte(s), 0)) }

// Address is the address of an object, which the compiler puts on the heap. The caller keeps it
// alive.
//
//go:uintptrescapes
//go:noinline
func Address(object uintptr) uintptr { return object }

// Static is static memory of a library.
func Static(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }
