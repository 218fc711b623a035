#!/bin/sh
# Tests of the runner of `make test` (tools/steps.sh), with small steps made for them. The runner
# counts the tests of each step, fails when a step fails, runs lanes beside each other, and ends
# all programs at an interrupt.
set -u
cd "$(dirname "$0")/.."
work=$PWD/build/steps
rm -rf "$work"
mkdir -p "$work"
. ffi-tests/c/sh/check.sh
log=$work/log

# A script of steps, as tools/test.sh is one. FIRST, ONE and TWO in the environment are its lists.
cat >"$work/script" <<'SCRIPT'
#!/bin/sh
set -u
self=$WORK/script
logs=$WORK/logs
steps="$FIRST $ONE $TWO"
. tools/steps.sh
begin_steps "$@"
seconds_to_end=$GRACE
seconds_of_a_step=${LIMIT:-}

step_counts() { echo "3 passed, 0 failed"; }
step_cargo() { echo "test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s"; }
step_nothing() { echo "Finished"; }
step_false() { false; }
step_failure() { echo "2 passed, 1 failed"; }
step_badly() { echo "2 passed, 0 failed" && false; }
step_skips() { echo "5 passed, 0 failed" && echo "skipped: no such kernel"; }
# It kills its lane, whose number is the third after the name in brackets.
step_killer() { kill -KILL "-$(awk '{ sub(/.*\) /, ""); print $3 }' /proc/self/stat)"; }

# Says in $WORK/order when it begins and ends.
told() { echo "$1 begins" >>"$WORK/order" && "$2" "$1" && echo "$1 ends" >>"$WORK/order" && echo "1 passed, 0 failed"; }
at_once() { :; }
# Each waits for the other, in vain if they do not run beside each other.
meets() {
    : >"$WORK/met-$1"
    tries=$PATIENCE
    until [ -e "$WORK/met-left" ] && [ -e "$WORK/met-right" ]; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || return 1
        sleep 0.05
    done
}
# Long enough for another step to begin, if one may.
a_while() { sleep 0.5; }
step_before() { told before a_while; }
step_left() { told left meets; }
step_after() { told after at_once; }
step_right() { told right meets; }

# Two programs that do not end. A shell makes the one in the background ignore interrupts; the other
# cleans up at an interrupt.
step_endless() {
    sleep 1000 &
    echo $! >>"$WORK/pids"
    sh -c 'trap "echo cleaned >$WORK/cleaned; exit 1" INT; echo $$ >>"$WORK/pids"; while :; do sleep 1; done'
}
# One that does not end by an interrupt.
step_stubborn() { sh -c 'trap "" INT; echo $$ >"$WORK/stubborn"; while :; do sleep 1; done'; }

run_steps "$FIRST" "$ONE" "$TWO"
SCRIPT
chmod +x "$work/script"
export WORK="$work"

# FIRST ONE TWO [ONLY]: runs the lists, and leaves what was printed in $work/out.
run() {
    rm -f "$work/order" "$work"/met-*
    # Appended: the lanes and the script write to one file, and one must not write over another.
    rm -f "$work/out"
    GRACE=20 PATIENCE=${PATIENCE:-400} FIRST=$1 ONE=$2 TWO=$3 ONLY=${4:-} "$work/script" >>"$work/out" 2>&1
    status=$?
    cat "$work/out"
    return $status
}
# SUM FIRST ONE TWO [ONLY]: the run passes, and its last line is SUM.
good() {
    sum=$1
    shift
    run "$@" && [ "$(tail -n 1 "$work/out")" = "$sum" ]
}
# The same of a run that fails.
bad() {
    sum=$1
    shift
    ! run "$@" && [ "$(tail -n 1 "$work/out")" = "$sum" ]
}

