#!/bin/sh
# `make bench`: tables of one run each: one limiter against bare operations and the C library as it
# ships, limiters and the keyed table against the peers that are crates, leases against a script
# call a request, and what C++, Go, Python and LuaJIT add, each with its goal; with
# `make bench TRENDS=1` criterion's trends too.
set -eu
cd "$(dirname "$0")/.."
tools/setup.sh bench
PATH=$PATH:/usr/local/go/bin
make --silent lib
TOLLBAR_LIBRARY=$PWD/build/libtollbar.so cargo bench --quiet --package tollbar --bench ratios
# A directory of its own: the library would be built there with other flags than for benches, under
# one name.
TOLLBAR_LIBRARY=$PWD/build/libtollbar.so cargo run --quiet --release --package tollbar-peers --target-dir target/peers
cargo run --quiet --release --package tollbar-leases --target-dir target/peers
ffi-tests/cpp/bench.sh build
bindings/go/bench.sh
bindings/python/install.sh
build/python/bin/python bindings/python/bench.py
bindings/lua/bench.sh
if [ -n "${TRENDS:-}" ]; then
    TOLLBAR_LIBRARY=$PWD/build/libtollbar.so cargo run --quiet --release --package tollbar-trends --target-dir target/peers -- --bench
fi
