#!/bin/sh
# crates.sh: the Rust crates as crates.io gets them, into build/packages/crates, each built as it is
# unpacked. More bytes than packaging/limits.sh allows are an error.
set -eu
cd "$(dirname "$0")/.."
tools/setup.sh crates
. packaging/limits.sh
. tools/rust.sh
out=build/packages/crates
rm -rf "$out"
mkdir -p "$out"
# All in one call: the others use the first, which no registry has yet.
cargo package --quiet --allow-dirty --target-dir build/packages-work/crates --package tollbar --package tollbar-redis --package tollbar-rules \
    --package tollbar-tower --package tollbar-cli
mv build/packages-work/crates/package/*.crate "$out"
for crate in "$out"/*.crate; do
    bytes=$(wc -c <"$crate")
    echo "$crate: $bytes bytes"
    [ "$bytes" -le "$crate_limit" ] || { echo "$crate: found $bytes bytes; expected: at most $crate_limit" >&2 && exit 1; }
done
