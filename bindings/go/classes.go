//go:build cgo || tollbar_purego

package tollbar

import "strings"

// CheckClass takes n permits now for a request of a class of the policy, and returns the full
// decision. The request passes only if the class's reserve is left after it; a refusal for the
// reserve has [ReasonReserve]. class is the name, or the number in decimal, which is "1" for the
// first class. The error is [ErrNoSuchClass], [ErrClosed] or nil.
func (l *Limiter) CheckClass(class string, n uint64) (Decision, error) {
	if l.ended() {
		return Decision{Verdict: Denied, Reason: ReasonFault}, ErrClosed
	}
	return l.checkClass(false, 0, class, n)
}

// CheckClassAt is [Limiter.CheckClass] at the caller's time, in nanoseconds.
func (l *Limiter) CheckClassAt(class string, now, n uint64) (Decision, error) {
	if l.ended() {
		return Decision{Verdict: Denied, Reason: ReasonFault}, ErrClosed
	}
	return l.checkClass(true, now, class, n)
}

// CheckClass is [Limiter.CheckClass] for a key. A key with an override has the override's classes.
// With an error the verdict is [Denied].
func (k Keys) CheckClass(key, class string, n uint64) (Decision, error) {
	return k.checkClass(key, false, 0, class, n)
}

// CheckClassAt is [Keys.CheckClass] at the caller's time.
func (k Keys) CheckClassAt(key, class string, now, n uint64) (Decision, error) {
	return k.checkClass(key, true, now, class, n)
}

func (k Keys) checkClass(key string, at bool, now uint64, class string, n uint64) (Decision, error) {
	d := Decision{Verdict: Denied, Reason: ReasonFault}
	err := k.call(func(table uintptr) Code { return tableCheckClass(table, k.policy, key, at, now, class, n, &d) })
	return d, err
}

// CheckClass is [Keys.CheckClass] under policy 0.
func (t *Table) CheckClass(key, class string, n uint64) (Decision, error) {
	return t.Under(0).CheckClass(key, class, n)
}

// Class is the limit for a request of a class of its policy. A permit in flight has no classes.
func (l Limit) Class(class string) Limit {
	if class == "" {
		// No class has this name, and "" would be no class.
		class = "?"
	}
	l.class = class
	return l
}

// className is a class's name, which C reads as char[16]. The zero value is no class.
type className [16]byte

// nameOf returns the name for C. No class has the result for a name that is too long or has a NUL.
func nameOf(class string) (name className) {
	if len(class) >= len(name) || strings.IndexByte(class, 0) >= 0 {
		class = "?"
	}
	copy(name[:], class)
	return name
}
