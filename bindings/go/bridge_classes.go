package tollbar

// The calls into C for classes. Callers hold a table's guard, so Close cannot free the table meanwhile.

/*
#include "bridge.h"

#cgo noescape go_limiter_check_class
#cgo nocallback go_limiter_check_class
#cgo noescape go_table_check_class
#cgo nocallback go_table_check_class
*/
import "C"

import (
	"runtime"
	"unsafe"
)

func (l *Limiter) checkClass(at bool, now uint64, class string, n uint64) (Decision, error) {
	at, now = timeOf(at, now)
	out := newDecision()
	code := C.go_limiter_check_class(C.uintptr_t(l.handle), hasTime(at), C.uint64_t(now), C.uint64_t(n), text(class),
		C.size_t(len(class)), &out)
	runtime.KeepAlive(l)
	return decided(code, &out)
}

func tableCheckClass(table uintptr, policy uint32, key string, at bool, now uint64, class string, n uint64,
	d *Decision) Code {
	at, now = timeOf(at, now)
	out := newDecision()
	code := C.go_table_check_class(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		hasTime(at), C.uint64_t(now),
		C.uint64_t(n), text(class), C.size_t(len(class)), &out)
	*d, _ = decided(code, &out)
	return Code(code)
}

func hasTime(at bool) C.int {
	if at {
		return 1
	}
	return 0
}

// setClasses writes the classes of a policy to its spec.
func setClasses(spec *C.tollbar_policy_spec, classes *[ClassesMost]Class) {
	for i, class := range classes {
		spec.classes[i].reserve = C.uint64_t(class.Reserve)
		for j := range spec.classes[i].name {
			if j < len(class.Name) {
				spec.classes[i].name[j] = C.char(class.Name[j])
			}
		}
	}
}

// classesOf reads the classes of a spec.
func classesOf(spec *C.tollbar_policy_spec) (classes [ClassesMost]Class) {
	for i := range classes {
		classes[i] = Class{Name: C.GoString(&spec.classes[i].name[0]), Reserve: uint64(spec.classes[i].reserve)}
	}
	return classes
}

// These compile only if Go and C have as many classes and names of one size.
const (
	_ = uint(ClassesMost-C.TOLLBAR_CLASSES_MOST) + uint(C.TOLLBAR_CLASSES_MOST-ClassesMost)
	_ = uint(unsafe.Sizeof(className{})-C.TOLLBAR_CLASS_NAME_SIZE) +
		uint(C.TOLLBAR_CLASS_NAME_SIZE-unsafe.Sizeof(className{}))
)
