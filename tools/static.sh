#!/bin/sh
# static.sh BUILD [ARCHITECTURE...]: the command as one file that needs no library, for any Linux of that architecture: x86_64 or
# aarch64, both without arguments. Into BUILD/static/ARCHITECTURE. Rust has the C library (musl) and the linker for both; the
# compression library in the command is C, and wants a compiler and musl's headers.
set -eu
build=${1:?usage: static.sh BUILD [ARCHITECTURE...]}
shift
cd "$(dirname "$0")/.."
mkdir -p "$build"
build=$(cd "$build" && pwd)
. tools/rust.sh
for architecture in ${*:-x86_64 aarch64}; do
    target=$architecture-unknown-linux-musl
    case $architecture in
    "$(uname -m)")
        tools/setup.sh musl
        compiler=musl-gcc flags=
        ;;
    x86_64 | aarch64)
        tools/setup.sh "cross-$architecture"
        compiler=$architecture-linux-gnu-gcc
        tools/musl.sh "$architecture" "$build/musl-$architecture"
        flags="-nostdinc -isystem $build/musl-$architecture/usr/include/$architecture-linux-musl -isystem $("$compiler" -print-file-name=include)"
        ;;
    *) echo "static.sh: found $architecture; expected: x86_64 or aarch64" >&2 && exit 2 ;;
    esac
    tools/setup.sh "static-$architecture"
    small=$(echo "$target" | tr - _)
    name=$(echo "$small" | tr a-z A-Z)
    env "CARGO_TARGET_${name}_LINKER=rust-lld" "CC_$small=$compiler" "CFLAGS_$small=$flags" tools/cli.sh "$build/static/$architecture" "$target"
done
