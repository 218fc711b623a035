#!/bin/sh
# Rules through every face: Rust, C, C++, Python, Go, LuaJIT and the command decide the same
# requests by the same file, and must say the same to the letter. Also the C face under valgrind,
# and pkg-config. The libraries have been built in $1.
set -u
build=$(cd "${1:?usage: run.sh BUILD}" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
# check NAME COMMAND...
check() {
    name=$1
    shift
    if "$@" >"$work/said" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $name"
        head -n 20 "$work/said" | cut -c1-300
    fi
}
. tools/rust.sh
cargo build --quiet --package tollbar-rules --example decide || exit 1
rust=${CARGO_TARGET_DIR:-target}/debug/examples/decide
compile() {
    "${CC:-cc}" -std=c99 -Wall -Wextra -Wpedantic -Wundef -Wconversion -Werror -O1 -g -Iinclude -o "$work/decide" ffi-tests/rules/decide.c \
        -L"$build" -ltollbar-rules -Wl,-rpath,"$build"
}
check 'C compiles without warnings' compile
compile_cpp() {
    "${CXX:-c++}" -std=c++17 -Wall -Wextra -Wpedantic -Wconversion -Wold-style-cast -Werror -O1 -g -Iinclude -o "$work/decide-cpp" ffi-tests/rules/decide.cpp \
        -L"$build" -ltollbar-rules -ltollbar -Wl,-rpath,"$build"
}
check 'C++ compiles without warnings' compile_cpp
check 'the header alone' sh -c "echo '#include \"tollbar_rules.h\"' | ${CC:-cc} -std=c90 -Wall -Wextra -Wpedantic -Wno-long-long -Werror -Iinclude -fsyntax-only -x c - && echo '#include \"tollbar_rules.h\"' | ${CXX:-c++} -std=c++11 -Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only -x c++ -"
old_glibc() { ! objdump -T "$build/libtollbar-rules.so" | grep -E 'GLIBC_2\.(1[89]|[2-9][0-9])'; }
check 'it runs with glibc 2.17' old_glibc
check 'exported names' sh -c "nm --dynamic --defined-only --format=posix '$build/libtollbar-rules.so' | cut -d' ' -f1 | sort | diff - abi/tollbar-rules.symbols"

luajit=${LUAJIT:-$(command -v luajit || command -v luajit2)} || {
    echo "luajit is not installed (Debian: luajit2)"
    exit 1
}

# By the library of this checkout, whose build/ it names.
go_program() { (cd bindings/go && go build -o "$work/decide-go" ../../ffi-tests/rules/decide.go); }
[ "$build" = "$root/build" ] || {
    echo "$build: expected $root/build, which the Go package names"
    exit 1
}
check 'the Go program compiles' go_program

# faces REQUESTS RULES: all faces' decisions and metrics are those of Rust, some are refusals, and a
# shadow disagrees.
faces() {
    rm -f "$work"/metrics-*
    "$rust" "$2" "$work/metrics-rust" <"$1" >"$work/rust" && grep -q '^1 4' "$work/rust" && [ "$(wc -l <"$work/rust")" -eq "$(wc -l <"$1")" ] || return 1
    "$work/decide" "$2" "$work/metrics-c" <"$1" >"$work/c" && cmp "$work/rust" "$work/c" || return 1
    "$work/decide-cpp" "$2" "$work/metrics-cpp" <"$1" >"$work/cpp" && cmp "$work/rust" "$work/cpp" || return 1
    TOLLBAR_RULES_LIBRARY="$build/libtollbar-rules.so" PYTHONPATH="$work/python" python3 ffi-tests/rules/decide.py "$2" "$work/metrics-python" <"$1" >"$work/py" && cmp "$work/rust" "$work/py" || return 1
    TOLLBAR_RULES_LIBRARY="$build/libtollbar-rules.so" LUA_PATH="bindings/lua/?.lua;;" "$luajit" ffi-tests/rules/decide.lua "$2" "$work/metrics-lua" <"$1" >"$work/lua" && cmp "$work/rust" "$work/lua" || return 1
    "$work/decide-go" "$2" "$work/metrics-go" <"$1" >"$work/go" && cmp "$work/rust" "$work/go" || return 1
    grep -q '^tollbar_shadow_disagreements_total.*would="refuse"} [1-9]' "$work/metrics-rust" || return 1
    for face in c cpp python lua go; do
        cmp "$work/metrics-rust" "$work/metrics-$face" || return 1
    done
}
# The module alone: it needs no extension.
mkdir -p "$work/python/tollbar" && cp bindings/python/src/tollbar/rules.py "$work/python/tollbar" && : >"$work/python/tollbar/__init__.py"
python3 ffi-tests/rules/requests.py >"$work/every" || exit 1
check 'one decision in each face, every rule, TOML' faces "$work/every" examples/rules/site.toml
cp "$work/rust" "$work/toml"
check 'one decision in each face, every rule, YAML' faces "$work/every" examples/rules/site.yaml
check 'TOML and YAML decide the same' cmp "$work/toml" "$work/rust"
# of_log LOG NAME: the faces and the command decide the log the same.
of_log() {
    python3 ffi-tests/rules/requests.py "$1" >"$work/requests" || exit 1
    check "one decision in each face, $2" faces "$work/requests" examples/rules/site.toml
    if [ -x "$build/tollbar" ]; then
        "$build/tollbar" replay --rules examples/rules/site.toml --reorder 0 --decisions "$work/command" "$1" >/dev/null || exit 1
        sed 's/^0/A/; s/^1/D/; s/^2/N/; s/ [0-9]*$//' "$work/rust" >"$work/letters"
        check "the command decides as the libraries do, $2" cmp "$work/letters" "$work/command"
    fi
}
# The sites of examples: all faces decide each case alike, and as it says.
site() {
    "$rust" "$2" <"$1" >"$work/rust" && python3 ffi-tests/rules/sites.py compare "$3" "$4" <"$work/rust" || return 1
    "$work/decide" "$2" <"$1" | cmp "$work/rust" - || return 1
    "$work/decide-cpp" "$2" <"$1" | cmp "$work/rust" - || return 1
    TOLLBAR_RULES_LIBRARY="$build/libtollbar-rules.so" PYTHONPATH="$work/python" python3 ffi-tests/rules/decide.py "$2" <"$1" | cmp "$work/rust" - || return 1
    TOLLBAR_RULES_LIBRARY="$build/libtollbar-rules.so" LUA_PATH="bindings/lua/?.lua;;" "$luajit" ffi-tests/rules/decide.lua "$2" <"$1" | cmp "$work/rust" - || return 1
    "$work/decide-go" "$2" <"$1" | cmp "$work/rust" -
}
by_command() {
    "$build/tollbar" replay --rules "$2" --reorder 0 --decisions "$work/command" "$1" >/dev/null && python3 ffi-tests/rules/sites.py compare "$3" "$4" <"$work/command"
}
for rules in examples/rules/sites/*; do
    cases=${rules%.*}.cases.toml number=0
    [ "${rules%.cases.toml}" = "$rules" ] || continue
    while python3 ffi-tests/rules/sites.py requests "$cases" "$number" >"$work/site" && [ -s "$work/site" ]; do
        check "$cases: case $number" site "$work/site" "$rules" "$cases" "$number"
        python3 ffi-tests/rules/sites.py log "$cases" "$number" >"$work/site.log"
        [ ! -s "$work/site.log" ] || [ ! -x "$build/tollbar" ] || check "$cases: case $number, a log" by_command "$work/site.log" "$rules" "$cases" "$number"
        number=$((number + 1))
    done
    check "$cases: cases" test "$number" -gt 0
    [ ! -x "$build/tollbar" ] || check "$cases: the command" "$build/tollbar" rules test "$rules" "$cases"
done
check 'one decision in each face, bans, lists, calendars and classes' faces "$work/every" ffi-tests/rules/more.toml
for rule in daily classed; do
    check "ffi-tests/rules/more.toml: $rule refuses" grep -q "^1 429 $rule" "$work/rust"
done
# A month begins in Berlin between the second and the third line, at a time of UTC that a log of
# 2015 has, too.
calendar_of_log() {
    printf 'version = 1\n[group.a]\nlimit = "1/month zone Europe/Berlin"\n' >"$work/calendar.toml"
    for year in 2015 2026; do
        for time in "31/Mar/$year:23:59:58 +0200" "31/Mar/$year:23:59:59 +0200" "01/Apr/$year:00:00:00 +0200" "31/Mar/$year:22:00:01 +0000"; do
            printf '192.0.2.1 - - [%s] "GET / HTTP/1.1" 200 1\n' "$time"
        done >"$work/calendar.log"
        "$build/tollbar" replay --rules "$work/calendar.toml" --reorder 0 --decisions "$work/calendar.decisions" "$work/calendar.log" || return 1
        [ "$(cut -c1 "$work/calendar.decisions" | tr -d '\n')" = ADAD ] || return 1
    done
}
[ ! -x "$build/tollbar" ] || check 'the command replays a calendar' calendar_of_log
log=../shared/data/access.log
if [ -f "$log" ]; then
    of_log "$log" 'the log'
    # A log made from it, long enough that most clients meet their limits again and again. The rules
    # of `make soak` have 10^6 lines.
    lines=${TOLLBAR_LINES:-100000}
    python3 ffi-tests/rules/requests.py "$log" "$lines" >"$work/longer.log" || exit 1
    of_log "$work/longer.log" "$lines lines made from the log"
fi

# The stack that each function takes (ffi-tests/c/stack).
compile_stack() {
    sed 's/.*/CALL(&)/' abi/tollbar-rules.symbols >"$work/calls.h" &&
        "${CC:-cc}" -std=c99 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Wundef -Wconversion -Werror -O2 -Iinclude -I"$work" -Itests/c/stack -o "$work/stack" \
            ffi-tests/rules/stack.c ffi-tests/c/stack/main.c -L"$build" -ltollbar-rules -Wl,-rpath,"$build" -lpthread
}
check 'the program of the stack compiles' compile_stack
check 'no call takes more stack than the header says' "$work/stack"

