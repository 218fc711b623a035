#!/bin/sh
# Tests of the Go package against the library that `make lib` has built. Ends with
# `N passed, N failed`.
#
# The libraries that packages here replace, and staticcheck, are fetched through Go's module proxy
# when they are not there. Where there is no network, TOLLBAR_OFFLINE=1 leaves out what cannot be
# fetched, and says so.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
# shellcheck source=env.sh
. "$here/env.sh"
cd "$here" || exit 1
module=$(sed -n 's/^module //p' go.mod)
passed=0
failed=0

# counts NAME COMMAND...: as many as the tests that `go test -v` names. One that names none has
# failed.
counts() {
    name=$1
    shift
    "$@" >"$work/log" 2>&1
    status=$?
    p=$(grep -c '^ *--- PASS' "$work/log")
    f=$(grep -c '^ *--- FAIL' "$work/log")
    if [ $status -ne 0 ] && [ "$f" -eq 0 ] || [ $((p + f)) -eq 0 ]; then f=$((f + 1)); fi
    passed=$((passed + p)) failed=$((failed + f))
    echo "$name: $p passed, $f failed"
    [ "$f" -eq 0 ] || cat "$work/log"
}

# holds NAME COMMAND...: one that passes if the command does.
holds() {
    name=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
        echo "$name: ok"
    else
        failed=$((failed + 1))
        echo "$name: FAILED"
        cat "$work/log"
    fi
}

# says TEXT COMMAND...: the command fails with a message that has the text.
says() {
    expected=$1
    shift
    if "$@" >"$work/said" 2>&1; then
        echo "expected an error with: $expected"
        return 1
    fi
    grep -F "$expected" "$work/said" >/dev/null || { cat "$work/said" && echo "expected: $expected" && return 1; }
}

formatted() { gofmt -l . ../../examples/go >"$work/unformatted" && cat "$work/unformatted" && [ ! -s "$work/unformatted" ]; }
holds formatted formatted
holds vet go vet ./...
# A fixed version, so that its findings do not change from day to day.
staticcheck=v0.6.1
static=$root/build/go-tests/bin/$staticcheck/staticcheck
fetched() { [ -x "$static" ] || GOBIN=$(dirname "$static") go install "honnef.co/go/tools/cmd/staticcheck@$staticcheck"; }
checked() { fetched && "$static" ./...; }
if [ -n "${TOLLBAR_OFFLINE:-}" ] && ! fetched >/dev/null 2>&1; then
    echo "staticcheck: not run, since it cannot be fetched"
else
    holds staticcheck checked
fi

# The first of these runs makes all rounds, the others some.
counts tests go test -v ./...
counts 'tests, with the race detector' go test -race -short -v ./...
counts 'tests, with checked pointers' env GOEXPERIMENT=cgocheck2 go test -v -run 'Batch|Table|Limiter' .
without() { env CGO_ENABLED=0 CC=/nonexistent go vet ./... && env CGO_ENABLED=0 CC=/nonexistent go test -short -v ./...; }
counts 'tests without a C compiler' without

