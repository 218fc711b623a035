#!/bin/sh
# Installs what a target needs and is missing: setup.sh lib | openssl | dependent | go | nginx | bench | ffi |
# peers | valkey | arm64 | mutants | roots | debian | docs | packages | soak | test. As root on
# Debian with apt-get; otherwise it says exactly what to install, and fails.
set -eu
packages=
# A line for each that no package of this Debian has.
others=
# A command, and the Debian package that has it.
wants() { command -v "$1" >/dev/null 2>&1 || packages="$packages $2"; }
# A file, likewise.
wants_file() { [ -e "$1" ] || packages="$packages $2"; }

wants cc gcc
wants make make
wants ld binutils
# The nginx modules are built with what nginx-dev has.
wants_nginx() { wants_file /usr/share/nginx/src/conf_flags nginx-dev; }
# They are tested with the rest. Debian has nginx itself in a directory that is not on every user's
# PATH.
wants_nginx_tests() {
    wants_nginx
    PATH=$PATH:/usr/sbin:/sbin wants nginx nginx-light
    wants_file /usr/lib/nginx/modules/ngx_stream_module.so libnginx-mod-stream
    wants wrk wrk
    wants curl curl
    wants python3 python3
    # Debian's pytest is for Debian's python3, which need not be the first on the path.
    python3 -c 'import pytest' 2>/dev/null || /usr/bin/python3 -c 'import pytest' 2>/dev/null || packages="$packages python3-pytest"
}

# from_backports PACKAGE...: what Debian has for those who want newer ones than its own. Nothing
# where there is no apt-get.
from_backports() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 0
    . /etc/os-release
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -m 1 '/debian/*$') || mirror=
    [ "${ID:-}" = debian ] && [ -n "$mirror" ] || return 0
    echo "installing: $* from $VERSION_CODENAME-backports"
    echo "deb $mirror $VERSION_CODENAME-backports main" >/etc/apt/sources.list.d/backports-for-tollbar.list
    apt-get update -q >/dev/null
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends -t "$VERSION_CODENAME-backports" "$@" >/dev/null
}

# Go from 1.21 on fetches by itself the version that the package asks for. Debian's own may be
# older; what it has for those who want newer ones need not be.
wants_go() {
    least=$(sed -n 's/^go //p' "$(dirname "$0")/../bindings/go/go.mod")
    has_go 1.21 && return
    from_backports golang-go ca-certificates
    has_go 1.21 && return
    others="${others}missing: Go $least or later in PATH (https://go.dev/dl); there is ${version:-none}
"
}
has_go() {
    version=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null | sed 's/^go//') || version=
    [ "$(printf '%s\n' "$1" "$version" | sort -V | head -n 1)" = "$1" ]
}
# Where Go's own installer puts it, which is not on every PATH.
PATH=$PATH:/usr/local/go/bin

# Debian's Lua module wants OpenResty's LuaJIT, which takes the place of the plain one: named here,
# so that apt-get does not take away the one without installing the other.
wants_luajit() { command -v luajit >/dev/null 2>&1 || command -v luajit2 >/dev/null 2>&1 || packages="$packages luajit2"; }
wants_lua() {
    wants_luajit
    wants_file /usr/lib/nginx/modules/ngx_http_lua_module.so "libnginx-mod-http-lua luajit2"
}

# PHP has its FFI inside; Node gets koffi through npm, Java JNA from Debian.
wants_ffi() {
    wants php php-cli
    wants node nodejs
    wants npm npm
    wants javac default-jdk-headless
    wants_file /usr/share/java/jna.jar libjna-java
    wants curl curl
    wants python3 python3
}

wants_venv() { python3 -c 'import ensurepip' 2>/dev/null || packages="$packages python3-venv"; }
# The first python3 on the path builds the package, and it need not be Debian's.
wants_python() {
    wants_venv
    python3 -c 'import sysconfig, os, sys; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' 2>/dev/null ||
        packages="$packages python3-dev"
}

# The peers in other languages that limits are measured beside, nginx among them.
wants_peers() {
    wants_go
    wants_nginx_tests
    wants_python
    wants javac default-jdk-headless
    wants mvn maven
}

# Debian has it from 13 on.
wants_valkey() {
    command -v valkey-server >/dev/null 2>&1 || from_backports valkey-server
    command -v valkey-server >/dev/null 2>&1 && return
    others="${others}missing: valkey-server in PATH (https://valkey.io/download)
"
}

# What builds Debian's packages, the nginx modules among them.
wants_debian() {
    wants_nginx
    wants dpkg-buildpackage dpkg-dev
    wants dh debhelper
    wants lintian lintian
    wants fakeroot fakeroot
}

# apt-get download, for an architecture of Debian's other than this machine's: its package lists. It
# installs none of its packages.
wants_lists() {
    dpkg --print-foreign-architectures 2>/dev/null | grep -qx "$1" && apt-cache show "musl-dev:$1" >/dev/null 2>&1 && return
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
        others="${others}missing: Debian's lists for $1; as root: dpkg --add-architecture $1 && apt-get update
"
        return
    fi
    dpkg --add-architecture "$1"
    apt-get update -q >/dev/null
}

