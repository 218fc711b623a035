//go:build tollbar_purego

package tollbar

// How the bridge files call the library without cgo: in libtollbar, which the program loads at its first call;
// call_cgo.go has the other way. The module tollpurego has the calls of dlopen, dlsym and C functions.
//
// C gets addresses as numbers. Each is converted in the argument list of a call, so the compiler moves what it points to
// from the goroutine's stack to the heap, where nothing moves, and keeps it alive until the call returns.

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/tollbar/tollbar/bindings/go/internal/library"
)

// libraryName is the library, if the environment does not name a file in TOLLBAR_LIBRARY.
const libraryName = "libtollbar.so.1"

// The library's version must be at least this one, with the same major version: major << 16 | minor << 8 | patch.
const libraryVersion = 0<<16 | 1<<8

// Offsets and arguments of 64 bits are numbers of 64 bits here.
const _ = uint(unsafe.Sizeof(uintptr(0)) - 8)

// function is a function of the library.
type function struct {
	name    string
	address uintptr
}

var needed []*function

// need returns the function of that name, whose address load finds.
func need(name string) *function {
	f := &function{name: name}
	needed = append(needed, f)
	return f
}

var (
	loading sync.Once
	loaded  atomic.Bool
	loadErr error
)

// libraryError loads the library, and returns the reason for which it cannot be called, or nil.
func libraryError() error {
	if library.Call == nil {
		return loadError("built with -tags tollbar_purego, without the package tollpurego; expected: " +
			`import _ "github.com/tollbar/tollbar/bindings/go/tollpurego"`)
	}
	loading.Do(func() {
		loadErr = load()
		loaded.Store(loadErr == nil)
	})
	return loadErr
}

// loadError is the reason for which the library cannot be called. It is an [ErrNeedsLibrary].
type loadError string

func (e loadError) Error() string { return "tollbar: " + string(e) }

func (loadError) Unwrap() error { return ErrNeedsLibrary }

// load finds the library and all its functions.
func load() error {
	name := os.Getenv("TOLLBAR_LIBRARY")
	if name == "" {
		name = libraryName
	}
	handle, err := library.Open(name)
	if err != nil {
		return loadError(fmt.Sprintf("%v; expected: %s where the system finds libraries, or its file in TOLLBAR_LIBRARY",
			err, libraryName))
	}
	unfit := func(found string) error {
		return loadError(fmt.Sprintf("%s %s; expected: libtollbar %d.%d.%d or later, with the same major version", name,
			found, libraryVersion>>16, libraryVersion>>8&255, libraryVersion&255))
	}
	if _, err := library.Symbol(handle, "tollbar_abi_1"); err != nil {
		return unfit("has another ABI, without tollbar_abi_1")
	}
	for _, f := range needed {
		if f.address, err = library.Symbol(handle, f.name); err != nil {
			return unfit("has no " + f.name)
		}
	}
	version := library.Call(tollbar_version.address, 0, 0, 0, 0, 0, 0, 0, 0)
	if v := uint32(version); v>>16 != libraryVersion>>16 || v < libraryVersion {
		return unfit(fmt.Sprintf("is version %d.%d.%d", v>>16, v>>8&255, v&255))
	}
	return nil
}

// call0 to call8 call a function of the library with so many arguments. They are not one function of a variable number
// of arguments, because the compiler would put these on the heap.

func call0(f *function) int32 { return int32(word(f, 0, 0, 0, 0, 0, 0, 0, 0)) }

//go:uintptrescapes
func call1(f *function, a uintptr) int32 {
	return int32(word(f, a, 0, 0, 0, 0, 0, 0, 0))
}

//go:uintptrescapes
func call2(f *function, a, b uintptr) int32 {
	return int32(word(f, a, b, 0, 0, 0, 0, 0, 0))
}

//go:uintptrescapes
func call3(f *function, a, b, c uintptr) int32 {
	return int32(word(f, a, b, c, 0, 0, 0, 0, 0))
}

//go:uintptrescapes
func call4(f *function, a, b, c, d uintptr) int32 {
	return int32(word(f, a, b, c, d, 0, 0, 0, 0))
}

//go:uintptrescapes
func call5(f *function, a, b, c, d, e uintptr) int32 {
	return int32(word(f, a, b, c, d, e, 0, 0, 0))
}

//go:uintptrescapes
func call6(f *function, a, b, c, d, e, x uintptr) int32 {
	return int32(word(f, a, b, c, d, e, x, 0, 0))
}

//go:uintptrescapes
func call7(f *function, a, b, c, d, e, x, y uintptr) int32 {
	return int32(word(f, a, b, c, d, e, x, y, 0))
}