# The library through purego, which a module of its own requires: its calls, with the race detector
# and checked pointers, and a program that loads it. The same program without the tag is static, and
# says what it lacks.
through() {
    (cd tollpurego && export TOLLBAR_LIBRARY="$root/build/libtollbar.so" TOLLBAR_REDIS_LIBRARY="$root/build/libtollbar-redis.so" \
        TOLLBAR_RULES_LIBRARY="$root/build/libtollbar-rules.so" && go vet . && go vet -tags tollbar_purego . $module $module/redis $module/rules $module/tollhttp &&
        env CGO_ENABLED=0 CC=/nonexistent go test -short -tags tollbar_purego -v $module $module/redis $module/rules $module/tollhttp &&
        go test -short -race -tags tollbar_purego -run 'Batch|Table|Limiter|TakeMany|HTTP|Metrics|InFlight' -v $module)
}
loads() { (loading); }
loading() {
    mkdir "$work/loading" && cd "$work/loading" || return 1
    cat >main.go <<EOF
package main

import (
	"fmt"
	"os"

	tollbar "$module"
	_ "$module/tollpurego"
)

func main() {
	table, err := tollbar.OpenTable(os.Args[1], tollbar.TableOptions{Capacity: 100}, "2/day")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(table.Allow("ann"), table.Allow("ann"), table.Allow("ann"))
}
EOF
    sed "s|^module .*|module loading|; s|=> \.\./|=> $here|" "$here/tollpurego/go.mod" >go.mod && cp "$here/tollpurego/go.sum" . || return 1
    go mod edit -require=$module/tollpurego@v0.0.0 "-replace=$module/tollpurego=$here/tollpurego" || return 1
    export CGO_ENABLED=0 CC=/nonexistent
    go build -o static . && go build -tags tollbar_purego -o loads . || return 1
    ! ldd static || return 1
    says 'with -tags tollbar_purego' ./static "$work/loading/table" || return 1
    says 'or its file in TOLLBAR_LIBRARY' env TOLLBAR_LIBRARY=/nonexistent ./loads "$work/loading/table" || return 1
    [ "$(TOLLBAR_LIBRARY=$root/build/libtollbar.so ./loads "$work/loading/table")" = 'true true false' ] || return 1
    # With cgo and musl a static program has the library.
    command -v musl-gcc || return 0
    env CGO_ENABLED=1 CC=musl-gcc go build -ldflags '-linkmode external -extldflags -static' -o musl . && ! ldd musl || return 1
    [ "$(./musl "$work/loading/another")" = 'true true false' ]
}
if [ -n "${TOLLBAR_OFFLINE:-}" ] && ! (cd tollpurego && go mod download) >/dev/null 2>&1; then
    echo "the library through purego: not run, since purego cannot be fetched"
else
    counts 'tests through purego' through
    holds 'a program that loads the library' loads
    [ ! -x "$static" ] || holds 'staticcheck of the calls through purego' sh -c "cd tollpurego && '$static' -tags tollbar_purego . $module $module/redis $module/rules $module/tollhttp"
fi
# Other systems are compiled, since none is here to run.
others() {
    for system in darwin/arm64 windows/amd64 linux/arm64 linux/386; do
        env CGO_ENABLED=0 GOOS="${system%/*}" GOARCH="${system#*/}" go vet ./... || return 1
    done
}
holds 'vet for other systems' others
# Linux runs programs for 386 on amd64, and for arm64 by an emulator if it is installed.
steps='. ./cell ./internal/core ./internal/local ./rate ./ratelimit ./juju/ratelimit'
# shellcheck disable=SC2086
[ "$(go env GOARCH)" != amd64 ] || counts 'tests on 386' env CGO_ENABLED=0 GOARCH=386 go test -short -v $steps
# shellcheck disable=SC2086
! emulator=$(command -v qemu-aarch64-static) || counts 'tests on arm64' env CGO_ENABLED=0 GOARCH=arm64 go test -v -exec "$emulator" $steps
holds benchmarks go test -run '^$' -bench . -benchtime 10x ./...
holds 'the table of benchmarks' ./bench.sh 1

differs() { (cd rate/differential && go vet . && go test -v .); }
upstream() { rate/upstream.sh; }
if [ -n "${TOLLBAR_OFFLINE:-}" ] && ! (cd rate/differential && go mod download) >/dev/null 2>&1; then
    echo "comparison with golang.org/x/time/rate: not run, since that cannot be fetched"
else
    counts 'comparison with golang.org/x/time/rate' differs
    holds 'the tests of golang.org/x/time/rate' upstream
fi
limits_differ() { (cd ratelimit/differential && go vet . && go test -v .); }
limits_upstream() { ratelimit/upstream.sh; }
if [ -n "${TOLLBAR_OFFLINE:-}" ] && ! (cd ratelimit/differential && go mod download) >/dev/null 2>&1; then
    echo "comparison with uber's and juju's ratelimit: not run, since these cannot be fetched"
else
    counts "comparison with uber's and juju's ratelimit" limits_differ
    holds "the tests of uber's and juju's ratelimit" limits_upstream
fi

