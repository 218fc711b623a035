#!/bin/sh
# go.sh: from `go get` in a new module to the first refusal, and what needs no C compiler without
# one.
set -eu
. /tests/clock.sh
export PATH=$PATH:/go/bin GOPROXY=file:///packages/go GOSUMDB=off GOTOOLCHAIN=local GOFLAGS=-mod=mod
module=github.com/tollbar/tollbar/bindings/go
# APPLICATION: a new module in a directory of its own, with the program on standard input.
begin() {
    mkdir "/tmp/$1"
    cd "/tmp/$1"
    cat >main.go
    go mod init "example.com/$1" 2>&1
    go get "$module@latest" 2>&1
}
begin app <<'EOF'
package main

import (
	"fmt"

	tollbar "github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/redis"
)

func main() {
	limiter, err := tollbar.NewLimiter("3/day")
	if err != nil {
		panic(err)
	}
	for range 5 {
		fmt.Print(limiter.Allow(), " ")
	}
	_, err = redis.NewLease("x", "3/dy", redis.LeaseOptions{})
	fmt.Println(err)
}
EOF
go build -o app .
out=$(./app)
refused
echo "$out"
case $out in "true true true false false tollbar: policy"*) ;; *) exit 1 ;; esac
! ldd app | grep tollbar
go vet .
go mod vendor
GOFLAGS=-mod=vendor go build -o vendored .
[ "$(./vendored)" = "$out" ]

begin pure <<'EOF'
package main

import (
	"errors"
	"fmt"
	"time"

	tollbar "github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/cell"
	"github.com/tollbar/tollbar/bindings/go/rate"
)

func main() {
	limiter := rate.NewLimiter(rate.Every(24*time.Hour), 3)
	for range 5 {
		fmt.Print(limiter.Allow(), " ")
	}
	table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 100}, "2/day")
	if err != nil {
		panic(err)
	}
	for range 3 {
		fmt.Print(table.Allow("ann"), " ")
	}
	_, err = tollbar.OpenTable("/tmp/pure-table", tollbar.TableOptions{Capacity: 100}, "1/day")
	fmt.Print(errors.Is(err, tollbar.ErrNeedsLibrary), " ")
	fmt.Println(cell.Allowed)
}
EOF
cat >main_test.go <<'EOF'
package main

import (
	"testing"

	"github.com/tollbar/tollbar/bindings/go/rate"
)

func TestRefusal(t *testing.T) {
	if limiter := rate.NewLimiter(1e-9, 1); !limiter.Allow() || limiter.Allow() {
		t.Error("expected: one event")
	}
}
EOF
export CGO_ENABLED=0 CC=/nonexistent
go test ./...
[ "$(go run . | cut -d ' ' -f 1-9)" = "true true true false false true true false true" ]
report "from go get to the first refusal"
