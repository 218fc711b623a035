#!/bin/sh
# tollbar beside governor, a mutex and a bare CAS, with one thread to as many as there are
# processors: builds build/bench-cores, runs it, and writes what it measured to
# build/bench-cores.json. Some minutes, on a quiet machine. The program is static: it runs on any
# x86-64 Linux host, without Rust. `--build`: builds it and does not run it.
set -eu
cd "$(dirname "$0")/.."
tools/setup.sh lib
. tools/rust.sh
case $(uname -m) in x86_64) ;; *) echo "bench-cores.sh: found $(uname -m); expected: x86_64, for which its floors are written" >&2 && exit 1 ;; esac
[ -f "$(cc -print-file-name=libc.a)" ] || { echo "bench-cores.sh: found no libc.a; expected: libc6-dev, or on Fedora glibc-static" >&2 && exit 1; }
BUILT_BY=$(rustc --version)
export BUILT_BY
# A target of its own, or the flag would reach the build scripts and the macros, which the compiler
# loads.
target=$(rustc -vV | sed -n 's/^host: //p')
env -u CARGO_ENCODED_RUSTFLAGS RUSTFLAGS='-C target-feature=+crt-static' cargo build --quiet --release --package tollbar-peers \
    --target "$target" --target-dir target/cores
mkdir -p build
cp "target/cores/$target/release/tollbar-peers" build/bench-cores
case "$*" in
--build) ;;
"") build/bench-cores --cores --json build/bench-cores.json ;;
*) echo "bench-cores.sh: found $*; expected: --build, or nothing" >&2 && exit 2 ;;
esac
