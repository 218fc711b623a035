//go:build cgo

package rules

// #include <stdlib.h>
// #include "tollbar_rules.h"
import "C"

import (
	"runtime"
	"time"
	"unsafe"

	"github.com/tollbar/tollbar/bindings/go"
)

// errorBytes is room for the text of many faults.
const errorBytes = 64 << 10

func open(path string, options Options) (uintptr, error) {
	raw := C.tollbar_rules_options{keys: C.uint64_t(options.Keys)}
	raw.struct_size = C.uint32_t(unsafe.Sizeof(raw))
	if options.Keys == 0 {
		raw.keys = 100_000
	}
	if options.Shared {
		raw.flags = C.TOLLBAR_RULES_SHARED
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	text := make([]byte, errorBytes)
	var rules *C.tollbar_rules
	code := C.tollbar_rules_open(name, &raw, &rules, (*C.char)(unsafe.Pointer(&text[0])), errorBytes)
	return uintptr(unsafe.Pointer(rules)), fileError(code, text)
}

func closeRules(rules uintptr) {
	C.tollbar_rules_close(pointer(rules))
}

func rulesNow(rules uintptr) uint64 {
	return uint64(C.tollbar_rules_now(pointer(rules)))
}

func reload(rules uintptr) error {
	text := make([]byte, errorBytes)
	return fileError(C.tollbar_rules_reload(pointer(rules), (*C.char)(unsafe.Pointer(&text[0])), errorBytes), text)
}

func reloadIfChanged(rules uintptr) (bool, error) {
	text := make([]byte, errorBytes)
	code := C.tollbar_rules_reload_if_changed(pointer(rules), (*C.char)(unsafe.Pointer(&text[0])), errorBytes)
	return code == C.TOLLBAR_YES, fileError(code, text)
}

func reset(rules uintptr, rule string, key *string) (bool, error) {
	text := make([]byte, errorBytes)
	name := C.CString(rule)
	defer C.free(unsafe.Pointer(name))
	var pins runtime.Pinner
	defer pins.Unpin()
	var of *C.char
	var length C.size_t
	if key != nil {
		// Not nil, which means all keys. An empty key is refused.
		if of, length = bytesOf(&pins, *key); of == nil {
			of = name
		}
	}
	code := C.tollbar_rules_reset(pointer(rules), name, of, length, (*C.char)(unsafe.Pointer(&text[0])), errorBytes)
	return code == C.TOLLBAR_YES, fileError(code, text)
}

func check(rules uintptr, request []Field, now *uint64) (Answer, error) {
	fields := make([]C.tollbar_rules_field, len(request)+1)
	var pins runtime.Pinner
	defer pins.Unpin()
	for n, field := range request {
		fields[n].name, fields[n].name_length = bytesOf(&pins, field.Name)
		fields[n].value, fields[n].value_length = bytesOf(&pins, field.Value)
	}
	var raw C.tollbar_rules_answer
	raw.struct_size = C.uint32_t(unsafe.Sizeof(raw))
	var code C.int32_t
	if now == nil {
		code = C.tollbar_rules_check(pointer(rules), &fields[0], C.size_t(len(request)), &raw)
	} else {
		code = C.tollbar_rules_check_at(pointer(rules), &fields[0], C.size_t(len(request)), C.uint64_t(*now), &raw)
	}
	if code < 0 {
		return Answer{Verdict: tollbar.Denied, Status: 500}, tollbar.Code(code)
	}
	return Answer{
		Verdict:    tollbar.Verdict(code),
		Reason:     tollbar.Reason(raw.reason),
		Status:     int(raw.status),
		Rule:       C.GoString(&raw.rule[0]),
		Body:       C.GoString(&raw.body[0]),
		Remaining:  uint64(raw.remaining),
		RetryAfter: duration(raw.retry_after_ns),
		ResetAfter: duration(raw.reset_after_ns),
		Generation: uint64(raw.generation),
	}, nil
}

func appendMetrics(rules uintptr, to []byte, format tollbar.MetricsFormat, name string) ([]byte, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	var source C.tollbar_rules_source
	source.name, source.name_length = bytesOf(&pins, name)
	source.rules = pointer(rules)
	for room := 16384; ; {
		text := make([]byte, room)
		var length C.size_t
		code := C.tollbar_rules_metrics(&source, 1, C.uint32_t(format), (*C.char)(unsafe.Pointer(&text[0])), C.size_t(room), &length)
		switch {
		case code == C.TOLLBAR_E_BUFFER_TOO_SMALL && int(length) >= room:
			room = int(length)*9/8 + 1
		case code != 0:
			return to, tollbar.Code(code)
		default:
			return append(to, text[:length]...), nil
		}
	}
}

func bytesOf(pins *runtime.Pinner, text string) (*C.char, C.size_t) {
	if text == "" {
		return nil, 0
	}
	first := unsafe.StringData(text)
	pins.Pin(first)
	return (*C.char)(unsafe.Pointer(first)), C.size_t(len(text))
}

// duration converts nanoseconds from C. It returns [tollbar.Forever] for times above Go's range, such as TOLLBAR_NO_TIME.
func duration(ns C.uint64_t) time.Duration {
	return time.Duration(min(uint64(ns), uint64(tollbar.Forever)))
}

func fileError(code C.int32_t, text []byte) error {
	if code >= 0 {
		return nil
	}
	return &FileError{tollbar.Code(code), C.GoString((*C.char)(unsafe.Pointer(&text[0])))}
}

// pointer is the C object behind a handle. Go keeps handles as numbers, since its memory holds no pointer to them.
func pointer(rules uintptr) *C.tollbar_rules {
	return *(**C.tollbar_rules)(unsafe.Pointer(&rules))
}
