#!/bin/sh
# Makes crates/tollbar-cli/page/vendor again: Observable Plot and the parts of d3 that it uses, in
# one file. Needs npm and its registry; building the command does not. The versions are pinned here,
# and the licences come along.
set -eu
cd "$(dirname "$0")/.."
page=$PWD/crates/tollbar-cli/page
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$page/plot-entry.js" "$work"
cd "$work"
npm init -y >/dev/null
npm install --silent @observablehq/plot@0.6.17 d3@7.9.0 esbuild@0.25.12
npx esbuild plot-entry.js --bundle --minify --format=iife --target=es2020 --legal-comments=none --outfile="$page/vendor/plot.js"
{
    for package in @observablehq/plot $(cd node_modules && ls -d d3*) isoformat interval-tree-1d binary-search-bounds internmap delaunator robust-predicates; do
        license=$(ls node_modules/$package/LICENSE* node_modules/$package/LICENCE* node_modules/$package/UNLICENSE 2>/dev/null | head -n 1)
        [ -n "$license" ] || { echo "no licence of $package" >&2 && exit 1; }
        printf '%s %s\n\n' "$package" "$(sed -n 's/^ *"version": "\(.*\)".*/\1/p' node_modules/$package/package.json | head -n 1)"
        cat "$license"
        printf '\n----\n\n'
    done
} >"$page/vendor/LICENSES"
(cd "$page/vendor" && sha256sum plot.js LICENSES >SHA256SUMS)
ls -l "$page/vendor"
