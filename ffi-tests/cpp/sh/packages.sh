# shellcheck shell=sh
# What `make install` and `cmake --install` put down, found through pkg-config and CMake; the source
# tree inside another project. That a C program finds the library through pkg-config is for tests/c.
# Sourced.

version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)

# PREFIX [VARIABLE=VALUE...]
install_cpp() {
    rm -rf "$1"
    prefix=$1
    shift
    make -s -C "$root" install B="$build" PREFIX="$prefix" "$@"
}

# PREFIX: the headers, and the package without a path in it.
headers_are_installed() {
    diff -r "$root/include" "$1/include" || return 1
    ! grep -n -e '@' -e "$1" "$1"/lib/cmake/tollbar/*.cmake
}

# PREFIX [FLAG]: the example through pkg-config, with the shared library or in a program that is
# static.
through_pkg_config() {
    flags=$(PKG_CONFIG_PATH=$1/lib/pkgconfig pkg-config ${2:+--static} --cflags --libs tollbar) || return 1
    # shellcheck disable=SC2086
    g++ -std=c++17 ${2:-} -o "$work/installed" "$here/example.cpp" $flags && LD_LIBRARY_PATH=$1/lib "$work/installed"
}

# PROGRAM shared|static [LIBRARY]: it runs, and has or has not the library in it.
is_linked() {
    "$1" || return 1
    if readelf -d "$1" | grep -q "lib${3:-tollbar}.so.1"; then [ "$2" = shared ]; else [ "$2" = static ]; fi
}

# PROJECT DIRECTORY DEFAULT-LIBRARY CMAKE-FLAGS...: configures, builds and runs its programs.
cmake_project() {
    project=$1 into=$work/$2 usual=$3
    shift 3
    rm -rf "$into"
    cmake -S "$here/cmake/$project" -B "$into" "$@" && cmake --build "$into" || return 1
    is_linked "$into/with_shared" shared && is_linked "$into/with_static" static && is_linked "$into/with_tollbar" "$usual" || return 1
    for library in tollbar tollbar-redis; do
        is_linked "$into/both_with_shared" shared $library && is_linked "$into/both_with_static" static $library &&
            is_linked "$into/both" "$usual" $library || return 1
    done
    [ "$project" != find ] || is_linked "$into/in_c" "$usual"
}

# VERSION PREFIX: whether find_package takes the installed one for that.
finds_version() {
    mkdir -p "$work/version"
    printf 'cmake_minimum_required(VERSION 3.19)\nproject(asks LANGUAGES C)\nfind_package(tollbar %s CONFIG REQUIRED)\nmessage("found ${tollbar_VERSION}")\n' \
        "$1" > "$work/version/CMakeLists.txt"
    rm -rf "$work/version/build"
    cmake -S "$work/version" -B "$work/version/build" -DCMAKE_PREFIX_PATH="$2" > "$work/version/log" 2>&1 &&
        grep -qx "found $version" "$work/version/log"
}

# PREFIX: find_package finds a version that fits, and refuses every other one with a message.
knows_versions() {
    finds_version "" "$1" && finds_version "$version" "$1" && finds_version "$version EXACT" "$1" && finds_version "0.0.1...9" "$1" || return 1
    for other in 99 "0.0.1 EXACT" "0.0.1...<$version" "9...10"; do
        if finds_version "$other" "$1"; then
            echo "found for $other"
            return 1
        fi
        grep -q 'version: ' "$work/version/log" || return 1
    done
    ! finds_version "COMPONENTS wings" "$1" && grep -q 'no component wings' "$work/version/log"
}

# PREFIX: a file that has gone is missed by CMake, not by the linker; libtollbar-redis's by those
# that ask for it.
misses_a_file() {
    rm "$1/lib/libtollbar-redis.a"
    finds_version "" "$1" || return 1
    ! finds_version "COMPONENTS redis" "$1" && tells 'libtollbar-redis.a is missing' || return 1
    rm "$1/lib/libtollbar.a"
    ! finds_version "" "$1" && tells 'libtollbar.a is missing'
}

# Whether CMake's message has these words. CMake breaks long lines.
tells() {
    tr -s ' \n' '  ' <"$work/version/log" | grep -q "$1"
}

# The source tree through CMake alone, with the paths of a distribution, and a stage.
cmake_installs() {
    rm -rf "$work/own" "$work/stage"
    cmake -S "$root" -B "$work/own" -DCMAKE_INSTALL_LIBDIR=lib/some-linux && cmake --build "$work/own" || return 1
    DESTDIR=$work/stage cmake --install "$work/own" --prefix /opt/tollbar || return 1
    stage=$work/stage/opt/tollbar
    diff -r "$root/include" "$stage/include" || return 1
    for library in tollbar tollbar-redis; do
        grep -x 'libdir=/opt/tollbar/lib/some-linux' "$stage/lib/some-linux/pkgconfig/$library.pc" || return 1
        cmp "$stage/lib/some-linux/lib$library.so.1" "$work/own/lib/lib$library.so" || return 1
    done
    cmake_project find staged static -Dtollbar_DIR="$stage/lib/some-linux/cmake/tollbar"
}

# A source that changes is a reason for CMake to build anew: each that is compiled in is one of its
# dependencies.
cmake_knows_its_sources() {
    cmake -S "$root" -B "$work/knows" -G 'Unix Makefiles' || return 1
    find "$root"/src "$root"/crates/*/src -name '*.rs' -o -name '*.lua' | while read -r source; do
        grep -qF "$source" "$work/knows/CMakeFiles/tollbar_libraries.dir/build.make" || { echo "not known: $source" && return 1; }
    done
}

packages() {
    # The CMake projects build the libraries that `make lib` has built: only what is not there is
    # compiled again.
    export CARGO_TARGET_DIR="$build/cargo"
    check "make install PREFIX=..." install_cpp "$work/prefix"
    check "installed: headers, a package without paths" headers_are_installed "$work/prefix"
    check "the C++ example, through pkg-config" through_pkg_config "$work/prefix"
    check "the C++ example, through pkg-config --static" through_pkg_config "$work/prefix" -static
    check "find_package, static unless asked" cmake_project find find-static static -DCMAKE_PREFIX_PATH="$work/prefix"
    check "find_package, BUILD_SHARED_LIBS" \
        cmake_project find find-shared shared -DCMAKE_PREFIX_PATH="$work/prefix" -DBUILD_SHARED_LIBS=ON
    check "find_package knows versions and components" knows_versions "$work/prefix"
    rm -rf "$work/moved"
    mv "$work/prefix" "$work/moved"
    check "find_package, after the installation was moved" \
        cmake_project find find-moved static -DCMAKE_PREFIX_PATH="$work/moved"
    check "find_package misses a file" misses_a_file "$work/moved"
    check "add_subdirectory, static unless asked" cmake_project inside inside static
    check "add_subdirectory, BUILD_SHARED_LIBS" cmake_project inside inside-shared shared -DBUILD_SHARED_LIBS=ON
    check "cmake --install to a stage, and found there" cmake_installs
    check "add_subdirectory builds what is stale" cmake_knows_its_sources
}
