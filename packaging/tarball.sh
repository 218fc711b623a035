#!/bin/sh
# tarball.sh [source|ARCHITECTURE...]: what C and C++ programs are built with, into build/packages:
# for each of x86_64 and aarch64 (or those named) headers, static and shared libraries, the files
# for pkg-config and CMake, and the command as a static file, which needs no Rust and works
# wherever it is unpacked; and the source with all that it depends on, which builds without a network.
set -eu
cd "$(dirname "$0")/.."
. packaging/archive.sh
out=$PWD/build/packages
work=$PWD/build/packages-work
mkdir -p "$out" "$work"

# ARCHITECTURE: for this machine's as it is, for another by cross compilation.
binary() {
    if [ "$1" = "$(uname -m)" ]; then
        build=build
        make --silent lib rules
    else
        build=build/$1
        tools/setup.sh "cross-$1"
        make --silent lib rules B="$build" TARGET="$1-unknown-linux-gnu" CROSS="$1-linux-gnu-"
        # It writes the command's manual.
        tools/static.sh build "$(uname -m)"
    fi
    tools/static.sh build "$1"
    tree=$work/tollbar-$version-linux-$1
    libraries=$work/libraries-$1
    rm -rf "$tree" "$libraries"
    # The command that needs no library: the one that may have been built beside the libraries needs a
    # newer C library than these.
    mkdir "$libraries"
    for library in libtollbar libtollbar-redis; do
        ln -s "$PWD/$build/$library.a" "$PWD/$build/$library.so" "$libraries"
    done
    ln -s "$PWD/$build/libtollbar-rules.so" "$PWD/build/static/$1/tollbar" "$libraries"
    TOLLBAR=$PWD/build/static/$(uname -m)/tollbar tools/install.sh "$tree" "" /lib /include "$libraries" "$version" 1
    # From where the file is to what it describes.
    sed -i -e 's|^prefix=.*|prefix=${pcfiledir}/../..|' -e 's|^libdir=.*|libdir=${prefix}/lib|' \
        -e 's|^includedir=.*|includedir=${prefix}/include|' "$tree"/lib/pkgconfig/*.pc
    cp LICENSE-APACHE LICENSE-MIT CHANGELOG.md "$tree"
    cat >"$tree/README" <<EOF
tollbar $version for Linux on $1: C libraries and the command, no Rust needed. The libraries need glibc 2.17 or later, the command
nothing. From any directory:

    export PKG_CONFIG_PATH=\$PWD/lib/pkgconfig
    cc app.c \$(pkg-config --cflags --libs tollbar) -Wl,-rpath,\$PWD/lib     # shared
    cc app.c \$(pkg-config --cflags tollbar) lib/libtollbar.a                # static: nothing to install
    cmake -DCMAKE_PREFIX_PATH=\$PWD ...                                      # find_package(tollbar)
    bin/tollbar rules check limits.toml

include/tollbar.h is the manual. lib/libtollbar-rules.so has limits in a file (tollbar_rules.h, pkg-config's tollbar-rules). To install:
cp -a bin include lib share /usr/local.
EOF
    archive "$tree" "$out/${tree##*/}.tar.gz"
    echo "$out/${tree##*/}.tar.gz"
}

for what in ${*:-source x86_64 aarch64}; do
    case $what in
    source)
        packaging/source.sh "$work/tollbar-$version" vendored
        archive "$work/tollbar-$version" "$out/tollbar-$version.tar.gz"
        echo "$out/tollbar-$version.tar.gz"
        ;;
    x86_64 | aarch64) binary "$what" ;;
    *) echo "tarball.sh: found $what; expected: source, x86_64, aarch64" >&2 && exit 2 ;;
    esac
done
