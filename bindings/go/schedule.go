//go:build cgo || tollbar_purego

package tollbar

import "time"

// Schedule says which policy is in force at which time of the week. Make it with [ParseSchedule].
// tollbar.h ("Schedules") has the grammar.
//
// A limiter or a table follows a schedule if one goroutine of each process sets the policy in force
// once a second:
//
//	for range time.Tick(time.Second) {
//		policy, _ := hours.At(time.Now())
//		err := table.SetPolicy(0, policy.String(), tollbar.KeepCount)
//	}
//
// All processes of a table may do so, because they agree about the policy, and a policy that is in
// force already changes nothing.
type Schedule struct{ text string }

// ParseSchedule reads a text such as "1000/min, mon-fri 09:00-18:00 100/min, zone Europe/Berlin".
// The error is a [*PolicyError] with the column.
func ParseSchedule(text string) (Schedule, error) {
	canonical, err := printSchedule(text)
	return Schedule{canonical}, err
}

// At returns the policy in force at a time, and the time at which another comes into force; the
// zero time if none does. The zero Schedule has a policy that no limiter takes.
func (s Schedule) At(now time.Time) (Policy, time.Time) {
	policy, until, err := scheduleAt(s.text, uint64(now.UnixNano()))
	if err != nil || until > uint64(Forever) {
		return policy, time.Time{}
	}
	return policy, time.Unix(0, int64(until))
}

// String returns the canonical text, with the zone's rule in place of its name.
func (s Schedule) String() string { return s.text }