prints_a_line_a_step() {
    good "7 passed, 0 failed" counts cargo "" || return 1
    grep -xE 'counts +3 passed, 0 failed, [0-9]+ s' "$work/out" && grep -xE 'cargo +4 passed, 0 failed, [0-9]+ s' "$work/out"
}
says_what_is_unknown() { bad "ONLY: unknown step nonsense; the steps are: lint rust go" lint rust go "lint nonsense"; }
says_what_was_skipped() { good "5 passed, 0 failed" "" skips "" && grep -x "skips: skipped: no such kernel" "$work/out"; }
says_failures_again() {
    bad "5 passed, 2 failed" "" "failure counts" nothing && grep -x 'nothing.log:[0-9]*:FAIL: the step nothing counted no test (status 0)' "$work/out"
}
refuses_an_unknown_step() {
    ONLY="steps lint" tools/test.sh >"$work/out" 2>&1
    [ $? -eq 2 ] && grep "unknown step steps; the steps are: .*lint .*bench" "$work/out"
}
# The lists of tools/test.sh name each of its functions once, or a step would never run.
runs_every_step() {
    sed -n 's/^step_\([a-z]*\)() .*/\1/p' tools/test.sh | sort >"$work/functions"
    sed -n 's/^\(first\|waits\|links\|works\)="\(.*\)"$/\2/p' tools/test.sh | tr ' ' '\n' | sort >"$work/lists"
    [ -s "$work/functions" ] && diff "$work/functions" "$work/lists"
}
knows_a_lane_that_ended() {
    bad "4 passed, 2 failed" "" "killer counts" cargo &&
        grep -x "FAIL: the step killer has no result: its lane ended before it" "$work/out" &&
        grep -x "FAIL: the step counts has no result: its lane ended before it" "$work/out"
}
# `before` alone; then `left` and `right` beside each other, and `after` when `left` has ended.
runs_in_lanes() {
    good "4 passed, 0 failed" before "left after" right || return 1
    cat "$work/order"
    [ "$(head -n 2 "$work/order" | tr '\n' ' ')" = "before begins before ends " ] &&
        [ "$(grep -E 'left|after' "$work/order" | tr '\n' ' ')" = "left begins left ends after begins after ends " ] &&
        [ "$(grep -c ends "$work/order")" -eq 4 ]
}
# A lane without steps of its own takes the last of the last list, else the two would not meet.
takes_from_the_last_list() { good "2 passed, 0 failed" "" "" "left right" && good "2 passed, 0 failed" "" "" "left right" "left right"; }
# The steps of the other lists share something, and no lane but their own runs them.
leaves_other_lists_alone() { PATIENCE=10 bad "4 passed, 1 failed" "" "left right" counts; }
# Without the other lane a step of this one waits in vain, by which the test above would notice
# lanes that take turns.
notices_a_missing_lane() { PATIENCE=10 bad "1 passed, 1 failed" before left right "before left"; }

# While one run is going on, another in the same place is refused, and does not touch its results.
refuses_a_second_run() {
    rm -f "$work/pids" "$work/cleaned"
    GRACE=1 FIRST="" ONE=endless TWO=counts ONLY="" env --default-signal=INT "$work/script" >"$work/first" 2>&1 &
    script=$!
    until [ -s "$work/pids" ]; do sleep 0.05; done
    run "" counts cargo
    status=$?
    kill -s INT $script
    wait $script
    ended "$work/pids" && [ $status -eq 2 ] && grep "logs/lock: another run of these steps holds it" "$work/out"
}

