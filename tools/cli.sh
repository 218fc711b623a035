#!/bin/sh
# Builds the command into $1; for another target than this machine's, $2.
set -eu
build=${1:?usage: cli.sh BUILD [TARGET]}
cd "$(dirname "$0")/.."
. tools/rust.sh
tollbar_cli_least=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' crates/tollbar-cli/Cargo.toml)
if [ "$(printf '%s\n' "$tollbar_cli_least" "$rust_version" | sort -V | head -n 1)" != "$tollbar_cli_least" ]; then
    echo "Rust is too old for the command: there is $rust_version, and $tollbar_cli_least or later is needed (https://rustup.rs)" >&2
    exit 1
fi
# Without symbols it is a seventh smaller.
cargo rustc --quiet --profile command --package tollbar-cli --bin tollbar ${2:+--target "$2"} -- -Cstrip=symbols
mkdir -p "$build"
# A new file in the place of the old one, which may be running.
cp "target/${2:+$2/}command/tollbar" "$build/tollbar.new"
mv "$build/tollbar.new" "$build/tollbar"
