#!/bin/sh
# The tests of go.uber.org/ratelimit and of github.com/juju/ratelimit against the packages here that
# replace them. They are of those modules, of the versions in differential/go.mod. Some names that
# they use of private ones are replaced. uber's TestPer fails: 7 calls a minute are 8,571,428,571.4 ns
# apart. go.uber.org/ratelimit leaves the fraction out, so its eighth call comes 3 ns before the minute
# ends. Here it comes at the end, which the test does not count.
#
# C15: of uber's tests, the one of NewUnlimited gets a second for its thousand calls in place of a
# millisecond, and one processor runs them, since their mock clock gives a woken goroutine a
# millisecond to run. juju's checks of NewBucketWithRate get a name with which they run: they have
# none in juju/ratelimit.
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$here/differential" || exit 1
uber=$(go list -m -f '{{.Dir}}' go.uber.org/ratelimit) || exit 1
juju=$(go list -m -f '{{.Dir}}' github.com/juju/ratelimit) || exit 1
mkdir "$work/uber" "$work/juju" && cp "$here/ratelimit.go" "$work/uber" || exit 1
cp "$here/../juju/ratelimit/ratelimit.go" "$here/../juju/ratelimit/io.go" "$work/juju" || exit 1
cp go.sum "$work" && sed "s|=> ../..|=> ${here%/*}|" go.mod >"$work/go.mod" || exit 1
sed 's/newMutexBased(/New(/; s/newAtomicBased(/New(/; s/newAtomicInt64Based(/New(/
    s/ < 1\*time.Millisecond/ < time.Second/' \
    "$uber/ratelimit_test.go" >"$work/uber/ratelimit_test.go" || exit 1
sed 's/tb\.startTime/tb.began/g; s/tb\.take(/tb.takeAt(/; s/tb\.takeAvailable(/tb.takeAvailableAt(/
    s/tb\.available(/tb.availableAt(/; s/infinityDuration/forever/; s/rateMargin/0.01/
    s/) NewBucketWithRate(/) TestNewBucketWithRate(/' \
    "$juju/ratelimit_test.go" >"$work/juju/ratelimit_test.go" || exit 1
cd "$work" || exit 1

# passes NAME LEAST FAILURE COMMAND...: at least LEAST tests pass, and FAILURE and no other fails.
passes() {
    name=$1 least=$2 differs=$3
    shift 3
    "$@" >log 2>&1
    passed=$(grep -Ec '^--- PASS|^PASS: ' log)
    failed=$(sed -En 's/^(--- FAIL|FAIL): ([^ ]*: )?([A-Za-z_.]*).*/\3/p' log)
    if [ "$failed" != "$differs" ] || [ "$passed" -lt "$least" ] ||
        ! grep -Eq '^(ok|FAIL)[[:space:]].*/differential/' log; then
        cat log
        echo "$name: expected: failures: ${differs:-none}, and $least tests that pass"
        exit 1
    fi
    echo "$passed tests of $name pass, and these fail: ${differs:-none}"
}
export GOFLAGS="${GOFLAGS:-} -mod=mod"
passes go.uber.org/ratelimit 6 TestPer env GOMAXPROCS=1 go test -v ./uber
passes github.com/juju/ratelimit 8 '' go test -v ./juju -check.vv
