# shellcheck shell=sh
# Properties of the built libraries: symbols, sizes, dependencies, and other libraries beside them.
# Sourced.

# LIBRARY: the most bytes of its stripped shared library
# (docs/internals/decisions/0003-small-artefacts.md).
size_limit_of() {
    case $1 in
    tollbar) echo 409600 ;;
    tollbar-redis) echo 290816 ;;
    esac
}
# The oldest C library with which the libraries run.
glibc_limit=2.17

# LIBRARY [NM]: with the tool of the library's target, or this machine's.
no_panic_symbol() {
    "${2:-nm}" -a "$build/lib$1-named.so" > "$work/names" || return 1
    # The check means nothing for a stripped library, so it fails.
    grep -q "$(tail -n 1 "$root/abi/$1.symbols")" "$work/names" || return 1
    ! grep -i panic "$work/names"
}

# LIBRARY
needs_libc_only() {
    readelf -d "$build/lib$1.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' > "$work/needed" || return 1
    cat "$work/needed"
    [ "$(cat "$work/needed")" = libc.so.6 ]
}

# A thread asks the system's resolver. A process that has no library with pthread_create loads the
# library all the same (glibc before 2.34), so the name is weak, and of the oldest version.
starts_threads_with_an_old_glibc() {
    readelf -W --dyn-syms "$build/libtollbar-redis.so" | grep -E ' (pthread_create|getaddrinfo)@' > "$work/dynamic"
    cat "$work/dynamic"
    grep -q ' getaddrinfo@' "$work/dynamic" && grep -qE ' WEAK .* pthread_create@GLIBC_2\.(2\.5|17) ' "$work/dynamic"
}

# The library without Redis uses no network.
has_no_sockets() {
    readelf -W --dyn-syms "$build/libtollbar.so" > "$work/dynamic" || return 1
    # The check means nothing for an empty list, so it must have a call of the library.
    grep -q ' mmap' "$work/dynamic" || return 1
    ! grep -E ' (socket|connect|send|recv|poll|getaddrinfo)[a-z0-9]*(@|$)' "$work/dynamic"
}

# LIBRARY
has_soname() {
    readelf -d "$build/lib$1.so" | grep -F "soname: [lib$1.so.1]"
}

# LIBRARY
old_glibc_will_do() {
    highest=$(readelf -W --dyn-syms "$build/lib$1.so" | sed -n 's/.*@GLIBC_\([0-9.]*\).*/\1/p' | sort -Vu | tail -n 1)
    echo "needs ${highest:-none}, may need $glibc_limit"
    [ -n "$highest" ] && [ "$(printf '%s\n%s\n' "$highest" $glibc_limit | sort -V | tail -n 1)" = $glibc_limit ]
}

# LIBRARY [STRIP]
is_small() {
    "${2:-strip}" -o "$work/stripped.so" "$build/lib$1.so" || return 1
    size=$(wc -c < "$work/stripped.so")
    size_limit=$(size_limit_of "$1")
    # The file has a gap of up to a page between read-only and writable parts: up to 64 KiB for
    # machines with such pages.
    readelf -lW "$build/lib$1.so" | grep -q 'LOAD.* 0x10000$' && size_limit=$((size_limit + 65536 - 4096))
    echo "$size bytes, may have $size_limit"
    [ "$size" -le "$size_limit" ]
}

# MOST [FLAGS]: the bytes of ffi-tests/c/small.c, stripped, that links what it calls of
# libtollbar.a.
takes_what_it_calls() {
    most=$1
    shift
    # shellcheck disable=SC2086
    gcc -std=c99 $strict -Os -I"$root/include" "$@" -o "$work/small" "$here/small.c" "$build/libtollbar.a" -Wl,--gc-sections -Wl,-z,noseparate-code &&
        "$work/small" && strip "$work/small" || return 1
    size=$(wc -c < "$work/small")
    echo "$size bytes, may have $most"
    [ "$size" -le "$most" ]
}

# LIBRARY: every symbol of the archive but ours is local, so that it can be linked beside anything.
archive_defines_ours_only() {
    nm -g --defined-only "$build/lib$1.a" | awk 'NF == 3 { print $3 }' | sort > "$work/defined" || return 1
    diff "$work/defined" "$root/abi/$1.symbols"
}

# LIBRARIES...: a program that uses both libraries and checks that they agree.
links_both() {
    # shellcheck disable=SC2086
    gcc $c99 -o "$work/both" "$here/both.c" "$@" -lpthread && "$work/both"
}

links_static_with_musl() {
    # shellcheck disable=SC2086
    musl-gcc -std=c99 $strict -static -I"$root/include" -DLINKED -c -o "$work/a.o" "$here/header.c" || return 1
    musl-gcc -std=c99 -static -I"$root/include" -DSECOND -c -o "$work/b.o" "$here/header.c" || return 1
    musl-gcc -static -o "$work/musl" "$work/a.o" "$work/b.o" "$build/libtollbar.a" && "$work/musl"
}

# A static Rust library with std, which unwinds and catches a panic.
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
    for library in tollbar tollbar-redis; do
        check "no symbol of a panic in lib$library-named.so" no_panic_symbol $library
        measure "lib$library.so needs libc only" needs_libc_only $library
        check "lib$library.so has its soname" has_soname $library
        measure "lib$library.so runs with an old glibc" old_glibc_will_do $library
        measure "lib$library.so is small" is_small $library
        measure "exported symbols are those of abi/$library.symbols" in_root cargo xtask symbols "$build/lib$library.so" --check
        check "lib$library.a defines its own symbols only" archive_defines_ours_only $library
        check "abi/$library.abi and abi/$library.symbols are what the header declares" "$here/sh/abi.sh" $library "$work/abi"
        check "$library: the comparison sees a changed field, signature, symbol" "$here/sh/abi.sh" $library "$work/abi" --prove
    done
    check "libtollbar.so has no network" has_no_sockets
    measure "libtollbar-redis.so starts threads with an old glibc" starts_threads_with_an_old_glibc
    measure "the headers are what the sources say" in_root cargo xtask header --check
    measure "a program with a limiter takes what it calls of libtollbar.a" takes_what_it_calls 102400
    measure "a program with a table takes what it calls of libtollbar.a" takes_what_it_calls 155648 -DTABLE
    check "links statically with musl" links_static_with_musl
    check "build: a Rust library with std" neighbour
    check "links before a Rust library with std" links_beside_rust "$build/libtollbar.a" "$work/libneighbour.a"
    check "links after a Rust library with std" links_beside_rust "$work/libneighbour.a" "$build/libtollbar.a"
    one=$build/libtollbar.a two=$build/libtollbar-redis.a
    check "both archives in one program" links_both "$one" "$two"
    check "both archives in one program, the other way round" links_both "$two" "$one"
    check "both shared libraries in one program" links_both -L"$build" -ltollbar -ltollbar-redis "-Wl,-rpath,$build"
    check "the one shared, the other static" links_both "$two" -L"$build" -ltollbar "-Wl,-rpath,$build"
    check "the one static, the other shared" links_both "$one" -L"$build" -ltollbar-redis "-Wl,-rpath,$build"
}

in_root() {
    (cd "$root" && "$@")
}
