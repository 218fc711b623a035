#!/bin/sh
# All tests of the nginx modules in their short forms, by two processes at once: half of the time a
# test waits, and tests have ports and directories of their own. Arguments go to pytest, of which
# one process runs then: `run.sh -k stock`, `run.sh test_docs.py`. The last line is
# `N passed, N failed`. PYTHON chooses the interpreter, TOLLBAR_NGINX the server. (nginx itself
# reads NGINX, and takes it for sockets that it inherits.)
set -u
cd "$(dirname "$0")" || exit 1
root=../..

missing=
for tool in "${TOLLBAR_NGINX:-nginx}" wrk valgrind curl cc redis-server; do
    PATH="$PATH:/usr/sbin:/sbin" command -v "$tool" >/dev/null || missing="$missing $tool"
done
# Debian's pytest belongs to Debian's python3, which need not be the first on the path.
for python in "${PYTHON:-python3}" /usr/bin/python3; do
    "$python" -c 'import pytest' 2>/dev/null && break
    python=
done
[ -n "$python" ] || missing="$missing python3-pytest"
if [ -n "$missing" ]; then
    echo "the nginx tests need:$missing" >&2
    exit 1
fi

for module in ngx_http_tollbar_limit_req_module.so ngx_http_tollbar_module.so ngx_stream_tollbar_module.so; do
    if [ ! -f "${TOLLBAR_NGINX_MODULES:-$root/build/nginx}/$module" ]; then
        echo "$module is not built: make nginx" >&2
        exit 1
    fi
done

tests() { PYTHONDONTWRITEBYTECODE=1 exec env --default-signal=INT "$python" -m pytest -q -p no:cacheprovider "$@"; }
[ $# -eq 0 ] || tests "$@"

# The second begins with the last test, and they meet somewhere.
shared=$(mktemp -d)
trap 'rm -rf "$shared"' EXIT
trap 'wait; exit 1' HUP INT TERM
(TOLLBAR_SHARED=$shared TOLLBAR_FROM=last tests) >"$shared/said" 2>&1 &
(TOLLBAR_SHARED=$shared TOLLBAR_FROM=first tests)
wait
cat "$shared/said"
# Each test was claimed by one of the two, and each process found as many tests as the other.
cat "$shared"/sum-* | awk '
    { passed += $1; failed += $2; if (NR == 1 || $3 > collected) collected = $3; if (NR == 1 || $3 < least) least = $3 }
    END {
        if (NR != 2 || passed + failed < collected || passed > collected || least != collected) {
            print "FAIL: of two processes " NR + 0 " ended, which ran " passed + failed " of " collected + 0 " tests"
            failed++
        }
        print passed + 0 " passed, " failed + 0 " failed"
        exit failed > 0 || !passed
    }'
