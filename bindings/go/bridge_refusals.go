//go:build cgo || tollbar_purego

package tollbar

import "unsafe"

func tableRecordRefusals(table uintptr, on bool) error {
	var number uint32
	if on {
		number = 1
	}
	if code := Code(cTableRecordRefusals(table, number)); code < 0 {
		return code
	}
	return nil
}

func tableRecordsRefusals(table uintptr) bool {
	return cTableRecordsRefusals(table) == tollbar_yes
}

func tableTopRefused(table uintptr, most int) ([]Refused, Code) {
	now, code := tableNow(table)
	if code < 0 || most == 0 {
		return nil, code
	}
	found := make([]tollbar_table_refused, most)
	found[0].struct_size = uint32(unsafe.Sizeof(found[0]))
	var count uintptr
	code = Code(cTableTopRefused(table, now, found, &count))
	top := make([]Refused, 0, int(count))
	for _, one := range found[:int(count)] {
		key := string(one.key[:min(int(one.length), len(one.key))])
		top = append(top, Refused{Policy: one.policy, Count: one.count, Key: key,
			Cut: one.is_cut == tollbar_yes})
	}
	return top, code
}
