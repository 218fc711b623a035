#!/bin/sh
# run.sh BUILD-DIRECTORY: processes of C, Python, Go with cgo and with purego, and LuaJIT use one
# named table at the same time, and are killed at random; others hold permits in flight. `make lib`
# must have built the library in the directory. The last line is `N passed, N failed`.
set -eu
build=$(cd "${1:?the build directory}" && pwd)
together=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$together/../.." && pwd)
work=$build/together
mkdir -p "$work"

"${CC:-cc}" -std=c99 -O2 -Wall -Wextra -Werror -I"$root/include" -o "$work/hammer" "$together/hammer.c" "$build/libtollbar.a"
"${CC:-cc}" -std=c99 -O2 -Wall -Wextra -Werror -I"$root/include" -o "$work/holder" "$together/holder.c" "$build/libtollbar.a"
"$root/bindings/python/install.sh"
here=$root/bindings/go
# shellcheck source=../../bindings/go/env.sh
. "$here/env.sh"
for program in gohammer goholder; do
    (cd "$together/$program" && go vet . && go build -o "$work/$program" . &&
        env CGO_ENABLED=0 CC=/nonexistent go build -tags tollbar_purego -o "$work/$program-purego" .)
done
export TOLLBAR_LIBRARY="$build/libtollbar.so"
here=$root/bindings/lua
# shellcheck source=../../bindings/lua/find.sh
. "$here/find.sh"

python=$root/build/python/bin/python
"$python" "$together/in_flight.py" "c=$work/holder" "python=$python $together/holder.py" "go=$work/goholder" "go-purego=$work/goholder-purego"
exec "$python" "$together/driver.py" "c=$work/hammer" "python=$python $together/hammer.py" "go=$work/gohammer" \
    "go-purego=$work/gohammer-purego" "lua=$luajit $together/hammer.lua"
