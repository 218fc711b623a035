#!/bin/sh
# Builds libtollbar-rules.so (soname .$2) into $1. It has Rust's standard library in it, and needs
# libc and libgcc_s; all names but those in abi/tollbar-rules.symbols are local, so it may stand
# beside libtollbar, of whose core it has a copy of its own.
set -eu
. "$(dirname "$0")/rust.sh"
out=$1 abi=$2
least=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' crates/tollbar-rules/Cargo.toml)
if [ "$(printf '%s\n' "$least" "$rust_version" | sort -V | head -n 1)" != "$least" ]; then
    echo "Rust is too old for libtollbar-rules: there is $rust_version, and $least or later is needed (https://rustup.rs)" >&2
    exit 1
fi
mkdir -p "$out"
# The profile of the C libraries would take minutes for the parsers and gain nothing that a caller
# notices.
cargo rustc --quiet --package tollbar-rules-c --profile command --lib --crate-type staticlib
names=abi/tollbar-rules.symbols
{ echo '{ global:'; sed 's/$/;/' "$names"; echo 'local: *; };'; } >"$out/tollbar-rules.map"
# shellcheck disable=SC2046
"${CC:-cc}" -shared -Wl,--gc-sections,-soname,libtollbar-rules.so."$abi",-O1,--hash-style=gnu,-z,relro,-z,now,--no-undefined \
    -Wl,--version-script,"$out/tollbar-rules.map" $(sed 's/^/-Wl,-u,/' "$names") -o "$out/libtollbar-rules.new" \
    "${CARGO_TARGET_DIR:-target}/command/libtollbar_rules_c.a" -lgcc_s -lpthread -ldl -lm -lc
strip "$out/libtollbar-rules.new"
# A new file in the place of the old one, which a program may have mapped.
mv "$out/libtollbar-rules.new" "$out/libtollbar-rules.so"
ln -sf libtollbar-rules.so "$out/libtollbar-rules.so.$abi"
