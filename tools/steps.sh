# shellcheck shell=sh
# The runner of `make test`: one line a step, what failed in full, and at the end the sum of all that was counted. Sourced, with
# $logs the directory for the steps' logs, and $steps the names of all steps. ONLY in the environment chooses among them.
passed=0
failed=0
# The words by which the steps' runners mark the line that names a failed test.
failure='FAIL|panicked at|^not ok|^error|ERROR:|[Aa]ssertion'

# Ends the run if ONLY names a step that does not exist.
begin_steps() {
    mkdir -p "$logs"
    : >"$logs/failures"
    : >"$logs/skipped"
    unknown=
    for name in ${ONLY:-}; do
        case " $steps " in *" $name "*) ;; *) unknown="$unknown $name" ;; esac
    done
    [ -z "$unknown" ] && return
    echo "ONLY: unknown step$unknown; the steps are: $steps" >&2
    exit 2
}

# LOG: the sums that its runners printed, cargo test's and `N passed, N failed`.
sum_of() {
    sed -n -e 's/^test result: [^.]*\. \([0-9]*\) passed; \([0-9]*\) failed;.*/\1 \2/p' \
        -e 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$1" | awk '{ p += $1; f += $2 } END { print p + 0, f + 0 }'
}

# step NAME COMMAND...: a step fails by its status, by a test that it counts as failed, and if it counts no test at all.
step() {
    name=$1
    shift
    case " ${ONLY:-$name} " in *" $name "*) ;; *) return 0 ;; esac
    started=$(date +%s)
    "$@" >"$logs/$name.log" 2>&1
    status=$?
    # shellcheck disable=SC2046
    set -- $(sum_of "$logs/$name.log")
    p=$1 f=$2
    if [ $((p + f)) -eq 0 ]; then
        echo "FAIL: the step $name counted no test (status $status)" >>"$logs/$name.log"
        f=1
    elif [ $status -ne 0 ] && [ "$f" -eq 0 ]; then
        echo "FAIL: the step $name counted no failure and ended with status $status" >>"$logs/$name.log"
        f=1
    fi
    passed=$((passed + p)) failed=$((failed + f))
    printf '%-10s %5d passed, %d failed, %d s\n' "$name" "$p" "$f" $(($(date +%s) - started))
    grep '^skipped: ' "$logs/$name.log" | sed "s/^/$name: /" >>"$logs/skipped"
    if [ "$f" -ne 0 ]; then
        echo "---- $logs/$name.log"
        tail -n 60 "$logs/$name.log"
        echo "----"
        # Said again at the end, below the logs of the steps that follow.
        grep -nE -B 1 -A 2 "$failure" "$logs/$name.log" | head -n 24 | sed "s/^/$name.log:/" >>"$logs/failures"
    fi
}

# The tests that said why they could not run, the failures, and the sum: its status is the run's.
end_steps() {
    [ ! -s "$logs/skipped" ] || { echo && cat "$logs/skipped"; }
    [ ! -s "$logs/failures" ] || { echo && cat "$logs/failures"; }
    printf '\n%d passed, %d failed\n' "$passed" "$failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
