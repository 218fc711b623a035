#!/bin/sh
# The runner of `make test` (tools/steps.sh) with made-up steps: what it counts, and what makes it fail.
set -u
cd "$(dirname "$0")/.."
work=$PWD/build/steps
mkdir -p "$work"
. tests/c/sh/check.sh
log=$work/log

counts() { echo "3 passed, 0 failed"; }
counts_as_cargo() { echo "test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s"; }
counts_nothing() { echo "Finished"; }
counts_none_and_fails() { false; }
counts_a_failure() { echo "2 passed, 1 failed"; }
counts_and_fails() { echo "2 passed, 0 failed" && false; }
skips() { echo "5 passed, 0 failed" && echo "skipped: no such kernel"; }

# ONLY STEPS: a run of the functions STEPS of which ONLY are chosen.
run() (
    logs=$work/logs
    export ONLY="$1"
    steps=$2
    . tools/steps.sh
    begin_steps
    # shellcheck disable=SC2086
    for name in $steps; do step "$name" "$name"; done
    end_steps
)
# ONLY STEPS SUM: the run passes, and its last line is SUM.
good() { run "$1" "$2" >"$work/out" 2>&1 && cat "$work/out" && [ "$(tail -n 1 "$work/out")" = "$3" ]; }
# The same of a run that fails.
bad() { ! run "$1" "$2" >"$work/out" 2>&1 && cat "$work/out" && [ "$(tail -n 1 "$work/out")" = "$3" ]; }
says_what_is_unknown() { bad "lint nonsense" "lint rust" "ONLY: unknown step nonsense; the steps are: lint rust"; }
says_what_was_skipped() { good "" "skips" "5 passed, 0 failed" && grep -x "skips: skipped: no such kernel" "$work/out"; }
refuses_an_unknown_step() {
    ONLY="steps lint" tools/test.sh >"$work/out" 2>&1
    [ $? -eq 2 ] && grep "unknown step steps; the steps are: .*lint .*bench" "$work/out"
}

check "steps are summed" good "" "counts counts_as_cargo" "7 passed, 0 failed"
check "ONLY chooses" good "counts_as_cargo" "counts counts_as_cargo" "4 passed, 0 failed"
check "a step that counts nothing fails" bad "" "counts counts_nothing" "3 passed, 1 failed"
check "a step that counts nothing and ends badly fails" bad "" "counts_none_and_fails" "0 passed, 1 failed"
check "a step that counts a failure fails" bad "" "counts_a_failure" "2 passed, 1 failed"
check "a step that ends badly fails" bad "" "counts_and_fails counts" "5 passed, 1 failed"
check "an unknown name in ONLY fails" says_what_is_unknown
check "what was skipped is said" says_what_was_skipped
check "tools/test.sh refuses an unknown name in ONLY" refuses_an_unknown_step
finish
