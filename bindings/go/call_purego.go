//go:build tollbar_purego

package tollbar

// How the bridge files call the library without cgo: in libtollbar, which the program loads at its
// first call; call_cgo.go has the other way. Package library has the calls, and the rules for
// addresses in them.

import (
	"strings"
	"unsafe"

	"github.com/tollbar/tollbar/bindings/go/internal/core"
	"github.com/tollbar/tollbar/bindings/go/internal/library"
)

// libtollbar is the library. Its version must be at least 0.1.0.
var libtollbar = &library.Library{
	Name: "libtollbar.so.1", Variable: "TOLLBAR_LIBRARY", ABI: "tollbar_abi_1",
	Version: "tollbar_version", Least: 0<<16 | 1<<8,
}

// libraryError is the reason for which the library cannot be called, or nil.
func libraryError() error { return libtollbar.Err() }

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

// ---- the library itself, and policies ----

// cStrerror has the library's texts without the library, which may not be there yet: package-level
// errors have them.
func cStrerror(code int32) string {
	if code == library.Missing {
		if err := libraryError(); err != nil {
			return strings.TrimPrefix(err.Error(), "tollbar: ")
		}
	}
	return core.Code(code).String()
}

func cVersion() string {
	if libraryError() != nil {
		return ""
	}
	return cString((*byte)(library.Static(tollbar_version_string.Word(0, 0, 0, 0, 0, 0, 0, 0))))
}

func cClockNow(clock uint32, now *uint64) int32 {
	return library.Call2(tollbar_clock_now, uintptr(clock), uintptr(unsafe.Pointer(now)))
}

func cPolicyParse(policy string, spec *tollbar_policy_spec, why *tollbar_policy_error) int32 {
	return library.Call4(tollbar_policy_spec_parse, uintptr(library.Text(policy)), uintptr(len(policy)),
		uintptr(unsafe.Pointer(spec)), uintptr(unsafe.Pointer(why)))
}

func cPolicyValidate(spec *tollbar_policy_spec) int32 {
	return library.Call1(tollbar_policy_spec_validate, uintptr(unsafe.Pointer(spec)))
}

func cPolicyLastTime(spec *tollbar_policy_spec, last *uint64) int32 {
	return library.Call2(tollbar_policy_spec_last_time, uintptr(unsafe.Pointer(spec)), uintptr(unsafe.Pointer(last)))
}

func cPolicyWorstCase(spec *tollbar_policy_spec, window uint64, most *uint64) int32 {
	return library.Call3(tollbar_policy_spec_worst_case, uintptr(unsafe.Pointer(spec)), uintptr(window),
		uintptr(unsafe.Pointer(most)))
}

func cPolicySamples(limit, period uint64, shares []float64, spec *tollbar_policy_spec, fit *tollbar_curve_fit) int32 {
	return library.Call6(tollbar_policy_spec_samples, uintptr(limit), uintptr(period),
		uintptr(unsafe.Pointer(unsafe.SliceData(shares))), uintptr(len(shares)), uintptr(unsafe.Pointer(spec)),
		uintptr(unsafe.Pointer(fit)))
}

func cPolicyPrint(spec *tollbar_policy_spec, buffer []byte) int32 {
	return library.Call3(tollbar_policy_spec_print, uintptr(unsafe.Pointer(spec)), uintptr(library.First(buffer)),
		uintptr(len(buffer)))
}

func cSchedulePrint(schedule string, buffer []byte, why *tollbar_policy_error) int32 {
	return library.Call6(tollbar_schedule_print, uintptr(library.Text(schedule)), uintptr(len(schedule)),
		uintptr(library.First(buffer)), uintptr(len(buffer)), 0, uintptr(unsafe.Pointer(why)))
}

func cScheduleAt(schedule string, utc uint64, spec *tollbar_policy_spec, until *uint64,
	why *tollbar_policy_error) int32 {
	return library.Call6(tollbar_schedule_at, uintptr(library.Text(schedule)), uintptr(len(schedule)), uintptr(utc),
		uintptr(unsafe.Pointer(spec)), uintptr(unsafe.Pointer(until)), uintptr(unsafe.Pointer(why)))
}

func cPrefix(address []byte, ipv4Bits, ipv6Bits uint32, out *tollbar_prefix) int32 {
	return library.Call5(tollbar_prefix_from_address, uintptr(library.First(address)), uintptr(len(address)),
		uintptr(ipv4Bits), uintptr(ipv6Bits), uintptr(unsafe.Pointer(out)))
}
