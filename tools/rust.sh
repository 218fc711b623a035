# shellcheck shell=sh
# Sourced by scripts that call cargo, from the top of the project or beside this file. Puts a Rust
# that is new enough first in PATH: that of rustup, in ~/.cargo/bin, unless only the one in PATH
# will do. Debian's is older than what the sources need, and a login shell's PATH is not
# everybody's. Without one that will do, it says what there is and what is needed, and ends the
# script.

rust_manifest=$(dirname "$0")/../Cargo.toml
[ -e "$rust_manifest" ] || rust_manifest=Cargo.toml
rust_least=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$rust_manifest" | head -n 1)

# rust_will_do DIRECTORY: whether it has a cargo and a rustc that is new enough; what it has is in
# $rust_version.
rust_will_do() {
    [ -x "$1/cargo" ] || return 1
    rust_version=$("$1/rustc" --version 2>/dev/null | sed -n 's/^rustc \([0-9.]*\).*/\1/p') || rust_version=
    [ -n "$rust_version" ] && [ "$(printf '%s\n' "$rust_least" "$rust_version" | sort -V | head -n 1)" = "$rust_least" ]
}

rust_found=$(command -v rustc 2>/dev/null) || rust_found=
rust_version=
if [ -n "${HOME:-}" ] && rust_will_do "$HOME/.cargo/bin"; then
    PATH=$HOME/.cargo/bin:$PATH
elif [ -n "$rust_found" ] && rust_will_do "${rust_found%/*}"; then
    PATH=${rust_found%/*}:$PATH
elif [ -n "$rust_version" ]; then
    echo "Rust is too old: ${rust_found:-$HOME/.cargo/bin/rustc} is $rust_version, and $rust_least or later is needed (https://rustup.rs)" >&2
    exit 1
else
    echo "missing: Rust $rust_least or later (https://rustup.rs)" >&2
    exit 1
fi
export PATH
