#!/bin/sh
# wheels.sh: what is to be seen of the wheels that do not run here. One for musl asks of musl what
# musl has, and one for aarch64 decides right under an emulator, in Debian's Python for it. And the
# sdist builds with Rust, a C compiler and no checkout. Counts its checks.
set -u
cd "$(dirname "$0")/../.."
. ffi-tests/c/sh/check.sh
. packaging/archive.sh
top=$PWD
work=$top/build/packages-work/wheels
wheels=$top/build/packages/python
rm -rf "$work"
mkdir -p "$work"
log=$work/log
tools/setup.sh wheels || { echo "0 passed, 1 failed" && exit 1; }
. tools/rust.sh

# ARCHITECTURE LIBC: the wheel's modules, in $work/ARCHITECTURE-LIBC.
unpack() {
    rm -rf "$work/$1-$2"
    python3 -m zipfile -e "$wheels"/tollbar-"$version"-*"$2"*_"$1".whl "$work/$1-$2"
}
# ARCHITECTURE: each undefined name of the modules is Python's or musl's, and musl is the only
# library.
asks_musl_only() {
    unpack "$1" musllinux || return 1
    # Debian has musl's library for this machine; its names are the same on the other.
    nm -D --defined-only "/lib/ld-musl-$(uname -m).so.1" | awk '{ print $NF }' | sort -u >"$work/musl"
    for module in "$work/$1-musllinux"/tollbar/*.so; do
        readelf -d "$module" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' >"$work/needed"
        [ "$(cat "$work/needed")" = "libc.musl-$1.so.1" ] || { cat "$work/needed" && return 1; }
        readelf --dyn-syms --wide "$module" | awk '$7 == "UND" && $5 != "WEAK" && $8 != "" { print $8 }' | sed 's/@.*//' |
            grep -v '^_\{0,1\}Py' | sort -u >"$work/asked"
        [ -s "$work/asked" ] && [ -z "$(comm -23 "$work/asked" "$work/musl" | tee /dev/stderr)" ] || return 1
    done
}
decides_on_arm() {
    unpack aarch64 manylinux || return 1
    python=$work/python-arm64
    mkdir -p "$python/packages"
    (cd "$python/packages" && apt-get download -q libpython3.11-minimal:arm64 libpython3.11-stdlib:arm64 python3.11-minimal:arm64 libc6:arm64 \
        zlib1g:arm64 libexpat1:arm64 libgcc-s1:arm64) || return 1
    for package in "$python"/packages/*.deb; do dpkg-deb -x "$package" "$python"; done
    qemu-aarch64-static -L "$python" "$python/usr/bin/python3.11" -c '
import os, sys
sys.path.insert(0, sys.argv[1])
import tollbar
assert os.uname().machine == "aarch64"
limiter = tollbar.Limiter("3/day")
assert [limiter.allow() for _ in range(5)] == [True] * 3 + [False] * 2
table = tollbar.Table("2/day burst 2", 100)
assert [bool(table.check(k)) for k in ("a", "a", "a", "b")] == [True, True, False, True]
assert tollbar.Lease
' "$work/aarch64-manylinux"
}
# Out of the repository, where neither a checkout nor an installed library is.
sdist_builds() {
    away=$(mktemp -d) || return 1
    python3 -m venv "$away/venv" && PKG_CONFIG_PATH=/nonexistent "$away/venv/bin/pip" --quiet install "$wheels/tollbar-$version.tar.gz" &&
        (cd "$away" && venv/bin/python -c 'import tollbar; l = tollbar.Limiter("1/day"); assert l.allow() and not l.allow(); print(tollbar.__file__)')
    status=$?
    rm -rf "$away"
    return $status
}
check "musllinux x86_64 asks for nothing but musl" asks_musl_only x86_64
check "musllinux aarch64 asks for nothing but musl" asks_musl_only aarch64
check "manylinux aarch64 decides, emulated" decides_on_arm
check "the sdist builds with Rust alone" sdist_builds
finish