//go:uintptrescapes
func call8(f *function, a, b, c, d, e, x, y, z uintptr) int32 {
	return int32(word(f, a, b, c, d, e, x, y, z))
}

// word calls a function of the library, and returns its whole result of 64 bits.
func word(f *function, a, b, c, d, e, x, y, z uintptr) uintptr {
	if !loaded.Load() && libraryError() != nil {
		code := needsLibraryCode
		return uintptr(code)
	}
	return library.Call(f.address, a, b, c, d, e, x, y, z)
}

// withErrno returns the code of a call, and the errno if it failed.
func withErrno(call func() int32) (int32, syscall.Errno) {
	// The errno is the thread's.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	code := call()
	if code == 0 || !loaded.Load() {
		return code, 0
	}
	return code, syscall.Errno(library.Errno())
}

// answer is Go's code for a yes or no: 0 for yes, and ErrDenied for no.
func answer(code int32) int32 {
	switch {
	case code < 0:
		return code
	case code == tollbar_yes:
		return tollbar_allowed
	}
	return tollbar_denied
}

// text is the address of a string's bytes. It is never nil.
func text(s string) unsafe.Pointer {
	if s == "" {
		return unsafe.Pointer(&noBytes)
	}
	return unsafe.Pointer(unsafe.StringData(s))
}

// noBytes is the target of an empty string's address.
var noBytes byte

// first is the address of a slice's bytes.
func first(bytes []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(bytes)) }

// address is the address of an object, which the compiler puts on the heap. The caller keeps it alive.
//
//go:uintptrescapes
//go:noinline
func address(object uintptr) uintptr { return object }

// terminated is a string with a NUL at its end.
func terminated(s string) unsafe.Pointer { return first(append([]byte(s), 0)) }

// ---- the library itself, and policies ----

func cStrerror(code int32) string {
	if err := libraryError(); err != nil {
		return strings.TrimPrefix(err.Error(), "tollbar: ")
	}
	return cString((*byte)(pointer(word(tollbar_strerror, uintptr(code), 0, 0, 0, 0, 0, 0, 0))))
}

func cVersion() string {
	if libraryError() != nil {
		return ""
	}
	return cString((*byte)(pointer(word(tollbar_version_string, 0, 0, 0, 0, 0, 0, 0, 0))))
}

// pointer is static memory of the library.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

func cClockNow(clock uint32, now *uint64) int32 {
	return call2(tollbar_clock_now, uintptr(clock), uintptr(unsafe.Pointer(now)))
}

func cPolicyParse(policy string, spec *tollbar_policy_spec, why *tollbar_policy_error) int32 {
	return call4(tollbar_policy_spec_parse, uintptr(text(policy)), uintptr(len(policy)), uintptr(unsafe.Pointer(spec)),
		uintptr(unsafe.Pointer(why)))
}

func cPolicyValidate(spec *tollbar_policy_spec) int32 {
	return call1(tollbar_policy_spec_validate, uintptr(unsafe.Pointer(spec)))
}

func cPolicyLastTime(spec *tollbar_policy_spec, last *uint64) int32 {
	return call2(tollbar_policy_spec_last_time, uintptr(unsafe.Pointer(spec)), uintptr(unsafe.Pointer(last)))
}

func cPolicyPrint(spec *tollbar_policy_spec, buffer []byte) int32 {
	return call3(tollbar_policy_spec_print, uintptr(unsafe.Pointer(spec)), uintptr(first(buffer)), uintptr(len(buffer)))
}

func cSchedulePrint(schedule string, buffer []byte, why *tollbar_policy_error) int32 {
	return call6(tollbar_schedule_print, uintptr(text(schedule)), uintptr(len(schedule)), uintptr(first(buffer)),
		uintptr(len(buffer)), 0, uintptr(unsafe.Pointer(why)))
}

func cScheduleAt(schedule string, utc uint64, spec *tollbar_policy_spec, until *uint64,
	why *tollbar_policy_error) int32 {
	return call6(tollbar_schedule_at, uintptr(text(schedule)), uintptr(len(schedule)), uintptr(utc),
		uintptr(unsafe.Pointer(spec)), uintptr(unsafe.Pointer(until)), uintptr(unsafe.Pointer(why)))
}

func cPrefix(address []byte, ipv4Bits, ipv6Bits uint32, out *tollbar_prefix) int32 {
	return call5(tollbar_prefix_from_address, uintptr(first(address)), uintptr(len(address)), uintptr(ipv4Bits),
		uintptr(ipv6Bits), uintptr(unsafe.Pointer(out)))
}
