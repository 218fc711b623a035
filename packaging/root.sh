#!/bin/sh
# root.sh SUITE build|test: a clean Debian of that release in build/roots/SUITE-KIND, made once by
# debootstrap from the mirror of this machine's apt. Needs root. Prints the directory.
#
#   test    what a user has before he installs tollbar: Debian with a C compiler, Python's venv and curl. No Rust, no nginx.
#   build   what builds the Debian packages from the library's archives, for that release's nginx. No Rust.
#
# The directories stay as they are: packaging/inside.sh runs commands in a layer above them.
set -eu
suite=$1 kind=$2
cd "$(dirname "$0")/.."
case $kind in
test) packages="ca-certificates curl gcc libc6-dev pkg-config python3-venv" ;;
build) packages="debhelper dpkg-dev fakeroot gcc libc6-dev lintian make nginx-dev" ;;
*) echo "root.sh: found $kind; expected: build or test" >&2 && exit 2 ;;
esac
roots=$PWD/build/roots
root=$roots/$suite-$kind
mkdir -p "$roots"
# Two lanes of `make test` may want the same one.
exec 9>"$roots/lock"
flock 9
if [ ! -e "$root.made" ]; then
    tools/setup.sh roots >&2
    echo "making a clean Debian in $root" >&2
    base=$roots/$suite-base
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -m 1 '/debian/*$') || mirror=
    if [ ! -e "$base.made" ]; then
        rm -rf "$base"
        debootstrap --variant=minbase "$suite" "$base" ${mirror:+"$mirror"} >"$base.log" 2>&1 || {
            tail -n 5 "$base.log" >&2
            exit 1
        }
        touch "$base.made"
    fi
    rm -rf "$root"
    cp -a "$base" "$root"
    # shellcheck disable=SC2086
    packaging/inside.sh --keep "$root" sh -c 'apt-get update -q && apt-get install -y -q --no-install-recommends "$@" && apt-get clean' sh \
        $packages >"$root.log" 2>&1 || {
        tail -n 5 "$root.log" >&2
        exit 1
    }
    touch "$root.made"
fi
echo "$root"
