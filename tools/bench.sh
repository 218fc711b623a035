#!/bin/sh
# `make bench`: the table of ratios, all of one run, over the C library as it ships; with
# `make bench TRENDS=1` criterion's trends too.
set -eu
cd "$(dirname "$0")/.."
tools/setup.sh lib
make --silent lib
TOLLBAR_LIBRARY=$PWD/build/libtollbar.so cargo bench --quiet --bench ratios
if [ -n "${TRENDS:-}" ]; then
    TOLLBAR_LIBRARY=$PWD/build/libtollbar.so cargo bench --quiet --bench trends
fi
