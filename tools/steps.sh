# shellcheck shell=sh
# The runner of `make test`: runs steps, some beside each other, and counts what they print. Sourced
# by a script of this form:
#
#     self=the script         # a path that holds from everywhere
#     logs=DIRECTORY          # for the log of each step, NAME.log
#     steps="..."             # the names of all steps; ONLY in the environment chooses among them
#     . tools/steps.sh
#     begin_steps "$@"
#     step_NAME() { ... }     # for each step
#     run_steps FIRST LANE...
#
# Each argument of run_steps is a list of steps. Those of FIRST run one after the other. Then the
# lanes run beside each other, and the steps of one lane one after the other. A lane that has come
# to its end takes steps from the end of the last lane's list, so that all lanes end at about the
# same time: steps of that list must not disturb each other.
#
# A step prints one line when it ends, and its failures and the end of its log if it failed. At the
# end come the failures once more, and the sum of all that was counted. A step fails by its status,
# by a test that it counts as failed, if it counts no test at all, if its lane ends without it, and
# if it runs for longer than $seconds_of_a_step, where the script sets that.
#
# A lane is the script itself, called with `--lane STEPS STEPS-THAT-IT-MAY-TAKE`, in a session of
# its own, so that an interrupt can be sent to all processes that the lane has started.

# The words by which the steps' runners mark the line that names a failed test.
failure='FAIL|panicked at|^not ok|^error|ERROR:|[Aa]ssertion'
# How long processes have to end after an interrupt.
seconds_to_end=20

# ARGUMENTS of the script. Ends the run if ONLY names a step that does not exist, and if another run
# has the logs.
begin_steps() {
    results=$logs/results
    as_lane=
    if [ "${1:-}" = --lane ]; then
        as_lane=yes own=$2 others=$3
        return 0
    fi
    unknown=
    for name in ${ONLY:-}; do
        case " $steps " in *" $name "*) ;; *) unknown="$unknown $name" ;; esac
    done
    if [ -n "$unknown" ]; then
        echo "ONLY: unknown step$unknown; the steps are: $steps" >&2
        exit 2
    fi
    # Two runs would write the same logs, and the same programs while the other runs them.
    mkdir -p "$logs"
    exec 9>"$logs/lock"
    flock --nonblock 9 && return
    echo "$logs/lock: another run of these steps holds it; expected: one run in a checkout" >&2
    exit 2
}

# Whether this process is a lane, and not the one that starts the lanes.
is_lane() { [ -n "$as_lane" ]; }

# FIRST LANE...: ends the script. Its status is whether all passed.
run_steps() {
    if is_lane; then
        for name in $own $others; do
            # The lane that makes the directory runs the step.
            mkdir "$results/$name.begun" 2>/dev/null && run_step "$name"
        done
        exit
    fi
    rm -rf "$results"
    mkdir -p "$results"
    running=
    trap 'end_lanes INT 130' INT
    trap 'end_lanes TERM 143' TERM
    trap 'end_lanes HUP 129' HUP
    start_lane "$1" ""
    wait_for_lanes
    shift
    shared=
    for list; do last=$list; done
    for name in ${last:-}; do shared="$name $shared"; done
    for list; do start_lane "$list" "$shared"; done
    wait_for_lanes
    sum_up
    exit
}

# STEPS: those that ONLY chooses.
chosen() {
    for name in $1; do
        case " ${ONLY:-$name} " in *" $name "*) echo "$name" ;; esac
    done
}

# STEPS OTHERS: begins a lane of those steps that are chosen, which may take the others. Without env
# its programs would ignore an interrupt, as a shell's children in the background do. They do not
# inherit the lock, which a program that stays would keep.
start_lane() {
    setsid env --default-signal=INT,QUIT "$self" --lane "$(chosen "$1")" "$(chosen "$2")" 9>&- &
    running="$running $!"
}

wait_for_lanes() {
    for lane_process in $running; do wait "$lane_process"; done
    running=
}

# SIGNAL STATUS: ends the run. The lanes' processes are interrupted, so that tests end what they
# have started, and are killed if they do not end in time, or at the next interrupt.
end_lanes() {
    trap 'signal_lanes KILL; exit 130' INT TERM HUP
    echo "interrupted by SIG$1: ending what runs" >&2
    signal_lanes INT
    tries=$((seconds_to_end * 10))
    while [ $tries -gt 0 ] && signal_lanes 0; do
        sleep 0.1
        tries=$((tries - 1))
    done
    signal_lanes KILL
    exit "$2"
}

