#!/bin/sh
# `make soak`: the long forms of tests, hours in all. ONLY="storm flood" chooses among them:
#   storm     a thousand kills on each kind of shared table
#   flood     10^8 keys through a million slots
#   redis     ten seconds of each fault beside a real Redis
#   clock     twenty of each step of a real Redis's clock
#   searches  all rounds of the searches, of which `make test` makes a tenth
#   memory    all C tests under valgrind, and with the shipped archives under the address sanitizer; `make test` has some of the first
#   nginx     the tests of limit_req on nginx's own module, too, and each wrong configuration under valgrind; `make test` tries every eighth
#   loom      the models with as many preemptions as they name; `make test` tries at most two, and fewer in the longest
#   orderings each atomic ordering of the core weakened, until a model fails, and each fault of tools/faults.toml planted
#             (tools/orderings.py); it goes on where it stopped, and ORDERINGS=src/queue chooses files; tools/orderings.txt has the results
#   bounds    how far each loom model goes, and what it costs (tools/bounds.py), into docs/internals/model-bounds.md; it goes on where
#             it stopped
#   solver    the arithmetic of the usual steps, for all inputs, by z3
#   leases    a million schedules of leases in virtual time, as many with steps of the store's clock, and as many with machines that disagree;
#             every state of a world of two machines (crates/tollbar-redis/model); a fleet of 10,000 machines
#   pingora   the example of a pingora proxy
#   rules     a log of 10^6 lines by a rules file, through every face and the command; what 100,000 customers cost to load and to reload
#   benches   `cargo bench`, `make bench`, criterion's cases and `make bench-peers` to their ends at full size; the page is written to
#             build/soak-logs/docs
#   mutants   the sources changed place by place (tools/mutants.py), whose survivors are in build/mutants/survivors; it goes on where it
#             stopped, and MUTANTS_SECONDS=3600 stops it
set -u
cd "$(dirname "$0")/.."
self=$PWD/tools/soak.sh
logs=build/soak-logs
steps="storm flood searches memory nginx redis clock loom orderings bounds solver leases pingora rules benches mutants"
. tools/steps.sh
begin_steps "$@"
is_lane || tools/setup.sh soak || exit 1
. tools/rust.sh

step_storm() { TOLLBAR_SOAK=1000 cargo test --release --package tollbar --test table_storm -- --nocapture; }
step_flood() { TOLLBAR_LONG=1 cargo test --release --package tollbar --test table_flood -- --nocapture; }
step_searches() { TOLLBAR_SEARCH=all cargo test --release --package tollbar --no-fail-fast --lib --tests; }
step_memory() { make --silent lib && TOLLBAR_SOAK=1 ffi-tests/c/run.sh build valgrind address; }
step_nginx() { make --silent nginx rules build/tollbar && TOLLBAR_SOAK=1 nginx/tests/run.sh; }
step_redis() { TOLLBAR_SOAK=1 cargo test --release --package tollbar-redis --test redis_lease -- --nocapture --test-threads 1; }
step_clock() { TOLLBAR_SOAK=1 cargo test --release --package tollbar-redis --test redis_clock -- --nocapture --test-threads 1; }
step_loom() { TOLLBAR_SOAK=1 ONLY=loom tools/test.sh; }
step_orderings() { tools/orderings.py; }
step_bounds() { tools/bounds.py; }
step_solver() { tests/solver/run.sh build; }
step_leases() {
    TOLLBAR_SCHEDULES=1000000 cargo test --release --package tollbar-redis --test lease_simulation --test lease_terms --test lease_fleets -- --nocapture
    one=$?
    TOLLBAR_MODEL=large cargo test --release --package tollbar-redis-model --test leases -- --nocapture --test-threads 1 && [ $one -eq 0 ]
}
step_pingora() { cargo test --locked --manifest-path examples/rust/Cargo.toml --target-dir build/examples-rust --package tollbar-example-pingora; }
step_rules() {
    cargo test --release --package tollbar-rules --test rules customers -- --nocapture &&
        make --silent lib rules build/tollbar && TOLLBAR_LINES=1000000 PATH=$PATH:/usr/local/go/bin ffi-tests/rules/run.sh build
}
step_benches() {
    cargo clippy --quiet --package tollbar-peers --package tollbar-leases --package tollbar-trends --all-targets -- -D warnings && echo "1 passed, 0 failed" &&
        cargo bench && echo "1 passed, 0 failed" &&
        tools/bench.sh && echo "1 passed, 0 failed" &&
        cargo run --quiet --release --package tollbar-trends --target-dir target/peers -- --test && echo "1 passed, 0 failed" &&
        PATH=$PATH:/usr/local/go/bin tools/bench-peers.sh --to "$logs/docs"
}
step_mutants() { tools/mutants.py; }

# One after the other, since each keeps all processors busy.
run_steps "$steps"
