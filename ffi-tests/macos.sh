#!/bin/sh
# What can be seen of the library for macOS on Linux: that the Rust code compiles for both of its
# processors, that LLVM's linker makes a .dylib of it with exactly the promised names, and that what
# it asks of the system is libSystem's. Apple's own linker makes the archive, in
# .github/workflows/test.yml: LLVM's cannot. Nothing of it runs here.
set -u
cd "$(dirname "$0")/.."
. ffi-tests/c/sh/check.sh
tools/setup.sh macos || { echo "0 passed, 1 failed" && exit 1; }
. tools/rust.sh
work=$PWD/build/macos
mkdir -p "$work"
log=$work/log

# ARCHITECTURE: what tools/lib.sh calls, with LLVM's programs in the place of Apple's.
builds() {
    directory=$work/$1
    mkdir -p "$directory"
    # A linker that takes every undefined name to be in libSystem, as a Mac's SDK would say.
    cat >"$directory/cc" <<EOF
#!/bin/sh
# The driver's options are said in the linker's words.
set -- \$(echo " \$* " | sed 's/ -dynamiclib / -dylib /; s/-Wl,//g; s/,/ /g; s/ -o / -o /')
exec $linker -arch $1 -platform_version macos 11.0 11.0 -undefined dynamic_lookup "\$@"
EOF
    ln -sf "$strip" "$directory/strip"
    target=$(echo "$1" | sed 's/arm64/aarch64/')-apple-darwin
    TARGET=$target CC=$directory/cc STRIP=$strip LD=$directory/fake-ld tools/lib.sh "$directory" 1 2>"$directory/said" && return 1
    # All steps work here up to the archive's, which needs Apple's ld.
    grep fake-ld "$directory/said"
}
linker=$(command -v ld64.lld-14 || command -v ld64.lld)
strip=$(command -v llvm-strip-14 || command -v llvm-strip)
nm=$(command -v llvm-nm-14 || command -v llvm-nm)
exports() { "$nm" --defined-only --extern-only "$1/libtollbar.dylib" | awk '{ print substr($NF, 2) }' | grep tollbar | sort | diff - "$work/promised"; }
LC_ALL=C sort abi/tollbar.symbols >"$work/promised"
for architecture in arm64 x86_64; do
    check "libtollbar.dylib for $architecture" builds $architecture
    check "libtollbar.dylib for $architecture has the promised names" exports "$work/$architecture"
done
finish
