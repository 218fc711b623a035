#!/bin/sh
# install.sh DESTDIR PREFIX LIBDIR INCLUDEDIR BUILD VERSION ABI: `make install` and
# `cmake --install` call it. It installs under DESTDIR, which may be empty:
#   the C and C++ headers; libtollbar and libtollbar-redis, shared and static, with their files for pkg-config and CMake;
#   the LuaJIT module;
#   libtollbar-rules and tollbar-rules.pc, and libtollbar-redis-openssl, if BUILD has them;
#   the command, its manual pages and its completions for bash, zsh and fish, if BUILD has the command. TOLLBAR is the command that
#     writes these, where the one in BUILD is for another machine.
set -eu
destdir=$1 prefix=$2 libdir=$3 includedir=$4 build=$5 version=$6 abi=$7
root=$(cd "$(dirname "$0")/.." && pwd)
package=$destdir$libdir/cmake/tollbar

install -d "$destdir$libdir/pkgconfig" "$destdir$includedir/tollbar" "$package"
install -m 644 "$root"/include/*.h "$root"/include/*.hpp "$destdir$includedir"
install -m 644 "$root"/include/tollbar/*.hpp "$destdir$includedir/tollbar"
for library in libtollbar libtollbar-redis; do
    install -m 644 "$build/$library.a" "$destdir$libdir/$library.a"
    # Programs are linked through the first name, and look for the one with the ABI when they start.
    if [ -e "$build/$library.dylib" ]; then
        shared=.$abi.dylib
        install -m 755 "$build/$library.dylib" "$destdir$libdir/$library.$version.dylib"
        ln -sf "$library.$version.dylib" "$destdir$libdir/$library.$abi.dylib"
        ln -sf "$library.$abi.dylib" "$destdir$libdir/$library.dylib"
    else
        shared=.so.$abi
        install -m 755 "$build/$library.so" "$destdir$libdir/$library.so.$version"
        ln -sf "$library.so.$version" "$destdir$libdir/$library.so.$abi"
        ln -sf "$library.so.$abi" "$destdir$libdir/$library.so"
    fi
done

# `make rules` has made it, or not.
if [ -e "$build/libtollbar-rules.so" ]; then
    install -m 755 "$build/libtollbar-rules.so" "$destdir$libdir/libtollbar-rules.so.$version"
    ln -sf "libtollbar-rules.so.$version" "$destdir$libdir/libtollbar-rules.so.$abi"
    ln -sf "libtollbar-rules.so.$abi" "$destdir$libdir/libtollbar-rules.so"
fi

# `make openssl` has made it, or not.
if [ -e "$build/libtollbar-redis-openssl.so" ]; then
    install -m 644 "$build/libtollbar-redis-openssl.a" "$destdir$libdir"
    install -m 755 "$build/libtollbar-redis-openssl.so" "$destdir$libdir/libtollbar-redis-openssl.so.$version"
    ln -sf "libtollbar-redis-openssl.so.$version" "$destdir$libdir/libtollbar-redis-openssl.so.$abi"
    ln -sf "libtollbar-redis-openssl.so.$abi" "$destdir$libdir/libtollbar-redis-openssl.so"
fi

# `make build/tollbar` has made it, or not.
if [ -x "$build/tollbar" ]; then
    share=$destdir$prefix/share
    install -d "$destdir$prefix/bin" "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
    install -m 755 "$build/tollbar" "$destdir$prefix/bin/tollbar"
    writer=${TOLLBAR:-$build/tollbar}
    "$writer" man "$share/man/man1"
    "$writer" completions bash >"$share/bash-completion/completions/tollbar"
    "$writer" completions zsh >"$share/zsh/site-functions/_tollbar"
    "$writer" completions fish >"$share/fish/vendor_completions.d/tollbar.fish"
fi

# In /usr/local it is where Debian's luajit looks.
install -d "$destdir$prefix/share/lua/5.1/tollbar"
install -m 644 "$root/bindings/lua/tollbar.lua" "$destdir$prefix/share/lua/5.1"
install -m 644 "$root"/bindings/lua/tollbar/*.lua "$destdir$prefix/share/lua/5.1/tollbar"

# The CMake package goes from the libraries to the headers, so that all may be moved together.
common=$libdir include_from_lib=
while [ "${includedir#"$common"/}" = "$includedir" ] && [ -n "$common" ]; do
    common=${common%/*} include_from_lib=../$include_from_lib
done
include_from_lib=$include_from_lib${includedir#"$common"/}
# TEMPLATE FILE
fill_in() {
    sed -e "s|@PREFIX@|$prefix|" -e "s|@LIBDIR@|$libdir|" -e "s|@INCLUDEDIR@|$includedir|" -e "s|@VERSION@|$version|" \
        -e "s|@ABI@|$abi|" -e "s|@INCLUDE_FROM_LIB@|$include_from_lib|" -e "s|@SHARED@|$shared|g" "$root/$1" > "$2"
    chmod 644 "$2"
}
fill_in packaging/tollbar.pc.in "$destdir$libdir/pkgconfig/tollbar.pc"
fill_in packaging/tollbar-redis.pc.in "$destdir$libdir/pkgconfig/tollbar-redis.pc"
[ ! -e "$build/libtollbar-rules.so" ] || fill_in packaging/tollbar-rules.pc.in "$destdir$libdir/pkgconfig/tollbar-rules.pc"
fill_in packaging/cmake/tollbarConfig.cmake.in "$package/tollbarConfig.cmake"
fill_in packaging/cmake/tollbarConfigVersion.cmake.in "$package/tollbarConfigVersion.cmake"

# The dynamic linker finds a new library by its cache, which ldconfig writes. Under DESTDIR a
# package's own script does that.
if [ -z "$destdir" ] && [ "$shared" = ".so.$abi" ] && PATH=$PATH:/sbin:/usr/sbin command -v ldconfig >/dev/null; then
    PATH=$PATH:/sbin:/usr/sbin
    # Another ldconfig at the same time renames the file that this one writes.
    [ "$(id -u)" != 0 ] || ldconfig || { sleep 1 && ldconfig; }
    ldconfig -p | grep -q -F " $libdir/libtollbar.so.$abi" ||
        echo "The dynamic linker does not find $libdir/libtollbar.so.$abi; expected: ldconfig, run by root, or $libdir in LD_LIBRARY_PATH or in a file of /etc/ld.so.conf.d"
fi
