//go:build cgo || tollbar_purego

package rules

// The calls into C of this package, by the functions of call_cgo.go or call_purego.go.

import (
	"bytes"
	"runtime"
	"time"
	"unsafe"

	"github.com/tollbar/tollbar/bindings/go"
)

// The structs and numbers of tollbar_rules.h, with its names. With cgo this package compiles only
// if they are C's.

type tollbar_rules_options struct {
	struct_size, flags uint32
	keys               uint64
	room, reserved     uint32
}

// tollbar_rules_field has the address of pinned strings.
type tollbar_rules_field struct {
	name         unsafe.Pointer
	name_length  uintptr
	value        unsafe.Pointer
	value_length uintptr
}

type tollbar_rules_answer struct {
	struct_size, verdict, reason, status                  uint32
	remaining, retry_after_ns, reset_after_ns, generation uint64
	rule                                                  [64]byte
	body                                                  [256]byte
	limit, period_ns, burst                               uint64
	taken_at_ns, refused_shadows                          uint64
}

type tollbar_rules_source struct {
	name        unsafe.Pointer
	name_length uintptr
	rules       uintptr
}

const (
	tollbar_yes          = 1
	tollbar_rules_shared = 1
)

// errorBytes is room for the text of many faults.
const errorBytes = 64 << 10

func open(path string, options Options) (uintptr, error) {
	if err := libraryError(); err != nil {
		return 0, err
	}
	raw := tollbar_rules_options{keys: uint64(options.Keys), room: options.Room}
	raw.struct_size = uint32(unsafe.Sizeof(raw))
	if options.Keys == 0 {
		raw.keys = 100_000
	}
	if options.Shared {
		raw.flags = tollbar_rules_shared
	}
	text := make([]byte, errorBytes)
	var rules uintptr
	code := cRulesOpen(terminated(path), &raw, &rules, text)
	return rules, fileError(code, text)
}

func closeRules(rules uintptr) { cRulesClose(rules) }

func rulesNow(rules uintptr) uint64 { return cRulesNow(rules) }

func reload(rules uintptr) error {
	text := make([]byte, errorBytes)
	return fileError(cRulesReload(rules, text), text)
}

func reloadIfChanged(rules uintptr) (bool, error) {
	text := make([]byte, errorBytes)
	code := cRulesReloadIfChanged(rules, text)
	return code == tollbar_yes, fileError(code, text)
}

func reset(rules uintptr, rule string, key *string) (bool, error) {
	text := make([]byte, errorBytes)
	var of []byte
	if key != nil {
		// Not nil, which means all keys. An empty key is refused.
		of = append(make([]byte, 0, 1), *key...)
	}
	code := cRulesReset(rules, terminated(rule), of, text)
	return code == tollbar_yes, fileError(code, text)
}

// fieldsOf are the fields for C, whose strings it pins.
func fieldsOf(pins *runtime.Pinner, request []Field) []tollbar_rules_field {
	fields := make([]tollbar_rules_field, len(request)+1)
	for n, field := range request {
		fields[n].name, fields[n].name_length = bytesOf(pins, field.Name)
		fields[n].value, fields[n].value_length = bytesOf(pins, field.Value)
	}
	return fields[:len(request)]
}

func settle(rules uintptr, answer *Answer, request []Field, now *uint64) (bool, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	fields := fieldsOf(&pins, request)
	raw := tollbar_rules_answer{
		generation: answer.Generation, taken_at_ns: answer.takenAt, refused_shadows: answer.refusedShadows,
	}
	raw.struct_size = uint32(unsafe.Sizeof(raw))
	code := cRulesSettle(rules, fields, now, &raw)
	if code < 0 {
		return false, tollbar.Code(code)
	}
	return code == tollbar_yes, nil
}

func check(rules uintptr, request []Field, now *uint64) (Answer, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	fields := fieldsOf(&pins, request)
	var raw tollbar_rules_answer
	raw.struct_size = uint32(unsafe.Sizeof(raw))
	code := cRulesCheck(rules, fields, now, &raw)
	if code < 0 {
		return Answer{Verdict: tollbar.Denied, Status: 500}, tollbar.Code(code)
	}
	return Answer{
		Verdict: tollbar.Verdict(code),
		Reason:  tollbar.Reason(raw.reason), Status: int(raw.status), Rule: upToNUL(raw.rule[:]),
		Body: upToNUL(raw.body[:]), Remaining: raw.remaining, RetryAfter: duration(raw.retry_after_ns),
		ResetAfter: duration(raw.reset_after_ns), Generation: raw.generation,
		takenAt: raw.taken_at_ns, refusedShadows: raw.refused_shadows,
	}, nil
}

func appendMetrics(rules uintptr, to []byte, format tollbar.MetricsFormat, name string) ([]byte, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	source := tollbar_rules_source{rules: rules}
	source.name, source.name_length = bytesOf(&pins, name)
	for room := 16384; ; {
		text := make([]byte, room)
		var length uintptr
		code := cRulesMetrics(&source, uint32(format), text, &length)
		switch {
		case tollbar.Code(code) == tollbar.ErrBufferTooSmall && int(length) >= room:
			room = int(length)*9/8 + 1
		case code != 0:
			return to, tollbar.Code(code)
		default:
			return append(to, text[:length]...), nil
		}
	}
}

func bytesOf(pins *runtime.Pinner, text string) (unsafe.Pointer, uintptr) {
	if text == "" {
		return nil, 0
	}
	first := unsafe.StringData(text)
	pins.Pin(first)
	return unsafe.Pointer(first), uintptr(len(text))
}

// duration converts nanoseconds from C. It returns [tollbar.Forever] for times above Go's range,
// such as TOLLBAR_NO_TIME.
func duration(ns uint64) time.Duration {
	return time.Duration(min(ns, uint64(tollbar.Forever)))
}

func fileError(code int32, text []byte) error {
	if code >= 0 {
		return nil
	}
	return &FileError{tollbar.Code(code), upToNUL(text)}
}

// terminated is a text with a NUL at its end.
func terminated(text string) []byte { return append([]byte(text), 0) }

// upToNUL is the text in a buffer.
func upToNUL(buffer []byte) string {
	text, _, _ := bytes.Cut(buffer, []byte{0})
	return string(text)
}
