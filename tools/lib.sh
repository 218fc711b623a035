#!/bin/sh
# Builds the C artefacts, freestanding, into $1. For libtollbar and for libtollbar-redis: the shared
# library (soname .$2), the same with its symbols (-named.so), and the archive. Both are linked from
# one object in which everything but the names in abi/*.symbols is local, so each may stand beside
# any other library, and the two beside each other (docs/internals/decisions/0029-two-libraries.md).
#
# Why not cargo's own: its .so carries unwinding tables that nothing here uses, and calls within the
# library through the global offset table; together that is a third of the size.
#
# The packages themselves are Rust libraries only:
# docs/internals/decisions/0026-rust-library-only.md. The static library is the only type that rustc
# is asked for: with rlib beside it rustc exports more of the crates below and inlines less of them.
#
# On macOS the names are libtollbar.dylib and libtollbar.a. Rust's part is compiled for it in
# ffi-tests/macos.sh, which links the .dylib, too; the archive wants Apple's own linker, and
# .github/workflows/test.yml has one.
#
# cargo's files are in $1/cargo, or where CARGO_TARGET_DIR says.
#
# For another machine: TARGET as rustc names it, and the prefix of its tools, CROSS
# (`make lib B=build/arm64 TARGET=aarch64-unknown-linux-gnu CROSS=aarch64-linux-gnu-`).
set -eu
. "$(dirname "$0")/rust.sh"
out=$1 abi=$2
target=${CARGO_TARGET_DIR:-$out/cargo}
cross=${CROSS:-}
made=$target/${TARGET:+$TARGET/}capi
mkdir -p "$out"
# Pages of 4 KiB keep the file small; 64-bit ARM's may have 64, and its linker knows.
case ${TARGET:-$(uname -m)} in
x86_64*) pages=-Wl,-z,max-page-size=4096 ;;
*) pages= ;;
esac

# PACKAGE: its Rust code and that of all crates below it, in one archive.
# relro-level: with it rustc calls directly (the link below is full relro all the same).
compile() {
    RUSTFLAGS="-Cforce-unwind-tables=no -Crelro-level=partial ${cross:+-Clinker=${cross}gcc}" \
        cargo rustc --quiet --package "$1" --profile capi --lib --crate-type staticlib --features freestanding \
        --target-dir "$target" ${TARGET:+--target "$TARGET"}
}

# NAME ARCHIVE SYMBOLS: libNAME.so and libNAME.a of what the symbols need of the archive.
link() {
    object=$out/lib$1.o
    # shellcheck disable=SC2046
    "${cross}ld" -r --gc-sections -e "$(head -n 1 "$3")" $(sed 's/^/-u /' "$3") -o "$object" "$2"
    "${cross}objcopy" --keep-global-symbols="$3" --strip-debug --remove-section=.comment \
        --remove-section=.llvmbc --remove-section=.llvmcmd \
        --remove-section='.eh_frame*' --remove-section='.rela.eh_frame*' \
        --remove-section='.gcc_except_table*' --remove-section='.rela.gcc_except_table*' "$object"

    # A thread looks up the store's name. glibc has pthread_create in itself since 2.34, and before
    # in libpthread.
    shared=$out/lib$1.shared.o threads=
    case $("${CC:-cc}" -dumpmachine) in
    *-gnu*) threads=$(tools/old-threads.sh "${TARGET:-$(uname -m)}") ;;
    esac
    # shellcheck disable=SC2086
    "${cross}objcopy" $threads "$object" "$shared"
    # shellcheck disable=SC2046,SC2086
    "${CC:-cc}" -shared -nostartfiles -Wl,--gc-sections,-soname,lib"$1".so."$abi",-O1,--hash-style=gnu,--build-id=none \
        -Wl,-z,relro,-z,now,-z,noseparate-code,--no-undefined $pages \
        $(sed 's/^/-Wl,-u,/' "$3") -o "$out/lib$1-named.so" "$shared"
    "${cross}strip" -o "$out/lib$1.so" "$out/lib$1-named.so"
    ln -sf "lib$1.so" "$out/lib$1.so.$abi"

    "${cross}strip" --strip-unneeded "$object"
    rm -f "$out/lib$1.a"
    "${cross}ar" rcs "$out/lib$1.a" "$object"
    rm "$object" "$shared"
}

# NAME ARCHIVE SYMBOLS: the same by macOS's linker: libNAME.dylib, libNAME.a.
link_on_macos() {
    names=$out/lib$1.names object=$out/lib$1.o
    sed 's/^/_/' "$3" >"$names"
    # shellcheck disable=SC2046
    "${CC:-cc}" -dynamiclib -Wl,-dead_strip,-exported_symbols_list,"$names" -install_name "@rpath/lib$1.$abi.dylib" \
        $(sed 's/^/-Wl,-u,/' "$names") -o "$out/lib$1-named.dylib" "$2"
    "${STRIP:-strip}" -x -o "$out/lib$1.dylib" "$out/lib$1-named.dylib"
    # The archive: one object in which everything but those names is local. -r makes local what is
    # not exported.
    # shellcheck disable=SC2046
    "${LD:-ld}" -r -exported_symbols_list "$names" $(sed 's/^/-u /' "$names") -o "$object" "$2"
    "${STRIP:-strip}" -S "$object"
    rm -f "$out/lib$1.a"
    "${AR:-ar}" rcs "$out/lib$1.a" "$object"
    rm "$object" "$names"
    # What the Makefile knows it by.
    ln -sf "lib$1.dylib" "$out/lib$1.so"
}
case ${TARGET:-$(uname -s)} in
*-apple-darwin | Darwin) link() { link_on_macos "$@"; } ;;
esac

[ -z "$cross" ] || CC=${cross}gcc
compile tollbar-c
link tollbar "$made/libtollbar_c.a" abi/tollbar.symbols
compile tollbar-redis-c
link tollbar-redis "$made/libtollbar_redis_c.a" abi/tollbar-redis.symbols
