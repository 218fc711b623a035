#!/bin/sh
# What a decision costs from Go: the best of several runs each, in nanoseconds, and against an empty
# call into C of the same run. bench.sh [COUNT]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=env.sh
. "$here/env.sh"
cd "$here"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
go test -c -o "$work/core" .
go test -c -o "$work/rate" ./rate
CGO_ENABLED=0 go test -c -o "$work/alone" .
# The library through purego, which is fetched.
programs='core rate alone'
if (cd tollpurego && CGO_ENABLED=0 go test -c -tags tollbar_purego -o "$work/loaded" "$(sed -n 's/^module //p' ../go.mod)"); then
    programs="$programs loaded"
    export TOLLBAR_LIBRARY="$root/build/libtollbar.so"
elif [ -n "${TOLLBAR_OFFLINE:-}" ]; then
    echo "through purego: not measured, since that cannot be fetched"
else
    exit 1
fi
# Round by round, so that each has its share of the moments in which the machine is busy with
# something else.
round=0
while [ $round -lt "${1:-40}" ]; do
    round=$((round + 1))
    for program in $programs; do
        echo "program: $program"
        "$work/$program" -test.run '^$' -test.bench . -test.benchtime 10ms
    done
done >"$work/figures"
awk -v programs="$programs" '
    /^program:/ { program = $2 }
    /^pkg:/ { package = $2 }
    /^Benchmark/ {
        name = $1
        sub(/^Benchmark/, "", name)
        sub(/-[0-9]+$/, "", name)
        if (package ~ /\/rate$/) name = "rate." name
        if (program == "alone" || program == "loaded") name = program "." name
        cost = $3
        for (i = 4; i < NF; i++) if ($(i + 1) == "ns/key") cost = $i
        if (!(name in least)) order[++n] = name
        if (!(name in least) || cost + 0 < least[name]) least[name] = cost + 0
    }
    function line(name, what, goal) {
        if (!(name in least)) { print "no figure for " name > "/dev/stderr"; bad = 1; return }
        printf "%-46s %7.1f %8.2f  %s\n", what, least[name], least[name] / empty, goal
    }
    function own(name, what, goal) { printf "%-46s %7s %8.2f  %s\n", what, "", least[name] / least["TableManyInC64"], goal }
    function with(how, name, what) {
        if (how == "loaded" && programs !~ how) return
        if (!(name in least) || !(how "." name in least)) { print "no figure for " how "." name > "/dev/stderr"; bad = 1; return }
        printf "%-46s %7.1f %8.2f\n", what, least[how "." name], least[how "." name] / least[name]
    }
    END {
        empty = least["EmptyCall"]
        if (!empty) exit 1
        printf "%-46s %7s %8s  %s\n", "Go", "ns", "ratio", "goal"
        line("EmptyCall", "an empty call into C", "")
        line("Clock", "time.Since", "")
        line("Allow", "Limiter.Allow", sprintf("%.1f: an empty call and 45 ns", empty + 45))
        line("AllowDenied", "Limiter.Allow, refused", "")
        line("AllowAt", "Limiter.AllowAt", "")
        line("Check", "Limiter.Check", "")
        line("CheckMany64", "Limiter.CheckMany of 64, a request", "10")
        line("TableAllow", "Table.Allow", "")
        line("TableCheckMany64", "Table.CheckMany of 64 by Add, a key", "")
        line("TableCheckAll64", "Table.CheckMany of 64 by AddAll, a key", "10")
        line("TableFilled64", "  of which all but to fill the batch", "")
        line("BatchAdd64", "  to fill it by Add", "")
        line("BatchAddAll64", "  to fill it by AddAll", "")
        line("TableManyInC64", "C'"'"'s own batch of 64, a key", "")
        own("TableFilled64", "  Go'"'"'s CheckMany to it, of a filled batch", "")
        own("TableCheckAll64", "  with AddAll", "1.3")
        own("TableCheckMany64", "  with Add", "")
        line("CellAt", "cell.Cell.Allow, at the caller'"'"'s time", "6")
        line("CellDeniedAt", "cell.Cell.Allow, refused", "6")
        line("CellNow", "cell.Cell.Allow, by cell.Now", "")
        line("rate.Allow", "rate.Limiter.Allow", "")
        with("alone", "KeysAllow", "Keys.Allow without the library, to that by cgo")
        with("alone", "KeysAllowDenied", "  refused")
        with("alone", "KeysCheckAt", "  Keys.CheckAt")
        with("loaded", "KeysAllow", "Keys.Allow through purego, to that by cgo")
        with("loaded", "KeysAllowDenied", "  refused")
        with("loaded", "KeysCheckAt", "  Keys.CheckAt")
        with("loaded", "TableAllow", "  Table.Allow")
        with("loaded", "TableCheckMany64", "  Table.CheckMany of 64 by Add, a key")
        exit bad
    }' "$work/figures"
