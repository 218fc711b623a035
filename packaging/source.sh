#!/bin/sh
# source.sh DIRECTORY [vendored]: lays out what the C libraries, the command, the nginx modules and
# the LuaJIT module are built from, and nothing else: no tests, no benches, and manifests without
# what only these use. With `vendored` the crates that it depends on are beside it, so that it
# builds without a network. Source packages of all kinds are made of it.
set -eu
to=$1 vendored=${2:-}
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
. tools/rust.sh
rm -rf "$to"
mkdir -p "$to"
to=$(cd "$to" && pwd)

# PATH...: files that git knows, or all where there is no git (a source package of this kind).
copy() {
    if git rev-parse --git-dir >/dev/null 2>&1; then
        git ls-files -z -- "$@"
    else
        find "$@" -type f -print0
    fi | tar -cf - --null -T - | tar -xf - -C "$to"
}
copy src crates/*/src crates/tollbar-redis-c/openssl crates/tollbar-cli/page crates/*/Cargo.toml \
    Cargo.toml Cargo.lock CMakeLists.txt meson.build LICENSE-APACHE LICENSE-MIT README.md CHANGELOG.md abi include packaging \
    tools/install.sh tools/lib.sh tools/lib-rules.sh tools/old-stat.c tools/old-threads.sh tools/cli.sh tools/rust.sh nginx/build.sh nginx/common nginx/http nginx/limit_req nginx/stream bindings/lua/tollbar.lua bindings/lua/tollbar
rm -rf "$to/packaging/debian" "$to/packaging/tests" "$to/crates/tollbar-tower"

# The libraries' manifests, without what tests and benches need: cargo would ask for it all the
# same.
awk '/^members = \[/ { print "members = [\".\", \"crates/tollbar-redis\", \"crates/tollbar-c\", \"crates/tollbar-redis-c\", \"crates/tollbar-rules\", \"crates/tollbar-rules-c\", \"crates/tollbar-cli\"]"; skip = 1 }
    !skip && !/^default-members|^# What `cargo build`|^(loom|proptest|num-[a-z]+) = / { print }
    skip && /^\]/ { skip = 0 }' Cargo.toml >"$to/.manifest"
# MANIFEST: without its sections for tests, benches and examples.
shipped() { awk '/^\[/ { skip = /^\[dev-dependencies\]|^\[\[(bench|test|example)\]\]|cfg\(loom\)/ } !skip { print }' "$1"; }
shipped "$to/.manifest" >"$to/Cargo.toml"
rm "$to/.manifest"
(cd "$to" && ls crates/*/Cargo.toml) | while read -r manifest; do
    shipped "$manifest" >"$to/$manifest"
done

# The lock file loses what is not needed any more, and stays the same for the rest.
cd "$to"
cargo metadata --quiet --format-version 1 ${OFFLINE:+--offline} >"$to/.metadata"
rm "$to/.metadata"
if [ -n "$vendored" ]; then
    mkdir .cargo
    cargo vendor --quiet --locked ${OFFLINE:+--offline} vendor >/dev/null
    # The lock file names crates for Windows, which is none of the systems that this is for. So
    # their files are left out.
    for crate in vendor/windows-*; do
        find "$crate" -type f ! -name Cargo.toml ! -name .cargo-checksum.json -delete
        mkdir -p "$crate/src" && : >"$crate/src/lib.rs"
        sed -i 's/"files":{[^}]*}/"files":{}/' "$crate/.cargo-checksum.json"
    done
    cat >.cargo/config.toml <<'EOF'
[source.crates-io]
replace-with = "vendored-sources"

[source.vendored-sources]
directory = "vendor"
EOF
fi