# The alerts and the dashboard name metrics that exist.
metrics_exist() {
    for file in alerts.yml dashboard.json; do
        names=$(grep -v '^#' "examples/metrics/$file" | grep -oE 'tollbar_(rules?|shadow)_[a-z_]+' | sort -u)
        [ -n "$names" ] || return 1
        for name in $names; do grep -q "^$name{" "$work/metrics-rust" || return 1; done
    done
}
check 'alerts and dashboard: metrics of rules' metrics_exist

head -n 300 "$work/every" >"$work/some"
if command -v valgrind >/dev/null; then
    check 'valgrind finds nothing' sh -c "valgrind --quiet --error-exitcode=9 --leak-check=full '$work/decide' examples/rules/site.toml '$work/metrics-valgrind' <'$work/some'"
fi
installed() {
    tools/install.sh "$work/stage" /usr /usr/lib /usr/include "$build" 0.1.0 1 || return 1
    export PKG_CONFIG_PATH="$work/stage/usr/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$work/stage"
    # shellcheck disable=SC2046
    "${CC:-cc}" -std=c99 -o "$work/installed" ffi-tests/rules/decide.c $(PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 pkg-config --cflags --libs tollbar-rules) || return 1
    LD_LIBRARY_PATH="$work/stage/usr/lib" "$work/installed" examples/rules/site.toml <"$work/some" | cmp - "$work/some.rust"
}
"$rust" examples/rules/site.toml <"$work/some" >"$work/some.rust"
check 'installed, by pkg-config' installed
python_faults() {
    printf 'version = 1\n[group.a]\nlimit = "2/h"\n' >"$work/rules.toml"
    TOLLBAR_RULES_LIBRARY="$build/libtollbar-rules.so" PYTHONPATH="$work/python" python3 - "$work/rules.toml" <<'PYTHON'
import os, pathlib, sys
from tollbar.rules import Rules, RulesError

path = pathlib.Path(sys.argv[1])
rules = Rules(path)
request = {":path": "/", ":address": b"192.0.2.1"}
assert [rules.check(request).allowed for _ in range(3)] == [True, True, False]
refused = rules.check(request)
assert (refused.status, refused.rule, refused.body, refused.generation) == (429, "a", "", 1) and 0 < refused.retry_after < 3600
assert not rules.reload_if_changed()
path.write_text('version = 1\n[group.a]\nlimit = "2/y"\n')
for call in rules.reload_if_changed, rules.reload:
    try:
        call()
    except RulesError as error:
        assert str(error).startswith(f"{path}:3:"), error
    else:
        raise AssertionError("a file with a fault")
assert not rules.check(request).allowed
path.write_text('version = 1\n[group.a]\nlimit = "3/h"\n[group.b]\npath = "/b"\nlimit = "1/h"\n')
assert rules.reload_if_changed() and rules.check(request).generation == 2
assert rules.now_ns() > 0
rules.close()
try:
    rules.check(request)
except RulesError as error:
    assert "closed" in str(error)
else:
    raise AssertionError("closed rules")
PYTHON
}
check 'Python: reloads and faults' python_faults
# A reload changes the algorithm in rules with room.
room_c() {
    "${CC:-cc}" -std=c99 -Wall -Wextra -Wpedantic -Wundef -Wconversion -Werror -O1 -Iinclude -o "$work/room" ffi-tests/rules/room.c \
        -L"$build" -ltollbar-rules -Wl,-rpath,"$build" && "$work/room" "$work/room.toml"
}
check 'room: C' room_c
export TOLLBAR_RULES_LIBRARY="$build/libtollbar-rules.so"
check 'room: Python' env PYTHONPATH="$work/python" python3 ffi-tests/rules/room.py "$work/room.toml"
check 'room: LuaJIT' env LUA_PATH="bindings/lua/?.lua;;" "$luajit" ffi-tests/rules/room.lua "$work/room.toml"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
