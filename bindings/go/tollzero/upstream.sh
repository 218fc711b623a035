#!/bin/sh
# go-zero's own tests of core/limit against package limit. They are of go-zero's module, of the
# version in go.mod, and use miniredis as there. Two names that they use of go-zero's private ones
# are replaced: whether the prober runs, and its start. C15: the period of a second, in which they
# must make a hundred calls before the aligned window ends, is the longest period in its place, 10^9
# s; such a window ends in May 2033.
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$here" || exit 1
upstream=$(go list -m -f '{{.Dir}}' github.com/zeromicro/go-zero) || exit 1
mkdir "$work/limit" && cp limit/limit.go limit/token.go limit/period.go limit/*.lua "$work/limit" || exit 1
cp go.sum "$work" && sed "s|=> ../|=> ${here%/*}|" go.mod >"$work/go.mod" || exit 1
for test in tokenlimit_test periodlimit_test; do
    sed 's/l\.monitorStarted/l.server.isDown()/; s/l\.startMonitor()/l.server.lost(errLate)/; s/seconds = 1$/seconds = 1_000_000_000/' "$upstream/core/limit/$test.go" >"$work/limit/$test.go" || exit 1
done
[ "$(grep -c 'seconds = 1_000_000_000$' "$work/limit/periodlimit_test.go")" -eq 2 ] || {
    echo "expected: two periods of a second in go-zero's periodlimit_test.go"
    exit 1
}
cd "$work" || exit 1
GOFLAGS="$GOFLAGS -mod=mod" go test -v ./limit >log 2>&1
passed=$(grep -c '^--- PASS' log)
if grep -q '^--- FAIL' log || [ "$passed" -lt 8 ]; then
    cat log
    echo "expected: no failure, and 8 tests that pass"
    exit 1
fi
echo "$passed tests of go-zero's core/limit pass, and none fails"
