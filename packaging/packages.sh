#!/bin/sh
# packages.sh [PART...]: what a release has, into build/packages; `make packages` calls it. Parts,
# all of them without arguments:
#
#   tarball   C libraries for x86_64 and aarch64, and the source with its crates
#   debian    for each of SUITES, by default this machine's and the other of bookworm and trixie
#   rpm       for Fedora and its kin
#   python    wheels and the sdist
#   go        the module
#   crates    for crates.io
#   sbom      what is in it all, and its sums
set -eu
cd "$(dirname "$0")/.."
for part in ${*:-tarball debian rpm python go crates sbom}; do
    case $part in
    tarball | rpm | python | go | crates | sbom) packaging/$part.sh ;;
    debian)
        for suite in ${SUITES:-bookworm trixie}; do
            packaging/debian.sh "$suite"
        done
        ;;
    *) echo "packages.sh: found $part; expected: tarball, debian, rpm, python, go, crates or sbom" >&2 && exit 2 ;;
    esac
done
