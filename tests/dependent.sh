#!/bin/sh
# A crate that depends on tollbar (tests/dependent) is built and run with and without tollbar's default features, and built for
# x86_64-unknown-none, which has no operating system. The features that need a Unix are refused there by name.
set -u
cd "$(dirname "$0")/.."
work=$PWD/build/dependent
bare=x86_64-unknown-none
mkdir -p "$work"
. ffi-tests/c/sh/check.sh
log=$work/log
tools/setup.sh dependent || { echo "0 passed, 1 failed" && exit 1; }
# Two directories below the checkout, as tests/dependent is; the versions are those of the checkout's own lock file.
cp -r tests/dependent/Cargo.toml tests/dependent/src Cargo.lock "$work"

# ARGUMENTS for cargo: the program comes to its end.
runs() { (cd "$work" && cargo run --quiet --target-dir target "$@") | grep -x decided; }
# ARGUMENTS for cargo.
builds_bare() { (cd "$work" && cargo build --quiet --target-dir target --lib --target "$bare" "$@"); }
# FEATURE: why there is none on a bare machine is the first error.
refused_bare() { builds_bare --features "tollbar/$1" 2>&1 | grep -m 1 '^error' | grep 'need a Unix'; }

check "a dependent with tollbar's default features" runs --features std
check "a dependent without" runs
check "a dependent without, optimized" runs --release
check "a dependent without, with redis" runs --features redis
check "a dependent with both" runs --features std,redis
check "a dependent on $bare" builds_bare
check "a dependent on $bare, optimized" builds_bare --release
check "redis on $bare is refused by name" refused_bare redis
check "capi on $bare is refused by name" refused_bare capi
finish
