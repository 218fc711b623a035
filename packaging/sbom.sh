#!/bin/sh
# sbom.sh: what the packages contain, into build/packages: tollbar-VERSION.cdx.json names every
# crate in the libraries, with its version, license and sum (CycloneDX 1.5), and SHA256SUMS has the
# sum of every file.
set -eu
cd "$(dirname "$0")/.."
. packaging/archive.sh
. tools/rust.sh
mkdir -p build/packages
out=build/packages/tollbar-$version.cdx.json
cargo metadata --quiet --format-version 1 --locked >build/packages/metadata.json
python3 packaging/sbom.py build/packages/metadata.json Cargo.lock "$(packaging/date.sh)" >"$out"
rm build/packages/metadata.json
(cd build/packages && find . -type f ! -name SHA256SUMS ! -path './go/module/*' -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS)
echo "$out: $(grep -c '"purl"' "$out") components; SHA256SUMS: $(wc -l <build/packages/SHA256SUMS) files"
