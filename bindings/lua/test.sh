#!/bin/sh
# Tests of the LuaJIT module: in luajit, in a real nginx with the Lua module, and the example.
# LUAJIT names the interpreter, TOLLBAR_LIBRARY a library other than the one that `make lib` has
# built. Ends with `N passed, N failed`.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work" "/dev/shm/tollbar-lua-example-$$"' EXIT
trap 'exit 1' HUP INT TERM
. "$here/find.sh"
passed=0
failed=0

# counts NAME COMMAND...: as many as the command's last line says; one that says nothing of the kind
# has failed.
counts() {
    name=$1
    shift
    "$@" >"$work/log" 2>&1
    status=$?
    last=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$work/log" | tail -n 1)
    p=${last%% *}
    p=${p:-0}
    f=${last#*, }
    f=${f%% *}
    f=${f:-0}
    if { [ $status -ne 0 ] && [ "$f" -eq 0 ]; } || [ $((p + f)) -eq 0 ]; then f=$((f + 1)); fi
    passed=$((passed + p)) failed=$((failed + f))
    echo "$name: $p passed, $f failed"
    # Without its sum, which is in ours.
    [ "$f" -eq 0 ] || grep -vE '^[0-9]+ passed, [0-9]+ failed$' "$work/log"
}

# Each file runs compiled and interpreted, because LuaJIT's compiler and its interpreter make calls
# into C in different ways. jit_test.lua asks what the compiler does, so it runs only compiled.
for file in "$here"/tests/*_test.lua; do
    tested=$(basename "$file" _test.lua)
    counts "$tested" "$luajit" "$file"
    [ "$tested" = jit ] || counts "$tested, interpreted" "$luajit" -joff "$file"
done

in_nginx() {
    for python in "${PYTHON:-python3}" /usr/bin/python3; do
        "$python" -c 'import pytest' 2>/dev/null && break
        python=
    done
    [ -n "$python" ] || { echo "the tests in nginx need python3-pytest" && return 1; }
    # On its own, without the counting of nginx/tests: the last line here is pytest's in the words
    # of the other runners.
    PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest -q -p no:cacheprovider "$here/tests/test_nginx.py" >"$work/pytest" 2>&1
    status=$?
    cat "$work/pytest"
    summary=$(grep -E '(passed|failed|error|skipped).* in [0-9.]+' "$work/pytest" | tail -n 1)
    of() { echo "$summary" | grep -oE "[0-9]+ $1" | grep -oE '[0-9]+' || echo 0; }
    echo "$(of passed) passed, $(($(of failed) + $(of error) + $(of skipped))) failed"
    return $status
}
counts nginx in_nginx

# The programs of the README and of its manual, with the installed library and module.
readme() {
    awk '/^```lua$/ { on = 1; next } /^```$/ { on = 0 } on' "$here/README.md" "$root/docs/lua.md" >"$work/readme.lua"
    make --silent -C "$root" install PREFIX="$work/usr" || return 1
    (
        unset TOLLBAR_LIBRARY
        cd "$work" && LUA_PATH="$work/usr/share/lua/5.1/?.lua" LD_LIBRARY_PATH="$work/usr/lib" "$luajit" readme.lua
    ) >"$work/answers" || return 1
    cat "$work/answers"
    [ "$(grep -c '^passes' "$work/answers")" -eq 3 ] && [ "$(grep -c '^again in' "$work/answers")" -eq 2 ] &&
        echo "1 passed, 0 failed"
}
counts "the README's program, installed" readme

# Two processes and one table: of eight requests under two keys three pass under each.
example() {
    file=/dev/shm/tollbar-lua-example-$$
    for _ in 1 2; do "$luajit" "$root/examples/lua/logins.lua" "$file" || return 1; done >"$work/answers"
    cat "$work/answers"
    [ "$(grep -c passes "$work/answers")" -eq 6 ] && [ "$(grep -c 'again in' "$work/answers")" -eq 2 ] &&
        grep -q '^2 keys' "$work/answers" && echo "1 passed, 0 failed"
}
counts 'the example' example

benchmark() { "$here/bench.sh" --smoke && echo "1 passed, 0 failed"; }
counts 'the benchmark' benchmark

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
