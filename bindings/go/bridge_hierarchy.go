//go:build cgo || tollbar_purego

package tollbar

// The calls into C that have to do with hierarchies. Callers hold the guards of the hierarchy and
// of the table.

import (
	"time"
	"unsafe"
)

func newHierarchy(rate string, burst uint64, classes, policy uint32) (uintptr, Code) {
	var handle uintptr
	code := cHierarchyNew(rate, burst, classes, policy, &handle)
	return uintptr(handle), Code(code)
}

func freeHierarchy(handle uintptr) { cHierarchyFree(handle) }

func hierarchyAdd(handle uintptr, parent uint32, class *Child) (uint32, Code) {
	var number uint32
	code := cHierarchyAdd(handle, parent, class.Name, class.Guaranteed, class.Ceiling,
		uint32(max(class.Keys, 1)), &number)
	return number, Code(code)
}

func hierarchyTake(handle, table uintptr, leaf uint32, key string, n uint64, at bool, now uint64) (Share, Code) {
	var share tollbar_share
	share.struct_size = uint32(unsafe.Sizeof(share))
	code := Code(cHierarchyTake(handle, table, leaf, key, n, at, now, &share))
	if code < 0 {
		return Share{}, code
	}
	answer := Share{
		Allowed:   code == tollbar_allowed,
		Never:     code == tollbar_never,
		Remaining: share.remaining,
		Interval:  time.Duration(share.interval_ns),
		Bound:     share.bound,
	}
	if code == tollbar_denied {
		answer.RetryAfter = time.Duration(min(share.retry_after_ns, uint64(1<<63-1)))
	}
	return answer, code
}
