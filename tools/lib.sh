#!/bin/sh
# Builds the C artefacts, freestanding, into $1: libtollbar.so (soname .$2), libtollbar-named.so (the
# same with its symbols) and libtollbar.a. Both are linked from one object in which everything but
# tollbar_* is local, so either may stand beside any other library.
#
# Why not cargo's own: its .so carries unwinding tables that nothing here uses, and calls within the
# library through the global offset table; together that is a third of the size.
set -eu
out=$1 abi=$2
target=$out/cargo
mkdir -p "$out"

# relro-level: with it rustc calls directly (the link below is full relro all the same).
RUSTFLAGS="-Cforce-unwind-tables=no -Crelro-level=partial" \
    cargo build --quiet --profile capi --lib --no-default-features --features freestanding --target-dir "$target"

roots=$(sed 's/^/-u /' abi/symbols.txt)
# shellcheck disable=SC2086
ld -r --gc-sections -e tollbar_version $roots -o "$out/libtollbar.o" "$target/capi/libtollbar.a"
objcopy --wildcard --keep-global-symbol='tollbar_*' --strip-debug --remove-section=.comment \
    --remove-section=.llvmbc --remove-section=.llvmcmd \
    --remove-section='.eh_frame*' --remove-section='.rela.eh_frame*' \
    --remove-section='.gcc_except_table*' --remove-section='.rela.gcc_except_table*' "$out/libtollbar.o"

# shellcheck disable=SC2086
"${CC:-cc}" -shared -nostartfiles -Wl,--gc-sections,-soname,libtollbar.so."$abi",-O1,--hash-style=gnu,--build-id=none \
    -Wl,-z,relro,-z,now,-z,noseparate-code,-z,max-page-size=4096,--no-undefined \
    $(sed 's/^/-Wl,-u,/' abi/symbols.txt) -o "$out/libtollbar-named.so" "$out/libtollbar.o"
strip -o "$out/libtollbar.so" "$out/libtollbar-named.so"
ln -sf libtollbar.so "$out/libtollbar.so.$abi"

strip --strip-unneeded "$out/libtollbar.o"
rm -f "$out/libtollbar.a"
ar rcs "$out/libtollbar.a" "$out/libtollbar.o"
rm "$out/libtollbar.o"
