#!/bin/sh
# reproducible.sh [PART...]: builds the packages again, of the same commit, in a clone at another
# path, and compares them byte by byte with those in build/packages. Counts each file.
set -u
cd "$(dirname "$0")/.."
top=$PWD
. ffi-tests/c/sh/check.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$work/log
[ -z "$(git status --porcelain)" ] || { echo "reproducible.sh: found changes that are not committed; expected: none, since the clone has only commits" >&2 && exit 2; }
git clone --quiet --shared . "$work/clone-at-another-path" || exit 1
# Another path: whatever has it inside differs.
clone=$work/clone-at-another-path
mkdir -p "$clone/build"
# Clean systems and tools may be shared: what is built from them is not.
[ ! -d build/roots ] || ln -s "$top/build/roots" "$clone/build/roots"
# Another day, too, as far as a build asks for it.
SUITES="${SUITES:-}" TZ=Pacific/Kiritimati LC_ALL=C "$clone/packaging/packages.sh" "$@" >"$log" 2>&1 || { tail -n 30 "$log" && exit 1; }
cd "$clone/build/packages" || exit 1
find . -type f ! -name SHA256SUMS ! -name '*.buildinfo' ! -name '*.changes' ! -path './go/module/*' | sort >"$work/files"
while read -r file; do
    check "${file#./}" cmp "$file" "$top/build/packages/$file"
done <"$work/files"
finish
