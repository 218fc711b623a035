#!/bin/sh
# `make test`: everything (tools/steps.sh runs and counts the steps). `make test ONLY="lint rust"`
# runs those steps. `make check`: what a contributor runs every few minutes. It sets TOLLBAR_QUICK,
# by which loom tries one preemption a thread and the C tests run once, and chooses lint, header,
# rust, c and loom. The long forms are in tools/soak.sh.
set -u
cd "$(dirname "$0")/.."
self=$PWD/tools/test.sh
logs=build/test-logs
# Where a fault is cheapest to find.
first="lint header"
# Three lanes on two processors: the nginx tests wait half of their time. Steps that install the
# Python package into build/python are in one lane, and so are c and overflow, whose tests have the
# same names in /dev/shm. A lane that ends early takes steps from the end of the last lane, the
# packages first, which wait for a clean system.
waits="nginx c overflow lua service ffi"
links="python together addresses redis bench counts command rules"
works="rust go cpp dependent runner readme examples tsan loom packages"
steps="$first $waits $links $works"
. tools/steps.sh
# Six times what the longest step takes on two processors, which may be busy or slow.
seconds_of_a_step=3600
begin_steps "$@"
is_lane || tools/setup.sh test || exit 1

. tools/rust.sh
# What later compilations could take from this one costs a fifth of it. Where nobody has compiled by
# hand, none will come.
[ -d target/debug/incremental ] || export CARGO_INCREMENTAL=0
# TARGET...: made by one lane, while another that wants it waits: two makes of one library would
# write the same files.
made() { mkdir -p build && flock build/made make --silent "$@"; }
# The benches beside peers and a Redis, and criterion's, have a hundred crates of their own:
# `make soak ONLY=benches`, and a job of test.yml.
beside_peers="--exclude tollbar-peers --exclude tollbar-leases --exclude tollbar-trends"
# shellcheck disable=SC2086
step_lint() {
    cargo fmt --all --check && echo "1 passed, 0 failed" &&
        tools/orderings.py --check && tools/bounds.py --check &&
        cargo clippy --quiet --workspace $beside_peers --all-targets -- -D warnings && echo "1 passed, 0 failed" &&
        cargo clippy --quiet --package tollbar-redis-c --lib --profile capi --features freestanding -- -D warnings && echo "1 passed, 0 failed" &&
        RUSTFLAGS="--cfg loom" cargo clippy --quiet --package tollbar --test loom --target-dir target/loom -- -D warnings &&
        RUSTFLAGS="--cfg loom" cargo clippy --quiet --package tollbar-redis --lib --profile test --target-dir target/loom -- -D warnings &&
        echo "1 passed, 0 failed" &&
        RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps --lib && echo "1 passed, 0 failed"
}
# The packages of the steps rust and redis. Both name all of them, so that they choose one set of
# features, and each crate is compiled once.
rust_packages="--package tollbar --package tollbar-c --package tollbar-redis --package tollbar-rules --package tollbar-tower --package tollbar-cli --features tollbar-redis/rustls --no-fail-fast"
# CRATE...: `--test NAME` for each of their test programs.
tests_of() {
    for crate; do
        tests=crates/$crate/tests
        [ "$crate" != tollbar ] || tests=tests
        for file in "$tests"/*.rs "$tests"/*/main.rs; do
            name=${file#"$tests"/}
            [ ! -f "$file" ] || printf ' --test %s' "${name%/main.rs}" | sed 's/\.rs$//'
        done
    done
}
step_rust() {
    # shellcheck disable=SC2046,SC2086
    cargo test $rust_packages --lib --bins $(tests_of tollbar tollbar-c tollbar-rules tollbar-tower tollbar-cli)
    one=$?
    # Without tollbar-c: rustdoc would take the C code in its comments for Rust. Without the
    # command, which has no documentation's programs.
    # shellcheck disable=SC2046
    cargo test $(echo "$rust_packages" | sed 's/--package tollbar-c //; s/--package tollbar-cli //') --doc && [ $one -eq 0 ]
}
# The C library with overflow checks, and the C tests against it: arithmetic that wraps ends the
# test. (The Rust tests are built with these checks anyway: `overflow_is_checked` in
# tests/algorithm/end_of_time.rs.)
step_overflow() {
    CARGO_PROFILE_CAPI_OVERFLOW_CHECKS=true make --silent lib B=build/overflow || return 1
    # All overflows end in one function: the linker merges them, since the library's panic handler
    # tells no message.
    nm build/overflow/libtollbar-named.so | grep -q panic_const && echo "1 passed, 0 failed" || return 1
    ffi-tests/c/run.sh build/overflow archives
}
# Limits in Redis, against real servers that the tests start and stop, and in simulation.
step_redis() {
    # shellcheck disable=SC2046,SC2086
    cargo test $rust_packages $(tests_of tollbar-redis)
    one=$?
    # Every state of a small world of leases.
    cargo test --package tollbar-redis-model --test leases && [ $one -eq 0 ]
}
step_loom() {
    [ -z "${TOLLBAR_QUICK:-}" ] || export LOOM_MAX_PREEMPTIONS=1
    RUSTFLAGS="--cfg loom" \
        cargo test --profile models --target-dir target/loom --package tollbar --test loom &&
        RUSTFLAGS="--cfg loom" cargo test --profile models --target-dir target/loom --package tollbar --package tollbar-redis --lib models
}
step_tsan() { tests/tsan.sh; }
# The runners of tests and of changed sources, and what is said where something is missing.
step_runner() { ffi-tests/steps.sh && ffi-tests/setup.sh && ffi-tests/mutants.py; }
# What others get who name this crate among their dependencies.
step_dependent() { ffi-tests/dependent.sh; }
# What a user of actix, tonic and reqwest would copy, in a workspace of its own: each program is
# started and asked. pingora compiles for more than a minute: make soak ONLY=pingora.
step_examples() {
    cargo fmt --manifest-path examples/rust/Cargo.toml --all --check && echo "1 passed, 0 failed" &&
        cargo test --locked --manifest-path examples/rust/Cargo.toml --target-dir build/examples-rust --workspace --exclude tollbar-example-pingora --no-fail-fast
}
# The header, and what is generated from it.
step_header() {
    cargo xtask header --check && echo "1 passed, 0 failed" &&
        cargo xtask lists --check && echo "1 passed, 0 failed" &&
        cargo xtask cdef --check && echo "1 passed, 0 failed"
}
# That each case of tollbar's own benches works, in a short form; figures are for `make bench`.
# Those of C++, Go, Python and Lua are in these languages' steps, and those beside peers in
# `make soak ONLY=benches`.
step_bench() {
    made lib || return 1
    # The short form needs no figures, and so no link-time optimization.
    export CARGO_PROFILE_BENCH_LTO=false CARGO_PROFILE_BENCH_CODEGEN_UNITS=16 CARGO_PROFILE_BENCH_OPT_LEVEL=1
    # C14: as in a plain `cargo bench`, which names no C library.
    cargo bench --package tollbar --bench instructions && echo "1 passed, 0 failed" &&
        TOLLBAR_LIBRARY="$PWD/build/libtollbar.so" cargo bench --package tollbar --bench ratios -- --smoke && echo "1 passed, 0 failed"
}
# What the hot calls cost in instructions, beside what they cost before.
step_counts() { made lib && tools/instructions.sh; }
# The documents beside the files, the names that faces have, the alerts, and the C programs of the
# README and of docs/c.md, as a reader would take them.
step_readme() {
    tools/documents.py && tools/names.py --check && examples/metrics/test.sh || return 1
    made lib || return 1
    # The table's name is another for each run, since two runs of one machine would meet in it.
    logins=/dev/shm/readme-logins-$$
    rm -f build/readme?.c "$logins"
    awk -v logins="$logins" '/^```c$/ { on = 1; n++; next } /^```$/ { on = 0 }
        on { gsub("/run/logins/table", logins); print > "build/readme" n ".c" }' README.md docs/c.md
    for n in 1 2 3; do
        cc -std=c99 -Wall -Wextra -Wpedantic -Werror -Iinclude -o "build/readme$n" "build/readme$n.c" build/libtollbar.a || return 1
    done
    for n in 1 2; do
        build/readme$n >build/readme$n.out || return 1
        cat build/readme$n.out
        test "$(grep -c passes build/readme$n.out)" -eq 3 && test "$(grep -c 'again\|refused' build/readme$n.out)" -eq 2 || return 1
        echo "1 passed, 0 failed"
    done
    # The size that it tells is the library's, to 5 %.
    told=$(sed -n 's/.*`libtollbar.so` is \([0-9]*\) KB.*/\1/p' docs/README.md)
    bytes=$(wc -c <build/libtollbar.so)
    echo "docs/README.md: libtollbar.so is ${told:-no} KB; expected: within 5 % of its $bytes bytes"
    [ $((${told:-0} * 20000)) -ge $((bytes * 19)) ] && [ $((${told:-0} * 20000)) -le $((bytes * 21)) ] || return 1
    echo "1 passed, 0 failed"
    # Two processes at once, one table.
    build/readme3 >build/readme3a.out &
    build/readme3 >build/readme3b.out
    status=$?
    wait $! && [ $status -eq 0 ] || return 1
    rm -f "$logins"
    test "$(cat build/readme3?.out | grep -c passes)" -eq 3 && test "$(cat build/readme3?.out | grep -c refused)" -eq 3 &&
        echo "1 passed, 0 failed"
}
step_c() { made lib && ffi-tests/c/run.sh build ${TOLLBAR_QUICK:+archives stack}; }
step_cpp() { made lib rules && ffi-tests/cpp/run.sh build; }
step_command() {
    made build/tollbar && crates/tollbar-cli/test.sh build && tools/site/build.sh build && echo "1 passed, 0 failed" &&
        build/page-venv/bin/python tools/site/search.py build/site
}
# Rules in a file, through every face.
step_rules() { made lib rules build/tollbar && PATH=$PATH:/usr/local/go/bin ffi-tests/rules/run.sh build; }
# The modules in a real nginx.
step_nginx() { made nginx rules build/tollbar && nginx/tests/run.sh; }
step_python() { made lib && bindings/python/test.sh; }
step_go() { made lib rules && PATH=$PATH:/usr/local/go/bin bindings/go/test.sh; }
step_lua() { made lib && bindings/lua/test.sh; }
# What a release has, as far as it takes less than a minute: packaging/short.sh.
step_packages() { made lib && PATH=$PATH:/usr/local/go/bin packaging/short.sh; }
step_ffi() { made lib && ffi-tests/ffi/run.sh build; }
# One address is one key in every language.
step_addresses() { made lib && PATH=$PATH:/usr/local/go/bin ffi-tests/addresses/run.sh build; }
# The example with rules, a lease, a shared table, a queue and metrics, through a browser too.
step_service() { made lib rules && PATH=$PATH:/usr/local/go/bin examples/service/check.py; }
step_together() { made lib && PATH=$PATH:/usr/local/go/bin ffi-tests/together/run.sh build; }

run_steps "$first" "$waits" "$links" "$works"
