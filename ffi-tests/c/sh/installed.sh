# shellcheck shell=sh
# `make install`, and programs that find the library through pkg-config. Sourced.

# PREFIX [DESTDIR]
install_to() {
    make -s -C "$root" install B="$build" PREFIX="$1" DESTDIR="${2:-}"
}

# PREFIX: checks that each file is installed, and that the links lead to the library.
is_installed() {
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
    for header in tollbar.h tollbar_redis.h; do
        cmp "$1/include/$header" "$root/include/$header" || return 1
    done
    for library in tollbar tollbar-redis; do
        cmp "$1/lib/lib$library.a" "$build/lib$library.a" || return 1
        for name in "lib$library.so" "lib$library.so.1" "lib$library.so.$version"; do
            cmp "$1/lib/$name" "$build/lib$library.so" || return 1
        done
        [ "$(readlink "$1/lib/lib$library.so")" = "lib$library.so.1" ] || return 1
        [ "$(readlink "$1/lib/lib$library.so.1")" = "lib$library.so.$version" ] || return 1
        [ -f "$1/lib/lib$library.so.$version" ] && [ ! -L "$1/lib/lib$library.so.$version" ] || return 1
        ! grep -n '@' "$1/lib/pkgconfig/$library.pc" || return 1
    done
}

has_version() {
    for library in tollbar tollbar-redis; do
        [ "$(PKG_CONFIG_PATH=$1/lib/pkgconfig pkg-config --modversion $library)" = "$version" ] || return 1
    done
}

# PREFIX: builds and runs the example with the shared library.
builds_shared() {
    flags=$(PKG_CONFIG_PATH=$1/lib/pkgconfig pkg-config --cflags --libs tollbar) || return 1
    # shellcheck disable=SC2086
    gcc -std=c99 -o "$work/example" "$here/example.c" $flags || return 1
    # The loader finds the library by its soname, which is the link .so.1.
    readelf -d "$work/example" | grep -q 'libtollbar.so.1' && LD_LIBRARY_PATH=$1/lib "$work/example"
}

# PREFIX: builds and runs the example with the archive, as a static program.
builds_static() {
    flags=$(PKG_CONFIG_PATH=$1/lib/pkgconfig pkg-config --static --cflags --libs tollbar) || return 1
    # shellcheck disable=SC2086
    gcc -std=c99 -static -o "$work/example-static" "$here/example.c" $flags && "$work/example-static"
}

# PREFIX FLAG LIBRARY...: the program with both libraries, shared or static (--static), needs
# exactly these of our libraries.
builds_both() {
    prefix=$1 kind=$2
    shift 2
    flags=$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config $kind --cflags --libs tollbar-redis) || return 1
    [ "$kind" != --static ] || flags="-static $flags"
    # shellcheck disable=SC2086
    gcc $c99 -o "$work/both-installed" "$here/both.c" $flags || return 1
    readelf -d "$work/both-installed" | sed -n 's/.*NEEDED.*\[\(libtollbar[^]]*\)\].*/\1/p' | sort > "$work/needed"
    printf '%s\n' "$@" | sed '/^$/d' | diff "$work/needed" - && LD_LIBRARY_PATH=$prefix/lib "$work/both-installed"
}

# A staged installation has the same files, and they name the prefix and not the stage.
stages() {
    rm -rf "$work/stage"
    install_to /opt/tollbar "$work/stage" || return 1
    is_installed "$work/stage/opt/tollbar" || return 1
    grep -qx 'prefix=/opt/tollbar' "$work/stage/opt/tollbar/lib/pkgconfig/tollbar.pc" || return 1
    ! grep -n "$work" "$work"/stage/opt/tollbar/lib/pkgconfig/*.pc
}

installed() {
    rm -rf "$work/prefix"
    check "make install PREFIX=..." install_to "$work/prefix"
    check "installed: header, libraries, links, tollbar.pc" is_installed "$work/prefix"
    check "installed again over itself" install_to "$work/prefix"
    check "make install DESTDIR=... PREFIX=/opt/tollbar" stages
    check "pkg-config knows the version" has_version "$work/prefix"
    measure "the example, through pkg-config" builds_shared "$work/prefix"
    measure "the example, through pkg-config --static" builds_static "$work/prefix"
    check "tollbar-redis through pkg-config" builds_both "$work/prefix" --shared libtollbar-redis.so.1 libtollbar.so.1
    check "tollbar-redis through pkg-config --static" builds_both "$work/prefix" --static ""
}
