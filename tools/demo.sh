#!/bin/sh
# What a limit would have done to a log, by the command that has been built in $1.
set -eu
build=$(cd "${1:?usage: demo.sh BUILD}" && pwd)
cd "$(dirname "$0")/.."
build=${build#"$PWD"/}
log=../shared/data/access.log
decisions=$build/demo-decisions.txt

say() { printf '\n== %s\n' "$*"; }
run() {
    printf '$'
    for word; do
        case $word in *' '*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
    done
    echo
    "$@"
}

if [ -r "$log" ]; then
    say "The log: $log, real requests"
else
    log=$build/demo.log
    say "The log: $log, 10,000 imaginary requests written for this"
    tools/demo-log.sh >"$log"
fi
run head -n 2 "$log"

say 'One limit, six algorithms, a limiter for each client'
run "$build/tollbar" replay "$log"

say 'One policy in full, and each decision in a file'
run "$build/tollbar" replay --policy '20/min burst 5' --decisions "$decisions" "$log"

say 'Allowed, denied or never; permits that remain; nanoseconds until the same request would pass'
run head -n 8 "$decisions"
run grep -n -m 4 '^D' "$decisions"

say 'The same as a page for a browser: which limit to set, and whom it would have refused'
report=$build/demo-report.html
run "$build/tollbar" replay --policy '10/min' --html "$report" "$log" >/dev/null
echo "The report is in $PWD/$report"
