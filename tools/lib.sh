#!/bin/sh
# Builds the C artefacts, freestanding, into $1: libtollbar.so (soname .$2), libtollbar-named.so (the
# same with its symbols) and libtollbar.a. Both are linked from one object in which everything but
# tollbar_* is local, so either may stand beside any other library.
#
# Why not cargo's own: its .so carries unwinding tables that nothing here uses, and calls within the
# library through the global offset table; together that is a third of the size.
#
# The package itself is a Rust library only: docs/decisions/0026-rust-library-only.md. The type rlib is named beside the static
# library because rustc compiles the static library alone into slower calls.
#
# For another machine: TARGET as rustc names it, and the prefix of its tools, CROSS (`make lib B=build/arm64
# TARGET=aarch64-unknown-linux-gnu CROSS=aarch64-linux-gnu-`).
set -eu
. "$(dirname "$0")/rust.sh"
out=$1 abi=$2
target=$out/cargo
cross=${CROSS:-}
made=$target/${TARGET:+$TARGET/}capi
mkdir -p "$out"
# Pages of 4 KiB keep the file small; 64-bit ARM's may have 64, and its linker knows.
case ${TARGET:-$(uname -m)} in
x86_64*) pages=-Wl,-z,max-page-size=4096 ;;
*) pages= ;;
esac

# relro-level: with it rustc calls directly (the link below is full relro all the same).
RUSTFLAGS="-Cforce-unwind-tables=no -Crelro-level=partial ${cross:+-Clinker=${cross}gcc}" \
    cargo rustc --quiet --profile capi --lib --crate-type rlib,staticlib --no-default-features --features freestanding --target-dir "$target" \
    ${TARGET:+--target "$TARGET"}

roots=$(sed 's/^/-u /' abi/symbols.txt)
# shellcheck disable=SC2086
"${cross}ld" -r --gc-sections -e tollbar_version $roots -o "$out/libtollbar.o" "$made/libtollbar.a"
"${cross}objcopy" --wildcard --keep-global-symbol='tollbar_*' --strip-debug --remove-section=.comment \
    --remove-section=.llvmbc --remove-section=.llvmcmd \
    --remove-section='.eh_frame*' --remove-section='.rela.eh_frame*' \
    --remove-section='.gcc_except_table*' --remove-section='.rela.gcc_except_table*' "$out/libtollbar.o"

[ -z "$cross" ] || CC=${cross}gcc
# shellcheck disable=SC2086
"${CC:-cc}" -shared -nostartfiles -Wl,--gc-sections,-soname,libtollbar.so."$abi",-O1,--hash-style=gnu,--build-id=none \
    -Wl,-z,relro,-z,now,-z,noseparate-code,--no-undefined $pages \
    $(sed 's/^/-Wl,-u,/' abi/symbols.txt) -o "$out/libtollbar-named.so" "$out/libtollbar.o"
"${cross}strip" -o "$out/libtollbar.so" "$out/libtollbar-named.so"
ln -sf libtollbar.so "$out/libtollbar.so.$abi"

"${cross}strip" --strip-unneeded "$out/libtollbar.o"
rm -f "$out/libtollbar.a"
"${cross}ar" rcs "$out/libtollbar.a" "$out/libtollbar.o"
rm "$out/libtollbar.o"
