#!/bin/sh
# The tests of golang.org/x/time/rate against package rate: all pass but those below, in which time
# goes back. x/time/rate sets its own time back then, and so admits more than its rate. Package rate
# does not.
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$here/differential" || exit 1
upstream=$(go list -m -f '{{.Dir}}' golang.org/x/time) || exit 1
mkdir -p "$work/rate" "$work/internal/waiting" && cp "$here"/../internal/waiting/*.go "$work/internal/waiting" || exit 1
for file in limiter reservation sometimes; do
    sed 's|"github.com/tollbar/tollbar/bindings/go/internal/waiting"|"upstream/internal/waiting"|' "$here/$file.go" >"$work/rate/$file.go" || exit 1
done
for test in rate_test sometimes_test; do
    sed 's|"golang.org/x/time/rate"|"upstream/rate"|' "$upstream/rate/$test.go" >"$work/rate/$test.go" || exit 1
done
cd "$work" || exit 1
printf 'module upstream\n\ngo 1.24\n' >go.mod
go test -v ./rate >log 2>&1
grep '^--- FAIL' log | sed 's/--- FAIL: \([A-Za-z_]*\).*/\1/' | sort >failed
passed=$(grep -c '^--- PASS' log)
if ! diff - failed <<EOF || [ "$passed" -lt 20 ]; then
TestLimiterJumpBackwards
TestReserveJumpBack
TestReserveJumpBackCancel
TestReserveSetBurst
EOF
    cat log
    echo "expected: these failures and no other, and 20 tests that pass"
    exit 1
fi
echo "$passed tests of golang.org/x/time/rate pass, and four fail, in which time goes back"