# FILE: the processes that it names have ended.
ended() {
    for pid in $(cat "$1"); do
        tries=300
        while kill -0 "$pid" 2>/dev/null; do
            tries=$((tries - 1))
            [ $tries -gt 0 ] || { echo "process $pid still runs" && return 1; }
            sleep 0.1
        done
    done
}
# SIGNAL STATUS: the run is sent the signal and ends with the status, its programs have ended, and
# the one that cleans up has done so.
ends_by() {
    rm -f "$work/pids" "$work/cleaned"
    # The one in the background takes all of that time. On a busy machine the other one may need
    # some seconds.
    GRACE=6 FIRST="" ONE=endless TWO=counts ONLY="" env --default-signal=INT "$work/script" >"$work/out" 2>&1 &
    script=$!
    tries=600
    until [ "$(cat "$work/pids" 2>/dev/null | wc -l)" -eq 2 ]; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || { echo "the steps have not begun" && return 1; }
        sleep 0.05
    done
    kill -s "$1" $script
    wait $script
    status=$?
    cat "$work/out"
    [ $status -eq "$2" ] || { echo "status $status, expected $2" && return 1; }
    ended "$work/pids" && [ -e "$work/cleaned" ] && ! grep -E '[0-9]+ passed, [0-9]+ failed$' "$work/out"
}
# A second interrupt kills what did not end by the first.
ends_the_stubborn() {
    rm -f "$work/stubborn"
    GRACE=600 FIRST=stubborn ONE="" TWO="" ONLY="" env --default-signal=INT "$work/script" >"$work/out" 2>&1 &
    script=$!
    until [ -s "$work/stubborn" ]; do sleep 0.05; done
    kill -s INT $script
    # From then on the script kills at the next interrupt.
    tries=600
    until grep -q 'interrupted by SIGINT' "$work/out"; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || { echo "it does not say that it was interrupted" && return 1; }
        sleep 0.05
    done
    sleep 0.5
    kill -0 "$(cat "$work/stubborn")" || { echo "it has ended by one interrupt" && return 1; }
    kill -s INT $script
    ended "$work/stubborn" || { kill -KILL "$(cat "$work/stubborn")"; return 1; }
    wait $script
    [ $? -eq 130 ]
}

# Both programs of the step end, the log names them, and the lane goes on.
ends_a_late_step() {
    rm -f "$work/pids" "$work/cleaned"
    GRACE=1 LIMIT=2 FIRST="" ONE="endless counts" TWO=cargo ONLY="" "$work/script" >"$work/out" 2>&1 && return 1
    cat "$work/out"
    ended "$work/pids" && [ "$(tail -n 1 "$work/out")" = "7 passed, 1 failed" ] &&
        grep "endless.log:[0-9]*:FAIL: the step endless has run for 2 s, and is ended" "$work/out" &&
        grep "sleep 1000" "$work/logs/endless.log" && ! grep "Terminated\|Killed$" "$work/out"
}
# No process stays that would end it later, or keep what the run has open.
leaves_no_watch() { LIMIT=600 good "3 passed, 0 failed" "" counts "" && sleep 2 && ! pgrep -f "$work/script --lane"; }

check "steps are summed" good "7 passed, 0 failed" "" counts cargo
check "a line a step" prints_a_line_a_step
check "ONLY chooses" good "4 passed, 0 failed" "" "counts cargo" badly cargo
check "a step that counts nothing fails" bad "3 passed, 1 failed" "" counts nothing
check "a step that counts nothing and ends badly fails" bad "0 passed, 1 failed" "" false ""
check "a step that counts a failure fails" bad "2 passed, 1 failed" "" failure ""
check "a step that ends badly fails" bad "5 passed, 1 failed" "" badly counts
check "a step that fails before the lanes fails" bad "5 passed, 1 failed" badly counts ""
check "no step at all fails" bad "0 passed, 0 failed" "" "" ""
check "failures are said again at the end" says_failures_again
check "an unknown name in ONLY fails" says_what_is_unknown
check "what was skipped is said" says_what_was_skipped
check "lanes run beside each other, and their steps in order" runs_in_lanes
check "a lane that has ended takes from the last list" takes_from_the_last_list
check "and not from the others" leaves_other_lists_alone
check "a second run in one place is refused" refuses_a_second_run
check "a step that waits for a lane that does not run fails" notices_a_missing_lane
check "steps of a lane that was killed fail" knows_a_lane_that_ended
check "an interrupt ends all that the lanes have started" ends_by INT 130
check "so does a termination" ends_by TERM 143
check "a second interrupt kills" ends_the_stubborn
check "a step that runs too long is ended, and the next one runs" ends_a_late_step
check "a step that ends in time leaves nothing behind" leaves_no_watch
check "tools/test.sh refuses an unknown name in ONLY" refuses_an_unknown_step
check "tools/test.sh runs each of its steps once" runs_every_step
finish
