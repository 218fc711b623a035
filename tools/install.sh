#!/bin/sh
# install.sh DESTDIR PREFIX LIBDIR INCLUDEDIR BUILD VERSION ABI: what `make install` does.
# Under DESTDIR (may be empty) go the header, both libraries, and tollbar.pc, which names the others.
set -eu
destdir=$1 prefix=$2 libdir=$3 includedir=$4 build=$5 version=$6 abi=$7
root=$(cd "$(dirname "$0")/.." && pwd)

install -d "$destdir$libdir/pkgconfig" "$destdir$includedir"
install -m 644 "$root/include/tollbar.h" "$destdir$includedir/tollbar.h"
install -m 644 "$build/libtollbar.a" "$destdir$libdir/libtollbar.a"
install -m 755 "$build/libtollbar.so" "$destdir$libdir/libtollbar.so.$version"
# Programs are linked through .so, and look for the ABI's name when they start.
ln -sf "libtollbar.so.$version" "$destdir$libdir/libtollbar.so.$abi"
ln -sf "libtollbar.so.$abi" "$destdir$libdir/libtollbar.so"
sed -e "s|@PREFIX@|$prefix|" -e "s|@LIBDIR@|$libdir|" -e "s|@INCLUDEDIR@|$includedir|" -e "s|@VERSION@|$version|" \
    "$root/tollbar.pc.in" > "$destdir$libdir/pkgconfig/tollbar.pc"
chmod 644 "$destdir$libdir/pkgconfig/tollbar.pc"
