#!/bin/sh
# `make bench`: tables of one run each: one limiter against bare operations and the C library as it ships, the
# keyed table against its peer, C++ beside C; with
# `make bench TRENDS=1` criterion's trends too.
set -eu
cd "$(dirname "$0")/.."
tools/setup.sh lib
make --silent lib
TOLLBAR_LIBRARY=$PWD/build/libtollbar.so cargo bench --quiet --bench ratios
# A directory of its own: the library would be built there with other flags than for benches, under one name.
cargo run --quiet --release --package tollbar-peers --target-dir target/peers
# What C++ adds to C, if there is a compiler for it.
if command -v g++ >/dev/null 2>&1; then
    ffi-tests/cpp/bench.sh build
fi
bindings/go/bench.sh
# What Python adds, once `make test` or bindings/python/test.sh has installed the package.
if [ -x build/python/bin/python ]; then build/python/bin/python bindings/python/bench.py; fi
if [ -n "${TRENDS:-}" ]; then
    TOLLBAR_LIBRARY=$PWD/build/libtollbar.so cargo bench --quiet --bench trends
fi
