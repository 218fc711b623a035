//go:build tollbar_purego

package rules

// How bridge.go calls the library without cgo: in libtollbar-rules, which the program loads with
// its first file of rules; call_cgo.go has the other way.

import (
	"unsafe"

	"github.com/tollbar/tollbar/bindings/go/internal/library"
)

var (
	libtollbarRules = &library.Library{Name: "libtollbar-rules.so.1", Variable: "TOLLBAR_RULES_LIBRARY"}

	tollbar_rules_open              = libtollbarRules.Need("tollbar_rules_open")
	tollbar_rules_close             = libtollbarRules.Need("tollbar_rules_close")
	tollbar_rules_now               = libtollbarRules.Need("tollbar_rules_now")
	tollbar_rules_reload            = libtollbarRules.Need("tollbar_rules_reload")
	tollbar_rules_reload_if_changed = libtollbarRules.Need("tollbar_rules_reload_if_changed")
	tollbar_rules_reset             = libtollbarRules.Need("tollbar_rules_reset")
	tollbar_rules_check             = libtollbarRules.Need("tollbar_rules_check")
	tollbar_rules_check_at          = libtollbarRules.Need("tollbar_rules_check_at")
	tollbar_rules_settle            = libtollbarRules.Need("tollbar_rules_settle")
	tollbar_rules_settle_at         = libtollbarRules.Need("tollbar_rules_settle_at")
	tollbar_rules_metrics           = libtollbarRules.Need("tollbar_rules_metrics")
)

// libraryError is the reason for which the library cannot be called, or nil.
func libraryError() error { return libtollbarRules.Err() }

func cRulesOpen(path []byte, options *tollbar_rules_options, out *uintptr, text []byte) int32 {
	return library.Call5(tollbar_rules_open, uintptr(library.First(path)), uintptr(unsafe.Pointer(options)),
		uintptr(unsafe.Pointer(out)), uintptr(library.First(text)), uintptr(len(text)))
}

func cRulesClose(rules uintptr) { library.Call1(tollbar_rules_close, rules) }

func cRulesNow(rules uintptr) uint64 {
	return uint64(tollbar_rules_now.Word(rules, 0, 0, 0, 0, 0, 0, 0))
}

func cRulesReload(rules uintptr, text []byte) int32 {
	return library.Call3(tollbar_rules_reload, rules, uintptr(library.First(text)), uintptr(len(text)))
}

func cRulesReloadIfChanged(rules uintptr, text []byte) int32 {
	return library.Call3(tollbar_rules_reload_if_changed, rules, uintptr(library.First(text)), uintptr(len(text)))
}

func cRulesReset(rules uintptr, rule, key, text []byte) int32 {
	return library.Call6(tollbar_rules_reset, rules, uintptr(library.First(rule)), uintptr(library.First(key)),
		uintptr(len(key)), uintptr(library.First(text)), uintptr(len(text)))
}

func cRulesCheck(rules uintptr, fields []tollbar_rules_field, now *uint64, out *tollbar_rules_answer) int32 {
	first := unsafe.Pointer(unsafe.SliceData(fields))
	if now == nil {
		return library.Call4(tollbar_rules_check, rules, uintptr(first), uintptr(len(fields)), uintptr(unsafe.Pointer(out)))
	}
	return library.Call5(tollbar_rules_check_at, rules, uintptr(first), uintptr(len(fields)), uintptr(*now),
		uintptr(unsafe.Pointer(out)))
}

func cRulesSettle(rules uintptr, fields []tollbar_rules_field, now *uint64, of *tollbar_rules_answer) int32 {
	first := unsafe.Pointer(unsafe.SliceData(fields))
	if now == nil {
		return library.Call4(tollbar_rules_settle, rules, uintptr(first), uintptr(len(fields)), uintptr(unsafe.Pointer(of)))
	}
	return library.Call5(tollbar_rules_settle_at, rules, uintptr(first), uintptr(len(fields)), uintptr(unsafe.Pointer(of)),
		uintptr(*now))
}

func cRulesMetrics(source *tollbar_rules_source, format uint32, text []byte, length *uintptr) int32 {
	return library.Call6(tollbar_rules_metrics, uintptr(unsafe.Pointer(source)), 1, uintptr(format),
		uintptr(library.First(text)), uintptr(len(text)), uintptr(unsafe.Pointer(length)))
}
