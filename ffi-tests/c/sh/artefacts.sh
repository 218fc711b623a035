# shellcheck shell=sh
# What the built libraries are made of, and what they get along with. Sourced.

# The stripped shared library may have this many bytes: why, is in docs/decisions/0003-small-artefacts.md.
size_limit=290816
# The oldest C library that it runs with.
glibc_limit=2.17

# The tools are those of the machine that the libraries are for: $1, or this machine's.
no_panic_symbol() {
    "${1:-nm}" -a "$build/libtollbar-named.so" > "$work/names" || return 1
    # A stripped library would pass for nothing.
    grep -q tollbar_limiter_check "$work/names" || return 1
    ! grep -i panic "$work/names"
}

needs_libc_only() {
    readelf -d "$build/libtollbar.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' > "$work/needed" || return 1
    cat "$work/needed"
    [ "$(cat "$work/needed")" = libc.so.6 ]
}

# The system's resolver waits for name servers: a tick that called it would, too.
asks_no_resolver() {
    readelf -W --dyn-syms "$build/libtollbar.so" > "$work/dynamic" || return 1
    # A list without the library's own calls would pass for nothing.
    grep -q ' connect@' "$work/dynamic" || return 1
    ! grep -E ' (getaddrinfo|gethostbyname|res_n?query|res_n?search)' "$work/dynamic"
}

has_soname() {
    readelf -d "$build/libtollbar.so" | grep -F 'soname: [libtollbar.so.1]'
}

old_glibc_will_do() {
    highest=$(readelf -W --dyn-syms "$build/libtollbar.so" | sed -n 's/.*@GLIBC_\([0-9.]*\).*/\1/p' | sort -Vu | tail -n 1)
    echo "needs ${highest:-none}, may need $glibc_limit"
    [ -n "$highest" ] && [ "$(printf '%s\n%s\n' "$highest" $glibc_limit | sort -V | tail -n 1)" = $glibc_limit ]
}

is_small() {
    "${1:-strip}" -o "$work/stripped.so" "$build/libtollbar.so" || return 1
    size=$(wc -c < "$work/stripped.so")
    # A gap of up to a page is between what may be written and what may not: of 64 KiB where pages may be as large.
    readelf -lW "$build/libtollbar.so" | grep -q 'LOAD.* 0x10000$' && size_limit=$((size_limit + 65536 - 4096))
    echo "$size bytes, may have $size_limit"
    [ "$size" -le $size_limit ]
}

# Every symbol of the archive but ours is local, so that it can be linked beside anything.
archive_defines_ours_only() {
    nm -g --defined-only "$build/libtollbar.a" | awk 'NF == 3 { print $3 }' | sort > "$work/defined" || return 1
    diff "$work/defined" "$root/abi/symbols.txt"
}

links_static_with_musl() {
    # shellcheck disable=SC2086
    musl-gcc -std=c99 $strict -static -I"$root/include" -DLINKED -c -o "$work/a.o" "$here/header.c" || return 1
    musl-gcc -std=c99 -static -I"$root/include" -DSECOND -c -o "$work/b.o" "$here/header.c" || return 1
    musl-gcc -static -o "$work/musl" "$work/a.o" "$work/b.o" "$build/libtollbar.a" && "$work/musl"
}

# A static library of another Rust program, with std, a panic that unwinds and is caught.
neighbour() {
    mkdir -p "$work/neighbour/src"
    cp "$here/neighbour.rs" "$work/neighbour/src/lib.rs"
    cat > "$work/neighbour/Cargo.toml" <<'TOML'
[package]
name = "neighbour"
version = "0.0.0"
edition = "2021"
[lib]
crate-type = ["staticlib"]
[workspace]
TOML
    (cd "$work/neighbour" && cargo build --quiet --release --offline --target-dir "$work/neighbour/target") || return 1
    cp "$work/neighbour/target/release/libneighbour.a" "$work/libneighbour.a"
}

# ORDER: both archives in one program.
links_beside_rust() {
    # shellcheck disable=SC2086
    gcc $c99 -o "$work/beside" "$here/beside.c" "$@" -lpthread -ldl -lm -lgcc_s && "$work/beside"
}

artefacts() {
    check "no symbol of a panic in libtollbar-named.so" no_panic_symbol
    measure "libtollbar.so needs libc only" needs_libc_only
    check "libtollbar.so does not call the system's resolver" asks_no_resolver
    check "libtollbar.so has its soname" has_soname
    measure "libtollbar.so runs with an old glibc" old_glibc_will_do
    measure "libtollbar.so is small" is_small
    measure "exported symbols are those of abi/symbols.txt" in_root cargo xtask symbols "$build/libtollbar.so" --check
    measure "include/tollbar.h is what src/ffi says" in_root cargo xtask header --check
    check "libtollbar.a defines tollbar_ symbols only" archive_defines_ours_only
    check "abi/tollbar.abi and abi/symbols.txt are what the header declares" "$here/sh/abi.sh" "$work/abi"
    check "the comparison sees a changed field, signature, symbol" "$here/sh/abi.sh" "$work/abi" --prove
    check "links statically with musl" links_static_with_musl
    check "build: a Rust library with std" neighbour
    check "links before a Rust library with std" links_beside_rust "$build/libtollbar.a" "$work/libneighbour.a"
    check "links after a Rust library with std" links_beside_rust "$work/libneighbour.a" "$build/libtollbar.a"
}

in_root() {
    (cd "$root" && "$@")
}
