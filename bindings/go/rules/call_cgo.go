//go:build cgo && !tollbar_purego

package rules

// How bridge.go calls the library with cgo; call_purego.go has the other way.

// #include "tollbar_rules.h"
import "C"

import "unsafe"

// This compiles only if the structs and numbers in Go are C's.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(tollbar_rules_options{})-unsafe.Sizeof(C.tollbar_rules_options{})]
	_ = [1]struct{}{}[unsafe.Sizeof(tollbar_rules_field{})-unsafe.Sizeof(C.tollbar_rules_field{})]
	_ = [1]struct{}{}[unsafe.Sizeof(tollbar_rules_answer{})-unsafe.Sizeof(C.tollbar_rules_answer{})]
	_ = [1]struct{}{}[unsafe.Sizeof(tollbar_rules_source{})-unsafe.Sizeof(C.tollbar_rules_source{})]
	_ = [1]struct{}{}[unsafe.Offsetof(tollbar_rules_answer{}.burst)-unsafe.Offsetof(C.tollbar_rules_answer{}.burst)]
	_ = [1]struct{}{}[unsafe.Offsetof(tollbar_rules_answer{}.taken_at_ns)-unsafe.Offsetof(C.tollbar_rules_answer{}.taken_at_ns)]
	_ = [1]struct{}{}[tollbar_rules_shared-C.TOLLBAR_RULES_SHARED]
)

// libraryError is the reason for which the library cannot be called: none, since it is linked.
func libraryError() error { return nil }

func chars(bytes []byte) *C.char { return (*C.char)(unsafe.Pointer(unsafe.SliceData(bytes))) }

// pointer is the C object behind a handle. Go keeps handles as numbers, since its memory holds no
// pointer to them.
func pointer(rules uintptr) *C.tollbar_rules {
	return *(**C.tollbar_rules)(unsafe.Pointer(&rules))
}

func cRulesOpen(path []byte, options *tollbar_rules_options, out *uintptr, text []byte) int32 {
	var rules *C.tollbar_rules
	code := C.tollbar_rules_open(chars(path), (*C.tollbar_rules_options)(unsafe.Pointer(options)), &rules, chars(text),
		C.size_t(len(text)))
	*out = uintptr(unsafe.Pointer(rules))
	return int32(code)
}

func cRulesClose(rules uintptr) { C.tollbar_rules_close(pointer(rules)) }

func cRulesNow(rules uintptr) uint64 { return uint64(C.tollbar_rules_now(pointer(rules))) }

func cRulesReload(rules uintptr, text []byte) int32 {
	return int32(C.tollbar_rules_reload(pointer(rules), chars(text), C.size_t(len(text))))
}

func cRulesReloadIfChanged(rules uintptr, text []byte) int32 {
	return int32(C.tollbar_rules_reload_if_changed(pointer(rules), chars(text), C.size_t(len(text))))
}

func cRulesReset(rules uintptr, rule, key, text []byte) int32 {
	return int32(C.tollbar_rules_reset(pointer(rules), chars(rule), chars(key), C.size_t(len(key)), chars(text),
		C.size_t(len(text))))
}

func cRulesCheck(rules uintptr, fields []tollbar_rules_field, now *uint64, out *tollbar_rules_answer) int32 {
	first := (*C.tollbar_rules_field)(unsafe.Pointer(unsafe.SliceData(fields)))
	answer := (*C.tollbar_rules_answer)(unsafe.Pointer(out))
	if now == nil {
		return int32(C.tollbar_rules_check(pointer(rules), first, C.size_t(len(fields)), answer))
	}
	return int32(C.tollbar_rules_check_at(pointer(rules), first, C.size_t(len(fields)), C.uint64_t(*now), answer))
}

func cRulesSettle(rules uintptr, fields []tollbar_rules_field, now *uint64, of *tollbar_rules_answer) int32 {
	first := (*C.tollbar_rules_field)(unsafe.Pointer(unsafe.SliceData(fields)))
	answer := (*C.tollbar_rules_answer)(unsafe.Pointer(of))
	if now == nil {
		return int32(C.tollbar_rules_settle(pointer(rules), first, C.size_t(len(fields)), answer))
	}
	return int32(C.tollbar_rules_settle_at(pointer(rules), first, C.size_t(len(fields)), answer, C.uint64_t(*now)))
}

func cRulesMetrics(source *tollbar_rules_source, format uint32, text []byte, length *uintptr) int32 {
	var n C.size_t
	code := C.tollbar_rules_metrics((*C.tollbar_rules_source)(unsafe.Pointer(source)), 1, C.uint32_t(format), chars(text),
		C.size_t(len(text)), &n)
	*length = uintptr(n)
	return int32(code)
}
