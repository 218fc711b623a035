#!/bin/sh
# A crate that depends on tollbar, and on tollbar-redis if it is asked to (tests/dependent), is built and run with and without tollbar's default features, and built for
# x86_64-unknown-none, which has no operating system. tollbar-redis and tollbar-c need a Unix, and say so there.
set -u
cd "$(dirname "$0")/.."
work=$PWD/build/dependent
bare=x86_64-unknown-none
mkdir -p "$work"
. tests/c/sh/check.sh
log=$work/log
tools/setup.sh dependent || { echo "0 passed, 1 failed" && exit 1; }
# Two directories below the checkout, as tests/dependent is; the versions are those of the checkout's own lock file.
cp -r tests/dependent/Cargo.toml tests/dependent/src Cargo.lock "$work"

# ARGUMENTS for cargo: the program comes to its end.
runs() { (cd "$work" && cargo run --quiet --target-dir target "$@") | grep -x decided; }
# ARGUMENTS for cargo.
builds_bare() { (cd "$work" && cargo build --quiet --target-dir target --lib --target "$bare" "$@"); }
# CRATE: that it needs a Unix is among the errors. Others come before it, of crates that it uses.
refused_bare() {
    cargo build --quiet --package "$1" --target-dir "$work/target" --lib --no-default-features --target "$bare" >"$work/refused" 2>&1 && return 1
    grep "^error: $1 needs a Unix" "$work/refused"
}

check "a dependent with tollbar's default features" runs --features std
check "a dependent without" runs
check "a dependent without, optimized" runs --release
check "a dependent without, with tollbar-redis" runs --features redis
check "a dependent with both" runs --features std,redis
check "a dependent on $bare" builds_bare
check "a dependent on $bare, optimized" builds_bare --release
check "tollbar-redis on $bare is refused by name" refused_bare tollbar-redis
check "tollbar-c on $bare is refused by name" refused_bare tollbar-c
finish
