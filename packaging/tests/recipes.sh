#!/bin/sh
# recipes.sh: builds a program by each recipe of packaging/recipes.sh from the source archive as it
# is in build/packages, and runs it. Conan and Meson are the real ones. Of vcpkg there is the port
# only: its functions are stood in for by packaging/tests/vcpkg.cmake. Counts its checks.
set -u
cd "$(dirname "$0")/../.."
. ffi-tests/c/sh/check.sh
. packaging/archive.sh
tools/setup.sh recipes || exit 1
. tools/rust.sh
work=$PWD/build/packages-work/recipes
archive=$PWD/build/packages/tollbar-$version.tar.gz
rm -rf "$work"
mkdir -p "$work"
log=$work/log
recipes=$PWD/build/packages/recipes
tools=$PWD/build/packages-work/recipes-tools
packaging/tools.sh "$tools" packaging/tests/recipes.txt || exit 1
export CONAN_HOME="$work/conan-home"
URL=file://$archive packaging/recipes.sh >/dev/null || exit 1

# KIND
by_meson() {
    project=$work/meson-$1
    mkdir -p "$project/subprojects/packagecache"
    cp "$recipes/meson/tollbar.wrap" "$project/subprojects"
    cp "$archive" "$project/subprojects/packagecache"
    cp packaging/meson/smoke.c "$project"
    cat >"$project/meson.build" <<EOF
project('app', 'c')
test('smoke', executable('smoke', 'smoke.c', dependencies: [dependency('tollbar-redis'), dependency('tollbar')]), args: '$version')
EOF
    meson setup -Ddefault_library="$1" "$project/build" "$project" && meson test -C "$project/build"
}
# SHARED
by_conan() {
    "$tools/bin/conan" profile detect --force && "$tools/bin/conan" create "$recipes/conan" --version "$version" -o "tollbar/*:shared=$1"
}
# KIND
by_vcpkg() {
    port=$work/vcpkg-$1
    mkdir -p "$port/app"
    cmake -DPORT="$recipes/vcpkg" -DKIND="$1" -DWORK="$port" -DARCHIVE="$archive" -P packaging/tests/vcpkg.cmake || return 1
    cp packaging/meson/smoke.c "$port/app"
    sed 's/^project.*/project(smoke LANGUAGES C)/' packaging/conan/test_package/CMakeLists.txt >"$port/app/CMakeLists.txt"
    cmake -S "$port/app" -B "$port/app/build" -DCMAKE_PREFIX_PATH="$port/packages" && cmake --build "$port/app/build" || return 1
    LD_LIBRARY_PATH="$port/packages/lib" "$port/app/build/smoke" "$version"
}
check "Meson, static" by_meson static
check "Meson, shared" by_meson shared
check "Conan, static" by_conan False
check "Conan, shared" by_conan True
check "vcpkg's port, static" by_vcpkg static
check "vcpkg's port, shared" by_vcpkg dynamic
finish
