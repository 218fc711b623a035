//go:build cgo

package tollbar

// #include "bridge.h"
import "C"

import "unsafe"

func tableRecordRefusals(table uintptr, on bool) error {
	var number C.uint32_t
	if on {
		number = 1
	}
	if code := Code(C.go_table_record_refusals(C.uintptr_t(table), number)); code < 0 {
		return code
	}
	return nil
}

func tableRecordsRefusals(table uintptr) bool {
	return C.go_table_records_refusals(C.uintptr_t(table)) == C.TOLLBAR_YES
}

func tableTopRefused(table uintptr, most int) ([]Refused, Code) {
	now, code := tableNow(table)
	if code < 0 || most == 0 {
		return nil, code
	}
	found := make([]C.tollbar_table_refused, most)
	found[0].struct_size = C.uint32_t(unsafe.Sizeof(found[0]))
	var count C.size_t
	code = Code(C.go_table_top_refused(C.uintptr_t(table), C.uint64_t(now), &found[0], C.size_t(most), &count))
	top := make([]Refused, 0, int(count))
	for _, one := range found[:int(count)] {
		key := C.GoBytes(unsafe.Pointer(&one.key[0]), C.int(one.length))
		top = append(top, Refused{Policy: uint32(one.policy), Count: uint64(one.count), Key: string(key),
			Cut: one.is_cut == C.TOLLBAR_YES})
	}
	return top, code
}
