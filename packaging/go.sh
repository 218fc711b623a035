#!/bin/sh
# go.sh: the Go module as it is published, into build/packages/go: the sources, with the headers and
# the libraries' objects for amd64 and arm64 beside them, so that `go get` needs a C compiler and
# nothing else, and no flags; and vendoring keeps it all. build/packages/go is a module proxy
# (GOPROXY=file://...), and build/packages/go/module is what a tag bindings/go/vVERSION holds in
# place of bindings/go.
set -eu
cd "$(dirname "$0")/.."
. packaging/archive.sh
path=$(sed -n 's/^module //p' bindings/go/go.mod)
out=build/packages/go
module=$out/module
rm -rf "$out"
mkdir -p "$module" "$out/$path/@v"

# A test needs what is outside the module; a module below it is its own.
git ls-files bindings/go 2>/dev/null | grep '\.\(go\|s\|h\|md\|mod\)$' | grep -v '_test\.go$\|/differential/\|/tollgin/\|/tollecho/\|/tollchi/\|/tollgrpc/\|/tollpurego/\|/tollzero/\|link_repository' |
    sed 's|^bindings/go/||' | tar -cf - -C bindings/go -T - | tar -xf - -C "$module"
cp LICENSE-APACHE LICENSE-MIT "$module"
cp include/tollbar.h "$module"
cp include/tollbar.h include/tollbar_redis.h "$module/redis"

# PACKAGE DIRECTORY LIBRARY: the objects, and what says where the headers are.
with_objects() {
    for architecture in x86_64:amd64 aarch64:arm64; do
        if [ "${architecture%:*}" = "$(uname -m)" ]; then
            build=build
            make --silent lib
        else
            build=build/${architecture%:*}
            tools/setup.sh "cross-${architecture%:*}"
            make --silent lib B="$build" TARGET="${architecture%:*}-unknown-linux-gnu" CROSS="${architecture%:*}-linux-gnu-"
        fi
        # The archive has one object.
        ar p "$build/$3.a" >"$2/$1_linux_${architecture#*:}.syso"
    done
    cat >"$2/link_module.go" <<EOF
//go:build cgo && !tollbar_installed && !tollbar_purego

package $1

// The library is in the .syso files beside this one, which Go links by itself.

// #cgo CFLAGS: -I\${SRCDIR} -DTOLLBAR_GO_INSTALLED
import "C"
EOF
}
# The library of rules is not in the module: a program that wants it installs it.
cat >"$module/rules/link_module.go" <<'EOF'
//go:build cgo && !tollbar_installed && !tollbar_purego

package rules

// #error "package rules needs libtollbar-rules: install it, and build with -tags tollbar_installed"
import "C"
EOF
with_objects tollbar "$module" libtollbar
with_objects redis "$module/redis" libtollbar-redis

# SOURCES DIRECTORY PATH: the files of a module proxy.
pack() {
    mkdir -p "$2"
    python3 - "$1" "$2" "$3" "v$version" "$(packaging/date.sh)" <<'EOF'
import json, pathlib, sys, time, zipfile

module, to, path, version, when = sys.argv[1:]
date = time.gmtime(int(when))
directory = pathlib.Path(to)
with zipfile.ZipFile(directory / f"{version}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    for file in sorted(pathlib.Path(module).rglob("*")):
        if file.is_file():
            entry = zipfile.ZipInfo(f"{path}@{version}/{file.relative_to(module)}", date[:6])
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, file.read_bytes())
(directory / f"{version}.mod").write_bytes((pathlib.Path(module) / "go.mod").read_bytes())
(directory / f"{version}.info").write_text(json.dumps({"Version": version, "Time": time.strftime("%Y-%m-%dT%H:%M:%SZ", date)}))
(directory / "list").write_text(f"{version}\n")
EOF
}
pack "$module" "$out/$path/@v" "$path"
# What needs another module, such as a framework, is a module of its own, which needs this release.
for framework in tollgin tollecho tollchi tollgrpc tollpurego tollzero; do
    sources=$out/$framework
    mkdir "$sources"
    git ls-files "bindings/go/$framework" | grep '\.\(go\|lua\|sum\)$' | grep -v '_test\.go$' | sed "s|^bindings/go/$framework/||" |
        tar -cf - -C "bindings/go/$framework" -T - | tar -xf - -C "$sources"
    cp LICENSE-APACHE LICENSE-MIT "$sources"
    sed "/^replace /d; s|$path v0.0.0|$path v$version|" bindings/go/$framework/go.mod >"$sources/go.mod"
    pack "$sources" "$out/$path/$framework/@v" "$path/$framework"
done
echo "$out/$path/@v/v$version.zip"
