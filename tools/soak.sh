#!/bin/sh
# `make soak`: the long forms of tests, hours in all. ONLY="storm flood" chooses among them:
#   storm     a thousand kills on each kind of shared table
#   flood     10^8 keys through a million slots
#   redis     ten seconds of each fault beside a real Redis
#   clock     twenty of each step of a real Redis's clock
#   leases    a million schedules of leases in virtual time, as many with steps of the store's clock, and as many with machines that disagree
#   mutants   the sources changed place by place (tools/mutants.sh), whose survivors are in build/mutants/survivors
set -u
cd "$(dirname "$0")/.."
logs=build/soak-logs
steps="storm flood redis clock leases mutants"
. tools/steps.sh
begin_steps
tools/setup.sh soak || exit 1
. tools/rust.sh

storm() { TOLLBAR_SOAK=1000 cargo test --release --package tollbar --test table_storm -- --nocapture; }
flood() { TOLLBAR_LONG=1 cargo test --release --package tollbar --test table_flood -- --nocapture; }
redis() { TOLLBAR_SOAK=1 cargo test --release --package tollbar-redis --test redis_lease -- --nocapture --test-threads 1; }
clock() { TOLLBAR_SOAK=1 cargo test --release --package tollbar-redis --test redis_clock -- --nocapture --test-threads 1; }
leases() { TOLLBAR_SCHEDULES=1000000 cargo test --release --package tollbar-redis --test lease_simulation --test lease_terms -- --nocapture; }
mutants() { tools/mutants.sh && echo "1 passed, 0 failed"; }

for name in $steps; do step "$name" "$name"; done
end_steps
