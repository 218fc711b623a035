#!/bin/sh
# `make bench`: two tables of ratios, each of one run: one limiter against bare operations and the C library
# as it ships, and the keyed table against its peer; with
# `make bench TRENDS=1` criterion's trends too.
set -eu
cd "$(dirname "$0")/.."
tools/setup.sh lib
make --silent lib
TOLLBAR_LIBRARY=$PWD/build/libtollbar.so cargo bench --quiet --bench ratios
# A directory of its own: the library would be built there with other flags than for benches, under one name.
cargo run --quiet --release --package tollbar-peers --target-dir target/peers
if [ -n "${TRENDS:-}" ]; then
    TOLLBAR_LIBRARY=$PWD/build/libtollbar.so cargo bench --quiet --bench trends
fi
