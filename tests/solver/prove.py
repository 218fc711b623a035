"""Proofs, for all inputs of 64 bits, that the arithmetic of the algorithms is what it says. z3 looks for
a counterexample. Each theorem has a fault, too, that is planted into it: there z3 must find one.

    tests/solver/run.sh build [THEOREM...]
"""

import sys
import time

import z3

import fixed_window
import gcra
import pair
import units


# The steps that z3 may take for one part: some ten times what the longest takes.
STEPS = 400_000_000


def search(assumptions, claim):
    solver = z3.Solver()
    solver.set("rlimit", STEPS)
    solver.add(*assumptions, z3.Not(claim))
    return solver.check(), solver


def main(names):
    passed = failed = 0
    for theorem in gcra.THEOREMS + fixed_window.THEOREMS + pair.THEOREMS + units.THEOREMS:
        if names and theorem.__name__ not in names:
            continue
        begun = time.monotonic()
        for fault in (False, True):
            for part, (assumptions, claim) in enumerate(theorem(fault)):
                # The assumptions must not contradict each other, or they would prove anything.
                possible, _ = search(assumptions, z3.BoolVal(False))
                found, solver = search(assumptions, claim)
                expected = z3.sat if fault else z3.unsat
                good = possible == z3.sat and found == expected
                passed, failed = passed + good, failed + (not good)
                if not good:
                    what = "with its fault" if fault else "as it is"
                    print(
                        f"{theorem.__name__}, part {part + 1}, {what}: {found}, expected {expected}"
                    )
                    print(f"  assumptions: {possible}")
                    if found == z3.sat:
                        print(f"  {solver.model()}")
        about = theorem.__doc__.strip().split("\n")[0]
        print(f"{theorem.__name__}: {about} ({time.monotonic() - begun:.1f} s)", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed != 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
