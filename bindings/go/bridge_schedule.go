//go:build cgo || tollbar_purego

package tollbar

func printSchedule(schedule string) (string, error) {
	buffer := make([]byte, tollbar_schedule_text_max)
	why := newPolicyError()
	code := cSchedulePrint(schedule, buffer, &why)
	return upToNUL(buffer), policyError(schedule, code, &why)
}

func scheduleAt(schedule string, unixNano uint64) (Policy, uint64, error) {
	spec, why := newSpec(), newPolicyError()
	var until uint64
	code := cScheduleAt(schedule, unixNano, &spec, &until, &why)
	return policyOf(&spec), until, policyError(schedule, code, &why)
}
