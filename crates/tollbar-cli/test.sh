#!/bin/sh
# Tests of the command, which has been built in $1: of the program as a user starts it. Its unit
# tests are in the step rust.
set -u
build=$(cd "${1:?usage: test.sh BUILD}" && pwd)
cd "$(dirname "$0")" || exit 1
failed=0
tests/replay/test.sh "$build" || failed=1
tests/command.sh "$build" || failed=1

# The report, in a browser.
wanted=tests/page/requirements.txt
if ! cmp -s "$wanted" "$build/page-venv/installed"; then
    rm -rf "$build/page-venv"
    python3 -m venv "$build/page-venv" && "$build/page-venv/bin/pip" install --quiet --requirement "$wanted" &&
        cp "$wanted" "$build/page-venv/installed" || exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The shared log too, where it is: its lines are out of order.
log=../../../shared/data/access.log
[ -f "$log" ] || log=
"$build/page-venv/bin/python" tests/page/look.py "$build/tollbar" "$work" - ${log:+"$log"} || failed=1
exit $failed
