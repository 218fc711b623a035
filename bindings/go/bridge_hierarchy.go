package tollbar

// The calls into C that have to do with hierarchies. Callers hold the guards of the hierarchy and of the table.

/*
#include <stdlib.h>
#include "bridge.h"

#cgo noescape go_hierarchy_take
#cgo nocallback go_hierarchy_take
*/
import "C"

import (
	"time"
	"unsafe"
)

func newHierarchy(rate string, burst uint64, classes, policy uint32) (uintptr, Code) {
	of := C.CString(rate)
	defer C.free(unsafe.Pointer(of))
	var handle C.uintptr_t
	code := C.go_hierarchy_new(of, C.uint64_t(burst), C.uint32_t(classes), C.uint32_t(policy), &handle)
	return uintptr(handle), Code(code)
}

func freeHierarchy(handle uintptr) { C.go_hierarchy_free(C.uintptr_t(handle)) }

func hierarchyAdd(handle uintptr, parent uint32, class *Child) (uint32, Code) {
	name, guaranteed, ceiling := C.CString(class.Name), C.CString(class.Guaranteed), C.CString(class.Ceiling)
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(guaranteed))
	defer C.free(unsafe.Pointer(ceiling))
	var number C.uint32_t
	code := C.go_hierarchy_add(C.uintptr_t(handle), C.uint32_t(parent), name, guaranteed, ceiling,
		C.uint32_t(max(class.Keys, 1)), &number)
	return uint32(number), Code(code)
}

func hierarchyTake(handle, table uintptr, leaf uint32, key string, n uint64, at bool, now uint64) (Share, Code) {
	var hasTime C.int
	if at {
		hasTime = 1
	}
	var share C.tollbar_share
	share.struct_size = C.uint32_t(unsafe.Sizeof(share))
	code := Code(C.go_hierarchy_take(C.uintptr_t(handle), C.uintptr_t(table), C.uint32_t(leaf), text(key),
		C.size_t(len(key)), C.uint64_t(n),
		hasTime, C.uint64_t(now), &share))
	if code < 0 {
		return Share{}, code
	}
	answer := Share{
		Allowed:   code == C.TOLLBAR_ALLOWED,
		Never:     code == C.TOLLBAR_NEVER,
		Remaining: uint64(share.remaining),
		Interval:  time.Duration(share.interval_ns),
		Bound:     uint32(share.bound),
	}
	if code == C.TOLLBAR_DENIED {
		answer.RetryAfter = time.Duration(min(uint64(share.retry_after_ns), uint64(1<<63-1)))
	}
	return answer, code
}