# What lays out clean systems: those of Debian only.
wants_roots() {
    wants debootstrap debootstrap
    wants unshare util-linux
}

# A compiler for 64-bit ARM, what imitates such a processor, and libraries for it.
wants_arm64() {
    wants aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
    wants qemu-aarch64-static qemu-user-static
    wants redis-server redis-server
    wants_file /usr/include/cmocka.h libcmocka-dev
    wants_file /lib/ld-linux-aarch64.so.1 libc6:arm64
    wants_file /usr/lib/aarch64-linux-gnu/libcmocka.so libcmocka-dev:arm64
    case $packages in
    *:arm64*) [ "$(id -u)" != 0 ] || ! command -v dpkg >/dev/null 2>&1 || dpkg --add-architecture arm64 ;;
    esac
}

case ${1:-test} in
lib | dependent | mutants) ;;
openssl) wants_file /usr/include/openssl/ssl.h libssl-dev ;;
static-*) ;;
roots) wants_roots ;;
debian) wants_debian ;;
crates) ;;
macos) wants ld64.lld-14 lld-14 && wants llvm-strip-14 llvm-14 ;;
wheels)
    wants musl-gcc musl-tools
    wants qemu-aarch64-static qemu-user-static
    wants_python
    wants_lists arm64
    ;;
recipes)
    wants meson meson
    wants ninja ninja-build
    wants cmake cmake
    wants_python
    ;;
rpm) wants rpmbuild rpm ;;
python) wants_python ;;
musl) wants musl-gcc musl-tools ;;
musl-x86_64)
    wants musl-gcc musl-tools
    wants_lists amd64
    ;;
musl-aarch64)
    wants musl-gcc musl-tools
    wants_lists arm64
    ;;
cross-aarch64)
    wants aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
    wants_file /usr/aarch64-linux-gnu/lib/libc.so libc6-dev-arm64-cross
    ;;
cross-x86_64)
    wants x86_64-linux-gnu-gcc gcc-x86-64-linux-gnu
    wants_file /usr/x86_64-linux-gnu/lib/libc.so libc6-dev-amd64-cross
    ;;
soak)
    wants redis-server redis-server
    wants_venv
    ;;
go) wants_go ;;
nginx) wants_nginx ;;
peers) wants_peers ;;
ffi) wants_ffi ;;
valkey) wants_valkey ;;
arm64) wants_arm64 ;;
bench)
    wants valgrind valgrind
    wants_go
    wants g++ g++
    wants_python
    wants_luajit
    wants redis-server redis-server
    ;;
test)
    wants_peers
    wants_debian
    wants_roots
    wants_lua
    wants_ffi
    wants g++ g++
    wants clang clang
    wants valgrind valgrind
    wants abidw abigail-tools
    wants musl-gcc musl-tools
    wants pkg-config pkg-config
    wants cmake cmake
    wants setarch util-linux
    wants redis-server redis-server
    wants git git
    wants zstd zstd
    wants script bsdutils
    wants chromium chromium
    wants_file /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf fonts-dejavu-core
    wants_file /usr/include/cmocka.h libcmocka-dev
    wants_file /usr/include/openssl/ssl.h libssl-dev
    wants openssl openssl
    wants_file /usr/include/asio.hpp libasio-dev
    ;;
docs) wants_venv ;;
*)
    echo "setup.sh: lib, dependent, go, nginx, bench, ffi, peers, valkey, arm64, mutants, roots, debian, docs, soak or test" >&2
    exit 2
    ;;
esac
[ -z "$others" ] || printf '%s' "$others" >&2
if [ -n "$packages" ]; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
        echo "missing; as root: apt-get install$packages" >&2
        exit 1
    fi
    echo "installing:$packages"
    apt-get update -q >/dev/null
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $packages >/dev/null
fi
[ -z "$others" ] || exit 1
. "$(dirname "$0")/rust.sh"
if [ "${1:-test}" = test ]; then
    for part in fmt clippy; do
        cargo $part --version >/dev/null 2>&1 || rustup component add "$(echo $part | sed 's/fmt/rustfmt/')"
    done
fi
# TARGET: what rustc compiles for it against. A rustc that is not rustup's may have it from
# elsewhere.
wants_target() {
    [ -d "$(rustc --print target-libdir --target "$1")" ] || rustup target add "$1" && return
    echo "missing: Rust's libraries for $1 (rustup target add $1)" >&2
    exit 1
}
# Cargo's own directory for programs is on the PATH by now (rust.sh), whoever the user is.
wants_mutants() {
    cargo mutants --version >/dev/null 2>&1 || cargo install --quiet --locked cargo-mutants && return
    echo "missing: cargo-mutants (cargo install --locked cargo-mutants)" >&2
    exit 1
}
case ${1:-test} in
arm64) wants_target aarch64-unknown-linux-gnu ;;
cross-*) wants_target "${1#cross-}-unknown-linux-gnu" ;;
static-*) wants_target "${1#static-}-unknown-linux-musl" ;;
dependent) wants_target x86_64-unknown-none && wants_target aarch64-unknown-none && wants_target thumbv7em-none-eabihf ;;
macos) wants_target aarch64-apple-darwin && wants_target x86_64-apple-darwin ;;
mutants | soak) wants_mutants ;;
esac
