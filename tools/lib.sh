#!/bin/sh
# Builds the C artefacts, freestanding, into $1: libtollbar.so (soname .$2) and a vendorable
# libtollbar.a: one object, in which everything but tollbar_* is local.
set -eu
out=$1 abi=$2
mkdir -p "$out"
target=$out/cargo
RUSTFLAGS="-Cforce-unwind-tables=no -Clink-arg=-Wl,-soname,libtollbar.so.$abi -Clink-arg=-Wl,--icf=all" \
    cargo build --quiet --profile capi --lib --no-default-features --features freestanding --target-dir "$target"
strip -o "$out/libtollbar.so" "$target/capi/libtollbar.so"
# For the checks that want names.
cp "$target/capi/libtollbar.so" "$out/libtollbar-named.so"
ln -sf libtollbar.so "$out/libtollbar.so.$abi"

keep=$out/libtollbar.keep
sed 's/^/-u /' abi/symbols.txt | tr '\n' ' ' > "$keep"
# shellcheck disable=SC2046
ld -r --gc-sections $(cat "$keep") -e tollbar_version -o "$out/libtollbar.o" --whole-archive "$target/capi/libtollbar.a" 2>/dev/null ||
    ld -r --gc-sections $(cat "$keep") -e tollbar_version -o "$out/libtollbar.o" "$target/capi/libtollbar.a"
objcopy --wildcard --keep-global-symbol='tollbar_*' --strip-debug --remove-section=.llvmbc --remove-section=.llvmcmd "$out/libtollbar.o"
strip --strip-unneeded "$out/libtollbar.o"
rm -f "$out/libtollbar.a" "$keep"
ar rcs "$out/libtollbar.a" "$out/libtollbar.o"
rm -f "$out/libtollbar.o"
