#!/bin/sh
# The tests of the C face: run.sh BUILD-DIRECTORY [STEP...], where `make lib` has built the
# libraries. Steps: header shared archives stack valgrind address thread artefacts installed demo tls.
# Without a step it runs all. TOLLBAR_SOAK=1: the long forms of valgrind and address.
#
# It prints one line for each check, and the sum at the end: `N passed, N failed`.
set -u
build=$(cd "${1:?the build directory}" && pwd) || exit 1
shift
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$build/c-tests
mkdir -p "$work"
unset RUSTFLAGS CFLAGS CXXFLAGS LDFLAGS

. "$here/sh/check.sh"
. "$here/sh/header.sh"
. "$here/sh/programs.sh"
. "$here/sh/stack.sh"
. "$here/sh/sanitizers.sh"
. "$here/sh/artefacts.sh"
. "$here/sh/installed.sh"
. "$here/sh/tls.sh"
. "$here/sh/demo.sh"
log=$work/log

need cargo "rustup (or cargo)"
need gcc gcc
need g++ g++
need clang clang
need valgrind valgrind
need abidw abigail-tools
need abidiff abigail-tools
need musl-gcc musl-tools
need pkg-config pkg-config
need readelf binutils
need setarch util-linux
need redis-server redis-server
need openssl openssl
need make make
gcc -std=c99 -I"$root/include" -fsyntax-only "$here/test.c" 2> /dev/null ||
    missing cmocka.h libcmocka-dev
echo '#include <openssl/ssl.h>' | gcc -fsyntax-only -xc - 2> /dev/null || missing openssl/ssl.h libssl-dev
for file in libtollbar.so libtollbar.a libtollbar-named.so libtollbar-redis.so libtollbar-redis.a libtollbar-redis-named.so; do
    [ -f "$build/$file" ] || missing "$build/$file" "(none: run make lib)"
done
if [ "$failed" -ne 0 ]; then
    finish
    exit 1
fi

[ $# -ne 0 ] || set -- header shared archives stack valgrind address thread artefacts installed demo tls
for step in "$@"; do
    case $step in
    header) header_matrix ;;
    shared) against_shared_libraries ;;
    archives) against_archives ;;
    stack) stack_of_calls ;;
    valgrind)
        [ -x "$work/so/all_test" ] || against_shared_libraries
        under_valgrind
        ;;
    address) under_address_sanitizer ;;
    thread) under_thread_sanitizer ;;
    artefacts) artefacts ;;
    installed) installed ;;
    demo) demo ;;
    tls) openssl_by_tls ;;
    *) check "a step named $step" false ;;
    esac
done
finish