# SIGNAL: to all processes of all lanes. Fails if there are none. setsid makes a lane's process
# number that of its group.
signal_lanes() {
    lives=1
    for lane_process in $running; do
        kill -s "$1" -- "-$lane_process" 2>/dev/null && lives=0
    done
    return $lives
}

# LOG: the sums that its runners printed, cargo test's and `N passed, N failed`.
sum_of() {
    sed -n -e 's/^test result: [^.]*\. \([0-9]*\) passed; \([0-9]*\) failed;.*/\1 \2/p' \
        -e 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$1" | awk '{ p += $1; f += $2 } END { print p + 0, f + 0 }'
}

# LOG: the first lines that name failures, with their neighbours.
failures_in() { grep -nE -B 1 -A 2 "$failure" "$1" | head -n 24; }

# NAME: runs the step and leaves its sum in $results/NAME. The log ends with the processor time of
# the step.
run_step() {
    name=$1
    log=$logs/$name.log
    started=$(date +%s)
    # The step appends, too: it and end_late would write over each other's lines.
    : >"$log"
    watch=
    if [ -n "${seconds_of_a_step:-}" ]; then
        end_late "$name" "$log" </dev/null >/dev/null 2>&1 &
        watch=$!
    fi
    (
        "step_$name"
        status=$?
        echo "processor time, user and system, of the shell and of what it ran:"
        times
        exit $status
    ) >>"$log" 2>&1
    status=$?
    if [ -e "$results/$name.late" ]; then
        wait "$watch"
    elif [ -n "$watch" ]; then
        kill -s KILL "$watch"
    fi
    # shellcheck disable=SC2046
    set -- $(sum_of "$log")
    p=$1 f=$2
    if [ $((p + f)) -eq 0 ]; then
        echo "FAIL: the step $name counted no test (status $status)" >>"$log"
        f=1
    elif [ $status -ne 0 ] && [ "$f" -eq 0 ]; then
        echo "FAIL: the step $name counted no failure and ended with status $status" >>"$log"
        f=1
    fi
    # In one piece, since another lane prints too.
    {
        printf '%-10s %5d passed, %d failed, %d s\n' "$name" "$p" "$f" $(($(date +%s) - started))
        [ "$f" -eq 0 ] || { echo "---- $log" && failures_in "$log" && echo "..." && tail -n 60 "$log" && echo "----"; }
    } >"$results/$name.said"
    cat "$results/$name.said"
    echo "$p $f" >"$results/$name"
}

# NAME LOG: when the step has had its time, writes to its log which processes its lane runs, and ends
# them: by an interrupt, at which a runner of tests says where it stands, and then for good. It waits
# a second at a time, so that no process of it stays for long when it is no longer wanted.
end_late() {
    read -r watch _ </proc/self/stat
    waited=0
    while [ $waited -lt "$seconds_of_a_step" ]; do
        sleep 1
        waited=$((waited + 1))
    done
    : >"$results/$1.late"
    {
        echo "FAIL: the step $1 has run for $seconds_of_a_step s, and is ended. Its processes:"
        ps -o pid,ppid,stat,etime,wchan:20,args -s $$
    } >>"$2"
    for signal in INT KILL; do
        # All of the lane's session but the lane and this one, of which $$ and $watch are the numbers.
        ps -o pid=,ppid= -s $$ | awk -v lane=$$ -v watch="$watch" \
            '$1 != lane && $1 != watch && $2 != watch { print $1 }' | xargs -r kill -s $signal
        sleep "$seconds_to_end"
    done
}

# Prints which tests could not run and why, the lines that name failures, and the sum.
sum_up() {
    passed=0 failed=0
    : >"$logs/skipped"
    : >"$logs/failures"
    for name in $(chosen "$steps"); do
        log=$logs/$name.log
        if read -r p f 2>/dev/null <"$results/$name"; then
            passed=$((passed + p)) failed=$((failed + f))
            grep '^skipped: ' "$log" | sed "s/^/$name: /" >>"$logs/skipped"
            [ "$f" -eq 0 ] || failures_in "$log" | sed "s/^/$name.log:/" >>"$logs/failures"
        else
            failed=$((failed + 1))
            echo "FAIL: the step $name has no result: its lane ended before it" | tee -a "$logs/failures"
        fi
    done
    [ ! -s "$logs/skipped" ] || { echo && cat "$logs/skipped"; }
    [ ! -s "$logs/failures" ] || { echo && cat "$logs/failures"; }
    printf '\n%d passed, %d failed\n' "$passed" "$failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
