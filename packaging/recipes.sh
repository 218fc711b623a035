#!/bin/sh
# recipes.sh: recipes for Conan, vcpkg and Meson, into build/packages/recipes, which fetch the
# source archive of the release. URL stands for the place of the archive, by default that of the
# release.
set -eu
cd "$(dirname "$0")/.."
. packaging/archive.sh
archive=build/packages/tollbar-$version.tar.gz
packaging/tarball.sh source >/dev/null
url=${URL:-https://github.com/tollbar/tollbar/releases/download/v$version/${archive##*/}}
out=build/packages/recipes
rm -rf "$out"
mkdir -p "$out"
# TEMPLATE FILE
fill_in() {
    sed -e "s|@VERSION@|$version|g" -e "s|@URL@|$url|g" -e "s|@SHA256@|$(sha256sum "$archive" | cut -d ' ' -f 1)|g" \
        -e "s|@SHA512@|$(sha512sum "$archive" | cut -d ' ' -f 1)|g" "$1" >"$2"
}
cp -r packaging/conan "$out/conan"
cp packaging/meson/smoke.c "$out/conan/test_package"
fill_in packaging/conan/conandata.yml.in "$out/conan/conandata.yml"
rm "$out/conan/conandata.yml.in"
mkdir "$out/vcpkg" "$out/meson"
cp packaging/vcpkg/tollbarConfig.cmake "$out/vcpkg"
fill_in packaging/vcpkg/vcpkg.json.in "$out/vcpkg/vcpkg.json"
fill_in packaging/vcpkg/portfile.cmake.in "$out/vcpkg/portfile.cmake"
fill_in packaging/meson/tollbar.wrap.in "$out/meson/tollbar.wrap"
echo "$out"
