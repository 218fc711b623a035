# shellcheck shell=sh
# What the shell tests of the command share. Sourced: it makes $work, a directory that is removed at
# the end, and counts in $passed and $failed.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
passed=0
failed=0

# check NAME EXPECTED GOT
check() {
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: %s\n--- expected\n%s\n--- got\n%s\n' "$1" "$2" "$3"
    fi
}

# finish: the sum, and the status.
finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
}
