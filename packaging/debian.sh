#!/bin/sh
# debian.sh [--built] [SUITE]: the Debian packages, into build/packages/debian/SUITE, for this
# machine's Debian and its nginx, or for those of SUITE in a clean system (packaging/root.sh).
# lintian's errors end it.
#
#   --built     the libraries and the command are those that make has built, and no Rust is needed: for SUITE always
#   REBUILD=N   a number for the version's end: a package that is built again for a newer nginx takes the place of the older one
set -eu
built=
[ "${1:-}" != --built ] || { built=yes && shift; }
suite=${1:-}
cd "$(dirname "$0")/.."
top=$PWD
here=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
[ "${suite:-$here}" != "$here" ] || suite=
name=${suite:-$here}
case $name in
bookworm) release=12 ;;
trixie) release=13 ;;
*) echo "debian.sh: found ${name:-no Debian}; expected: bookworm or trixie" >&2 && exit 2 ;;
esac
[ -z "$suite" ] || built=yes
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)${REBUILD:++$REBUILD}~deb$release
work=$top/build/packages-work/debian-$name
tree=$work/tollbar-$version
out=$top/build/packages/debian/$name
rm -rf "$work" "$out"
mkdir -p "$work" "$out"
if [ -z "$built" ]; then
    packaging/source.sh "$tree" vendored
else
    packaging/source.sh "$tree"
    make --silent lib rules build/tollbar
    mkdir "$work/built"
    cp -a build/libtollbar*.a build/libtollbar*.so* build/tollbar "$work/built"
fi
cp -r packaging/debian "$tree/debian"
when=$(packaging/date.sh)
cat >"$tree/debian/changelog" <<EOF
tollbar ($version) unstable; urgency=medium

  * Version $version: see /usr/share/doc/libtollbar1/changelog.gz.

 -- $(sed -n 's/^Maintainer: //p' packaging/debian/control)  $(date -u -R -d "@$when")
EOF
# What is built inside finds the tree at the same place, so that both builds write the same bytes.
cat >"$work/build.sh" <<EOF
set -eu
cd /out/tollbar-$version
export SOURCE_DATE_EPOCH=$when TOLLBAR_BUILT=/out/built DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS:-}
dpkg-buildpackage -b -us -uc -d ${built:+-Ppkg.tollbar.built}
cd ..
lintian --fail-on error --tag-display-limit 0 ./*.changes
EOF
if [ -n "$suite" ]; then
    root=$(packaging/root.sh "$suite" build)
    OUT=$work packaging/inside.sh "$root" sh /out/build.sh >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2 && exit 1; }
else
    tools/setup.sh debian
    sed "s|/out/|$work/|g" "$work/build.sh" >"$work/build-here.sh"
    sh "$work/build-here.sh" >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2 && exit 1; }
fi
grep -E '^[EWI]: ' "$work/log" >"$work/lintian" || :
mv "$work"/*.deb "$work"/*.buildinfo "$work"/*.changes "$out"
rm -rf "$tree"
echo "$out: $(find "$out" -name '*.deb' | wc -l) packages, lintian: $(grep -c '^E' "$work/lintian") errors, $(grep -c '^W' "$work/lintian") warnings"
