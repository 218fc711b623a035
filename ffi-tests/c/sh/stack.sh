# shellcheck shell=sh
# E8: how much stack each exported function takes: the program of ffi-tests/c/stack. Sourced. Not
# under valgrind or a sanitizer, which use the stack themselves.

# LISTS...: a line CALL(name) for each function of these lists of symbols, without the guard of the
# ABI, which is a variable.
calls_of() {
    mkdir -p "$work/stack"
    sed -n '/_abi_1$/d; s/.*/CALL(&)/p' "$@" > "$work/stack/calls.h"
}

# COMPILER-AND-FLAGS LIBRARIES: a function of the lists without a case is undefined for the linker,
# and a case of no function is a warning.
compile_stack() {
    calls_of "$root/abi/tollbar.symbols" "$root/abi/tollbar-redis.symbols" || return 1
    # shellcheck disable=SC2086
    $1 $c99 -D_GNU_SOURCE -I"$work/stack" -I"$here" -o "$work/stack/stack" "$here"/stack/*.c "$here/redis.c" $2 -lpthread
}

# Both forms of the libraries: a shared library's first call of each function of libc looks that
# function up, on the caller's stack.
stack_of_calls() {
    check "compile: stack, shared libraries" compile_stack "gcc -O2" "-L$build -ltollbar -ltollbar-redis -Wl,-rpath,$build"
    suite "shared libraries: stack" "$work/stack/stack"
    check "compile: stack, archives" compile_stack "gcc -O2" "$build/libtollbar-redis.a $build/libtollbar.a"
    suite "archives: stack" "$work/stack/stack"
}
