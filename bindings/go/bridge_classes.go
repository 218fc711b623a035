//go:build cgo || tollbar_purego

package tollbar

// The calls into C for classes. Callers hold a table's guard, so Close cannot free the table
// meanwhile.

import "runtime"

func (l *Limiter) checkClass(at bool, now uint64, class string, n uint64) (Decision, error) {
	at, now = l.timeOf(at, now)
	name, out := nameOf(class), newDecision()
	code := cLimiterCheckClass(l.handle, at, now, n, &name, &out)
	runtime.KeepAlive(l)
	return decided(code, &out)
}

func tableCheckClass(table uintptr, policy uint32, key string, at bool, now uint64, class string, n uint64,
	d *Decision) Code {
	at, now = timeOf(at, now)
	name, out := nameOf(class), newDecision()
	code := cTableCheckClass(table, policy, key, at, now, n, &name, &out)
	*d, _ = decided(code, &out)
	return Code(code)
}

// setClasses writes the classes of a policy to its spec.
func setClasses(spec *tollbar_policy_spec, classes *[ClassesMost]Class) {
	for i, class := range classes {
		spec.classes[i].reserve = class.Reserve
		for j := range spec.classes[i].name {
			if j < len(class.Name) {
				spec.classes[i].name[j] = class.Name[j]
			}
		}
	}
}

// classesOf reads the classes of a spec.
func classesOf(spec *tollbar_policy_spec) (classes [ClassesMost]Class) {
	for i := range classes {
		classes[i] = Class{Name: upToNUL(spec.classes[i].name[:]), Reserve: spec.classes[i].reserve}
	}
	return classes
}
