#!/bin/sh
# A crate that depends on tollbar, and on tollbar-redis if it is asked to (ffi-tests/dependent), is
# built and run with and without tollbar's default features, and built for two targets without an
# operating system. tollbar-redis and tollbar-c need a Unix, and say so there, and tollbar itself
# says so where atomics of 64 bits are missing.
set -u
cd "$(dirname "$0")/.."
work=$PWD/build/dependent
bare=x86_64-unknown-none arm=aarch64-unknown-none thumb=thumbv7em-none-eabihf
mkdir -p "$work"
. ffi-tests/c/sh/check.sh
log=$work/log
tools/setup.sh dependent || { echo "0 passed, 1 failed" && exit 1; }
# Two directories below the checkout, as ffi-tests/dependent is; the versions are those of the
# checkout's own lock file.
cp -r ffi-tests/dependent/Cargo.toml ffi-tests/dependent/src Cargo.lock "$work"

# ARGUMENTS for cargo: the program comes to its end.
runs() { (cd "$work" && cargo run --quiet --target-dir target "$@") | grep -x decided; }
# TARGET, ARGUMENTS for cargo.
builds_bare() { (cd "$work" && cargo build --quiet --target-dir target --lib --target "$@"); }
# TARGET CRATE NEED: that the crate needs this is among the errors. Others may come before it, of
# crates that it uses.
refused_bare() {
    cargo build --quiet --package "$2" --target-dir "$work/target" --lib --no-default-features --target "$1" >"$work/refused" 2>&1 && return 1
    grep "^error: $2 needs $3" "$work/refused"
}

check "a dependent with tollbar's default features" runs --features std
check "a dependent without" runs
check "a dependent without, optimized" runs --release
check "a dependent without, with tollbar-redis" runs --features redis
check "a dependent with both" runs --features std,redis
check "a dependent on $bare" builds_bare $bare
check "a dependent on $arm, optimized" builds_bare $arm --release
check "tollbar-redis on $bare is refused by name" refused_bare $bare tollbar-redis "a Unix"
check "tollbar-c on $bare is refused by name" refused_bare $bare tollbar-c "a Unix"
check "tollbar on $thumb is refused by name" refused_bare $thumb tollbar "atomics of 64 bits"
finish
