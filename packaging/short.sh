#!/bin/sh
# short.sh: the part of `make packages` and `make packages-test` that `make test` runs, in less than
# a minute when the library and the clean system are there. Counts its checks.
set -u
cd "$(dirname "$0")/.."
. ffi-tests/c/sh/check.sh
mkdir -p build/packages-work
log=$PWD/build/packages-work/short.log

# Twice the same bytes, whatever the time of day is.
same_bytes() {
    sum=$(sha256sum "$1") && shift && "$@" && echo "$sum" | sha256sum --check
}
small() {
    cargo package --quiet --allow-dirty --no-verify --target-dir build/packages-work/crates --package tollbar || return 1
    bytes=$(cat build/packages-work/crates/package/tollbar-[0-9]*.crate | wc -c)
    echo "$bytes bytes"
    [ "$bytes" -le "$crate_limit" ]
}
# What the source packages are made of has each file of tools/ that its own scripts name.
complete() {
    packaging/source.sh build/packages-work/source || return 1
    (cd build/packages-work/source && for file in $(grep -oh 'tools/[a-z-]*\.[a-z]*' tools/lib*.sh tools/cli.sh tools/install.sh | sort -u); do
        [ -e "$file" ] || { echo "$file is missing" && exit 1; }
    done)
}
# FILE: adds the sum of another run's checks.
add() {
    # shellcheck disable=SC2046
    set -- $(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$1")
    passed=$((passed + ${1:-0})) failed=$((failed + ${2:-1}))
}

. tools/rust.sh
. packaging/limits.sh
architecture=$(uname -m)
check "the source has what its scripts call" complete
check "a tarball for C" packaging/tarball.sh "$architecture"
check "the tarball, again: the same bytes" same_bytes build/packages/tollbar-*-linux-"$architecture".tar.gz packaging/tarball.sh "$architecture"
packaging/tests/static.sh >"$log.static"
grep -v '^[0-9]* passed, [0-9]* failed$' "$log.static"
add "$log.static"
check "a wheel with the command" packaging/python.sh "$architecture-command"
check "the wheel with the command, again: the same bytes" same_bytes build/packages/python/tollbar_command-*"$architecture".whl packaging/python.sh "$architecture-command"
check "a wheel" packaging/python.sh "$architecture-manylinux"
check "the wheel, again: the same bytes" same_bytes build/packages/python/tollbar-*manylinux*"$architecture".whl packaging/python.sh "$architecture-manylinux"
measure "the crate is small" small
measure "workflows and Dockerfiles: what reading shows" build/packages-work/python-tools/bin/python packaging/tests/texts.py
measure "the licenses of all crates are those that deny.toml allows" build/packages-work/python-tools/bin/python packaging/tests/licenses.py
if [ "$(id -u)" = 0 ]; then
    suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
    measure "Debian packages, without an error of lintian's" packaging/debian.sh --built
    packaging/test.sh --short "$suite" >"$log.installed" 2>&1
    grep -v '^[0-9]* passed, [0-9]* failed$' "$log.installed"
    add "$log.installed"
else
    echo "skipped: packages in a clean system, which only root can make"
fi
finish
