#!/bin/sh
# run.sh BUILD-DIRECTORY: one address is one key, whichever language makes it, and however a server
# or a proxy writes the address. A program of each language visits one table (visit.c). `make lib`
# must have built the library in the directory. The last line is `N passed, N failed`.
set -eu
build=$(cd "${1:?the build directory}" && pwd)
addresses=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$addresses/../.." && pwd)
work=$build/addresses
jna=${JNA:-/usr/share/java/jna.jar}
mkdir -p "$work/classes" "$work/node"
export TOLLBAR_LIBRARY="$build/libtollbar.so"

"${CC:-cc}" -std=c99 -O1 -Wall -Wextra -Werror -I"$root/include" -o "$work/visit-c" "$addresses/visit.c" "$build/libtollbar.a"
"${CXX:-c++}" -std=c++17 -O1 -Wall -Wextra -Werror -I"$root/include" -o "$work/visit-cpp" "$addresses/visit.cpp" "$build/libtollbar.a"
(cd "$root" && . tools/rust.sh && cargo build --quiet --package tollbar --example visit)
"$root/bindings/python/install.sh"
here=$root/bindings/go
# shellcheck source=../../bindings/go/env.sh
. "$here/env.sh"
(cd "$addresses/govisit" && go vet . && go build -o "$work/visit-go" . && env CGO_ENABLED=0 CC=/nonexistent go build -tags tollbar_purego -o "$work/visit-go-purego" .)
here=$root/bindings/lua
# shellcheck source=../../bindings/lua/find.sh
. "$here/find.sh"
# shellcheck source=../ffi/koffi.sh
. "$root/ffi-tests/ffi/koffi.sh"
fetched
cp "$root/bindings/node/tollbar.js" "$work/node"
ln -sfn "$modules/node_modules" "$work/node/node_modules"
javac -Xlint:all -Werror -d "$work/classes" -cp "$jna" "$root/bindings/java/tollbar/Table.java" "$addresses/Visit.java"

exec python3 "$addresses/matrix.py" "rust=${CARGO_TARGET_DIR:-$root/target}/debug/examples/visit" "c=$work/visit-c" "c++=$work/visit-cpp" "python=$root/build/python/bin/python $addresses/visit.py" \
    "go=$work/visit-go" "go-purego=$work/visit-go-purego" "lua=$luajit $addresses/visit.lua" "node=node $addresses/visit.js $work/node/tollbar.js" \
    "php=php -d ffi.enable=1 $addresses/visit.php" "java=java -cp $work/classes:$jna Visit"
