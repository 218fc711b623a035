#!/bin/sh
# Tests the Python package as a user gets it: a venv, pip install from this checkout, pytest, mypy.
# PYTHON names the interpreter. Ends with `N passed, N failed`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
"$here/install.sh"
venv=$root/build/python
log=$root/build/python.log
pip="$venv/bin/python -m pip --quiet --disable-pip-version-check"

# One call for all takes a quarter of the time of one for each, which then says which package is
# missing.
wanted="pytest>=7 numpy mypy pyright starlette flask fastapi uvicorn gunicorn limits==5.8.0 Flask-Limiter==4.1.1 slowapi==0.1.10 aiolimiter httpx redis valkey django
    djangorestframework channels celery requests types-requests aiohttp>=3.12 trio freezegun time-machine"
# shellcheck disable=SC2086
$pip install $wanted || for package in $wanted; do
    $pip install "$package" || {
        echo "$package cannot be installed into $venv, and tests need it; expected: a package index that pip reaches, or the package there already"
        echo "0 passed, 1 failed"
        exit 1
    }
done

status=0
cd "$here"
"$venv/bin/python" -m pytest -q -rs -p no:cacheprovider "$@" >"$log" 2>&1 || status=$?
cat "$log"
# The last line of pytest, in the words of the other runners; errors are failures.
summary=$(grep -E '(passed|failed|error|skipped).* in [0-9.]+' "$log" | tail -n 1)
count() { echo "$summary" | sed -n "s/.*[^0-9]\{0,1\}\b\([0-9][0-9]*\) $1.*/\1/p" | grep . || echo 0; }
passed=$(count passed)
failed=$(($(count failed) + $(count error)))
[ "$status" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
