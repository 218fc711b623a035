# shellcheck shell=sh
# The tests under the compilers' sanitizers. Sourced.
target=x86_64-unknown-linux-gnu

# SANITIZER: builds both libraries as one instrumented archive with std, $work/$1.a. The flag that
# lets a stable compiler do so is meant for the compiler's own build. No shipped library is built
# with it.
instrumented_library() {
    (
        cd "$root" &&
            RUSTC_BOOTSTRAP=1 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=1 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
                RUSTFLAGS="-Zsanitizer=$1 -Cunsafe-allow-abi-mismatch=sanitizer" \
                cargo rustc --quiet --package tollbar-redis-c --release --lib --crate-type staticlib --features std \
                --target $target --target-dir "$build/cargo-$1"
    ) || return 1
    cp "$build/cargo-$1/$target/release/libtollbar_redis_c.a" "$work/$1.a"
}

# Both sides instrumented, and the allocations of the shipped archive. In `make soak ONLY=memory`
# all tests run with the shipped archive, too, where the sanitizer sees the library's heap blocks
# and its accesses through libc (memcpy, strlen).
under_address_sanitizer() {
    asan="-O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"
    mkdir -p "$work/asan"
    if [ -n "${TOLLBAR_SOAK:-}" ]; then
        check "compile: gcc address,undefined, archive" compile_tests asan "gcc $asan" "$build/libtollbar.a" "$build/libtollbar-redis.a"
        run_tests "address,undefined of C" asan
    fi
    check "compile: allocations, address,undefined" compile_alloc asan "gcc $asan"
    suite "address,undefined of C: alloc_test" "$work/asan/alloc_test"
    check "build: library with address sanitizer" instrumented_library address
    check "compile: gcc address,undefined, instrumented library" \
        compile_tests asan-both "gcc $asan" "$work/address.a -ldl -lm" ""
    run_tests "address of both sides" asan-both
}

# PROGRAM FLAG: builds the program and the library instrumented. It links the Rust compiler's
# run-time, because gcc's older one lacks symbols that the instrumented library needs.
link_threads() {
    runtime=$(find "$(rustc --print target-libdir)" -name 'librustc*_rt.tsan.a') && [ -n "$runtime" ] || return 1
    for part in "$1" redis; do
        # shellcheck disable=SC2086
        gcc $c99 "$2" -O1 -fsanitize=thread -c -o "$work/$part.o" "$here/$part.c" || return 1
    done
    gcc -o "$work/$1-tsan" "$work/$1.o" "$work/redis.o" "$work/thread.a" -Wl,--whole-archive "$runtime" \
        -Wl,--no-whole-archive -Wl,--export-dynamic -lpthread -ldl -lm -lrt
}

sees_planted_race() {
    link_threads threads -DPLANT_RACE || return 1
    # 66 is the sanitizer's exit code for "reported".
    code=0
    setarch -R "$work/threads-tsan" > "$work/planted" 2>&1 || code=$?
    [ $code -eq 66 ] && grep -q 'data race' "$work/planted"
}

# It runs without address randomisation, because the sanitizer's shadow memory needs fixed
# addresses.
under_thread_sanitizer() {
    check "build: library with thread sanitizer" instrumented_library thread
    check "thread sanitizer reports a planted race" sees_planted_race
    # shellcheck disable=SC2154
    for t in $threaded $redis_threaded; do
        check "compile: $t, both sides with thread sanitizer" link_threads "$t" -DNO_RACE
        suite "thread sanitizer of both sides: $t" setarch -R "$work/$t-tsan"
    done
}
