#!/bin/sh
# All tests of the nginx modules in their short forms. The last line is `N passed, N failed`.
# Arguments go to pytest: `run.sh -k stock`. PYTHON chooses the interpreter, TOLLBAR_NGINX the server.
# (nginx itself reads NGINX, and takes it for sockets that it inherits.)
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

PYTHONDONTWRITEBYTECODE=1 exec "$python" -m pytest -q -p no:cacheprovider "$@" .
