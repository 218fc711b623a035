#!/bin/sh
# musl.sh ARCHITECTURE DIRECTORY: unpacks Debian's musl of another architecture, its headers among it, into the directory.
# Installed beside this machine's own it would confuse auditwheel.
set -eu
architecture=$1 to=$2
cd "$(dirname "$0")/.."
[ ! -e "$to/usr/lib/$architecture-linux-musl/libc.a" ] || exit 0
tools/setup.sh "musl-$architecture"
rm -rf "$to"
mkdir -p "$to/packages"
debians=$(echo "$architecture" | sed 's/aarch64/arm64/; s/x86_64/amd64/')
(cd "$to/packages" && apt-get download -q "musl:$debians" "musl-dev:$debians" >/dev/null 2>&1)
for package in "$to"/packages/*.deb; do dpkg-deb -x "$package" "$to"; done
# The linker is told of one directory.
cp -P "$to/lib/$architecture-linux-musl/libc.so" "$to/usr/lib/$architecture-linux-musl"
