#!/bin/sh
# What a decision costs from LuaJIT beside C. bench.sh [--smoke]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/find.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
"${CC:-cc}" -std=c99 -O2 -shared -fPIC -Wall -Wextra -Werror -I"$root/include" -I"$root/ffi-tests/cpp" \
    -o "$work/bench.so" "$here/bench.c" "$TOLLBAR_LIBRARY"
"$luajit" "$here/bench.lua" "$work/bench.so" "$@"
