#!/bin/sh
# `make test`: everything, in the order in which a fault is cheapest to find (tools/steps.sh runs and counts the steps).
# `make test ONLY="lint rust"` runs those steps.
# `make check`: what a contributor runs every few minutes. It sets TOLLBAR_QUICK, by which searches make a tenth of their rounds, loom tries
# one preemption a thread, and the C tests run once, and chooses lint, header, rust, c and loom.
set -u
cd "$(dirname "$0")/.."
logs=build/test-logs
steps=$(sed -n 's/^step \([a-z]*\) .*/\1/p' tools/test.sh | tr '\n' ' ')
. tools/steps.sh
begin_steps
tools/setup.sh test || exit 1

. tools/rust.sh
lint() {
    cargo fmt --all --check && echo "1 passed, 0 failed" &&
        cargo clippy --quiet --workspace --all-targets -- -D warnings && echo "1 passed, 0 failed" &&
        cargo clippy --quiet --package tollbar-redis-c --lib --profile capi --features freestanding -- -D warnings && echo "1 passed, 0 failed" &&
        RUSTFLAGS="--cfg loom" cargo clippy --quiet --package tollbar --test loom --target-dir target/loom -- -D warnings &&
        RUSTFLAGS="--cfg loom" cargo clippy --quiet --package tollbar-redis --lib --profile test --target-dir target/loom -- -D warnings &&
        echo "1 passed, 0 failed" &&
        RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps --lib && echo "1 passed, 0 failed"
}
rust() {
    cargo test --package tollbar --package tollbar-c --no-fail-fast --lib --tests
    one=$?
    cargo test --package tollbar --no-fail-fast --doc && [ $one -eq 0 ]
}
# The C library with overflow checks, and the C tests against it: arithmetic that wraps ends the test. (The Rust tests are built
# with these checks anyway: `overflow_is_checked` in tests/end_of_time.rs.)
overflow() {
    CARGO_PROFILE_CAPI_OVERFLOW_CHECKS=true make --silent lib B=build/overflow || return 1
    # All overflows end in one function: the linker merges them, since the library's panic handler tells no message.
    nm build/overflow/libtollbar-named.so | grep -q panic_const && echo "1 passed, 0 failed" || return 1
    tests/c/run.sh build/overflow libraries
}
# Limits in Redis, against real servers that the tests start and stop, and in simulation.
redis() {
    cargo test --package tollbar-redis --no-fail-fast
}
loom() {
    [ -z "${TOLLBAR_QUICK:-}" ] || export LOOM_MAX_PREEMPTIONS=1
    RUSTFLAGS="--cfg loom" \
        cargo test --release --target-dir target/loom --package tollbar --test loom &&
        RUSTFLAGS="--cfg loom" cargo test --release --target-dir target/loom --package tollbar --package tollbar-redis --lib models
}
tsan() { crates/tollbar/tests/tsan.sh; }
# The runner itself, and what is said where something is missing.
runner() { tests/steps.sh && tests/setup.sh; }
# What others get who name this crate among their dependencies.
dependent() { tests/dependent.sh; }
# The header, and what is generated from it.
header() {
    cargo xtask header --check && echo "1 passed, 0 failed" &&
        cargo xtask lists --check && echo "1 passed, 0 failed" &&
        cargo xtask cdef --check && echo "1 passed, 0 failed"
}
# That each case of the benches works; figures are for `make bench`.
bench() {
    make --silent lib || return 1
    export TOLLBAR_LIBRARY="$PWD/build/libtollbar.so"
    cargo bench --package tollbar --bench ratios -- --smoke && echo "1 passed, 0 failed" &&
        cargo bench --package tollbar --bench trends -- --test && echo "1 passed, 0 failed" &&
        cargo run --quiet --release --package tollbar-leases --target-dir target/peers -- --smoke && echo "1 passed, 0 failed" &&
        PATH=$PATH:/usr/local/go/bin tools/bench-peers.sh --smoke
}
# What the hot calls cost in instructions, beside what they cost before.
instructions() { tools/instructions.sh; }
# The README's C programs, as a reader would take them.
readme() {
    make --silent lib || return 1
    # The table's name is another for each run, since two runs of one machine would meet in it.
    logins=/dev/shm/readme-logins-$$
    rm -f build/readme?.c "$logins"
    awk -v logins="$logins" '/^```c$/ { on = 1; n++; next } /^```$/ { on = 0 }
        on { gsub("/run/logins/table", logins); print > "build/readme" n ".c" }' README.md
    for n in 1 2; do
        cc -std=c99 -Wall -Wextra -Wpedantic -Werror -Iinclude -o "build/readme$n" "build/readme$n.c" build/libtollbar.a || return 1
    done
    build/readme1 >build/readme1.out || return 1
    cat build/readme1.out
    test "$(grep -c passes build/readme1.out)" -eq 3 && test "$(grep -c again build/readme1.out)" -eq 2 || return 1
    echo "1 passed, 0 failed"
    # The size that it tells is the library's, to 5 %.
    told=$(sed -n 's/.*`libtollbar.so` is \([0-9]*\) KB.*/\1/p' README.md)
    bytes=$(wc -c <build/libtollbar.so)
    echo "README: libtollbar.so is ${told:-no} KB; expected: within 5 % of its $bytes bytes"
    [ $((${told:-0} * 20000)) -ge $((bytes * 19)) ] && [ $((${told:-0} * 20000)) -le $((bytes * 21)) ] || return 1
    echo "1 passed, 0 failed"
    # Two processes at once, one table.
    build/readme2 >build/readme2a.out &
    build/readme2 >build/readme2b.out
    status=$?
    wait $! && [ $status -eq 0 ] || return 1
    rm -f "$logins"
    test "$(cat build/readme2?.out | grep -c passes)" -eq 3 && test "$(cat build/readme2?.out | grep -c refused)" -eq 3 &&
        echo "1 passed, 0 failed"
}
c() { make --silent lib && tests/c/run.sh build ${TOLLBAR_QUICK:+libraries}; }
cpp() { make --silent lib && tests/cpp/run.sh build; }
replay() { make --silent lib build/tollbar-replay && programs/replay/test.sh build; }
# The modules in a real nginx.
nginx() { make --silent nginx && nginx/tests/run.sh; }
python() { bindings/python/test.sh; }
go_package() { make --silent lib && PATH=$PATH:/usr/local/go/bin bindings/go/test.sh; }
lua() { make --silent lib && bindings/lua/test.sh; }
together() { make --silent lib && PATH=$PATH:/usr/local/go/bin tests/together/run.sh build; }

step runner runner
step lint lint
step header header
step rust rust
step dependent dependent
step redis redis
step loom loom
step tsan tsan
step c c
step overflow overflow
step cpp cpp
step replay replay
step nginx nginx
step python python
step go go_package
step lua lua
step together together
step readme readme
step counts instructions
step bench bench

end_steps