# Each is a module of its own, tested with the library and without a C compiler.
frameworks='tollgin tollecho tollchi tollgrpc tollzero'
framework() {
    for module_of in $frameworks; do
        # go-zero's limits wait for each other and for Redis, so theirs run under the race detector.
        race=
        [ "$module_of" != tollzero ] || race=-race
        # shellcheck disable=SC2086
        (cd "$module_of" && go vet ./... && go test $race -v ./... && env CGO_ENABLED=0 CC=/nonexistent go test -v ./...) || return 1
    done
}
zero() { tollzero/upstream.sh; }
fetches() { for module_of in $frameworks; do (cd "$module_of" && go mod download) || return 1; done; }
# The modules of their own and the example programs, as a reader's tools see them.
readers() {
    for module_of in $frameworks rate/differential ratelimit/differential ../../examples/go ../../examples/service; do
        (cd "$module_of" && go vet ./... && "$static" ./...) || return 1
    done
}
if [ -n "${TOLLBAR_OFFLINE:-}" ] && ! fetches >/dev/null 2>&1; then
    echo "middleware of gin, echo, chi and gRPC, and limits of go-zero: not run, since these cannot be fetched"
else
    counts 'middleware of gin, echo, chi and gRPC, and limits of go-zero' framework
    holds "the tests of go-zero's core/limit" zero
    [ ! -x "$static" ] || holds 'vet and staticcheck of the examples and the other modules' readers
fi

example() {
    (cd ../../examples/go && go vet ./... && go build -o "$work/example" . && go build -o "$work/sender" ./sender) || return 1
    # The queue keeps 25 and one leaves at once, in order.
    "$work/sender" >"$work/sent" || return 1
    [ "$(head -n 1 "$work/sent")" = '14 refused' ] && [ "$(tail -n 1 "$work/sent")" = 'message 25 leaves' ] || return 1
    # Two processes and one table: of eight requests three pass.
    for n in 1 2; do
        "$work/example" -demo -policy 3/day -table "$work/clients" || return 1
    done >"$work/answers"
    cat "$work/answers"
    [ "$(grep -c ': 200 OK' "$work/answers")" -eq 3 ] && [ "$(grep -c ': 429 ' "$work/answers")" -eq 7 ] || return 1
    "$work/example" -policy 3/dy -table "$work/clients" 2>&1 | grep 'column 3'
}
holds 'the example' example

# The README's program, as a reader would take it, with the library that is installed. Go does not
# notice that pkg-config answers otherwise than last time, so it is always the same place.
installed() {
    usr=$root/build/go-tests/usr
    make --silent -C "$root" install PREFIX="$usr" || return 1
    export PKG_CONFIG_PATH="$usr/lib/pkgconfig" LD_LIBRARY_PATH="$usr/lib"
    mkdir "$work/reader" && cd "$work/reader" || return 1
    awk '/^```go$/ { on = 1; next } /^```$/ { on = 0 } on' "$here/README.md" >main.go
    go mod init reader && go mod edit -require=$module@v0.0.0 "-replace=$module=$here" || return 1
    go vet -tags tollbar_installed . && go build -tags tollbar_installed -o reader . || return 1
    ldd reader | grep "$usr/lib/libtollbar.so.1" || return 1
    ./reader >out || return 1
    cat out
    test "$(grep -c '^passes' out)" -eq 3 && test "$(grep -c '^again in' out)" -eq 2
}
reads() { (installed); }
holds "the README's program, with an installed library" reads

# A build that cannot work fails with a message that says what is missing and what to do.
complains() {
    mkdir "$work/outside" && cd "$work/outside" || return 1
    printf 'package main\n\nimport tollbar "%s"\n\nfunc main() { println(tollbar.Version()) }\n' "$module" >main.go
    go mod init reader && go mod edit -require=$module@v0.0.0 "-replace=$module=$here" || return 1
    # Limiters need no C compiler, and a lease says that it does.
    env CGO_ENABLED=0 CC=/nonexistent go run . || return 1
    printf 'package main\n\nimport _ "%s/redis"\n' "$module" >lease.go
    says 'build constraints exclude all Go files' env CGO_ENABLED=0 go build . || return 1
    rm lease.go
    go mod vendor || return 1
    says 'a copy outside tollbar' go build . || return 1
    says 'build with -tags tollbar_installed' go build . || return 1
    # A repository whose library has not been built.
    mkdir -p "$work/clone/bindings" && cp -r "$root/include" "$work/clone" && cp -r "$here" "$work/clone/bindings" || return 1
    rm -r vendor && go mod edit "-replace=$module=$work/clone/bindings/go" || return 1
    says 'run `make lib`' go build .
}
mistaken() { (complains); }
holds 'errors of a build that cannot work' mistaken

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
