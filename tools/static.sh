#!/bin/sh
# static.sh BUILD [ARCHITECTURE...]: the command as one file that needs no library, for any Linux of that architecture: x86_64 or
# aarch64, both without arguments. Into BUILD/static/ARCHITECTURE. rustc has the C library (musl) and the linker for both.
set -eu
build=${1:?usage: static.sh BUILD [ARCHITECTURE...]}
shift
cd "$(dirname "$0")/.."
. tools/rust.sh
for architecture in ${*:-x86_64 aarch64}; do
    case $architecture in
    x86_64 | aarch64) ;;
    *) echo "static.sh: found $architecture; expected: x86_64 or aarch64" >&2 && exit 2 ;;
    esac
    target=$architecture-unknown-linux-musl
    [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || rustup --quiet target add "$target" || {
        echo "missing: Rust's library for $target; expected: rustup target add $target" >&2
        exit 1
    }
    name=$(echo "$target" | tr 'a-z-' 'A-Z_')
    env "CARGO_TARGET_${name}_LINKER=rust-lld" tools/cli.sh "$build/static/$architecture" "$target"
done
