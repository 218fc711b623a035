#!/bin/sh
# The tests of the C++ header and of the packages: run.sh BUILD-DIRECTORY [STEP...], where
# `make lib` has built the libraries. Steps: header libraries valgrind address thread bench example
# installed; all of them unless said.
#
# One line for each check, and the sum at the end: `N passed, N failed`.
set -u
build=$(cd "${1:?the build directory}" && pwd) || exit 1
shift
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$build/cpp-tests
mkdir -p "$work"
unset RUSTFLAGS CFLAGS CXXFLAGS LDFLAGS DESTDIR

. "$root/ffi-tests/c/sh/check.sh"
. "$root/ffi-tests/c/sh/header.sh"
. "$root/ffi-tests/c/sh/sanitizers.sh"
. "$here/sh/header.sh"
. "$here/sh/programs.sh"
. "$here/sh/packages.sh"
log=$work/log

need cargo "rustup (or cargo)"
need gcc gcc
need g++ g++
need clang++ clang
need valgrind valgrind
need cmake cmake
need pkg-config pkg-config
need readelf binutils
need setarch util-linux
need make make
need redis-server redis-server
for file in libtollbar.so libtollbar.a libtollbar-redis.so libtollbar-redis.a libtollbar-rules.so; do
    [ -f "$build/$file" ] || missing "$build/$file" "(none: run make lib rules)"
done
if [ "$failed" -ne 0 ]; then
    finish
    exit 1
fi

[ $# -ne 0 ] || set -- header libraries valgrind address thread bench example installed
for step in "$@"; do
    case $step in
    header) cpp_header ;;
    libraries) cpp_against_libraries ;;
    valgrind) cpp_under_valgrind ;;
    address) cpp_under_address_sanitizer ;;
    thread) cpp_under_thread_sanitizer ;;
    bench) measure "the bench runs: check_many" "$here/bench.sh" "$build" ;;
    example) cpp_example ;;
    installed) packages ;;
    *) check "a step named $step" false ;;
    esac
done
finish
