#!/bin/sh
# crates.sh: the Rust crates as crates.io gets them, into build/packages/crates, each built as it is unpacked. More than 358,400 bytes is an
# error: something is in it that does not belong there, or docs/decisions/0065-size-of-the-crate.md needs new figures.
set -eu
cd "$(dirname "$0")/.."
tools/setup.sh crates
. tools/rust.sh
out=build/packages/crates
rm -rf "$out"
mkdir -p "$out"
# All in one call: the others use the first, which no registry has yet.
cargo package --quiet --allow-dirty --target-dir build/packages-work/crates --package tollbar --package tollbar-redis --package tollbar-rules \
    --package tollbar-tower
mv build/packages-work/crates/package/*.crate "$out"
for crate in "$out"/*.crate; do
    bytes=$(wc -c <"$crate")
    echo "$crate: $bytes bytes"
    [ "$bytes" -le 358400 ] || { echo "$crate: found $bytes bytes; expected: at most 358,400" >&2 && exit 1; }
done
