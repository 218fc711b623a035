# shellcheck shell=sh
# Counting checks. Sourced.
passed=0 failed=0
log=

# NAME COMMAND...: one check, which passes if the command succeeds. If not, it prints the command's
# output.
check() {
    check_name=$1
    shift
    if "$@" > "$log" 2>&1; then
        passed=$((passed + 1))
        echo "ok    $check_name"
    else
        failed=$((failed + 1))
        echo "FAIL  $check_name"
        sed 's/^/      /' "$log" | head -n 40
    fi
}

# NAME COMMAND...: like check, with the last line of the command's output in the name.
measure() {
    check_name=$1
    shift
    if "$@" > "$log" 2>&1; then
        passed=$((passed + 1))
        echo "ok    $check_name: $(tail -n 1 "$log")"
    else
        failed=$((failed + 1))
        echo "FAIL  $check_name: $(tail -n 1 "$log")"
        sed '$d; s/^/      /' "$log" | head -n 40
    fi
}

# NAME COMMAND...: a program that prints TAP, in one group or more. Each of its tests is a check.
# The suite fails, too, if the program fails or runs another number of tests than it has planned.
suite() {
    suite_name=$1
    shift
    suite_status=0
    CMOCKA_MESSAGE_OUTPUT=TAP "$@" > "$log" 2> "$log.err" || suite_status=$?
    suite_good=$(grep -c '^ok ' "$log") || true
    suite_bad=$(grep -c '^not ok ' "$log") || true
    suite_plan=$(sed -n 's/^1\.\.\([0-9]*\)$/\1/p' "$log" | awk '{ sum += $1 } END { if (NR) print sum }')
    if [ "$suite_bad" -eq 0 ] && { [ "$suite_status" -ne 0 ] || [ "$suite_good" != "$suite_plan" ]; }; then
        suite_bad=1
    fi
    passed=$((passed + suite_good))
    failed=$((failed + suite_bad))
    if [ "$suite_bad" -eq 0 ]; then
        echo "ok    $suite_name: $suite_good tests"
    else
        echo "FAIL  $suite_name: $suite_bad failed, status $suite_status, $suite_good of ${suite_plan:-?} passed"
        grep -v '^ok ' "$log" | sed 's/^/      /' | head -n 40
        sed 's/^/      /' "$log.err" | head -n 40
    fi
}

# Ends the run with the sum.
finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}

# TOOL PACKAGE: fails the run if the tool is missing, because checks that do not run must not count
# as passed.
need() {
    command -v "$1" > /dev/null 2>&1 || missing "$1" "$2"
}

missing() {
    echo "FAIL  no $1: install the Debian package $2"
    failed=$((failed + 1))
}
