#!/bin/sh
# test.sh [--short] [SUITE...]: installs what `make packages` has made in clean systems that have no
# Rust and no checkout, and takes the time from the package to the first refusal. As root. --short:
# what needs no network but Debian's, in one system.
set -u
cd "$(dirname "$0")/.."
short=
[ "${1:-}" != --short ] || { short=yes && shift; }
. ffi-tests/c/sh/check.sh
log=$(mktemp)
PATH=$PATH:/usr/local/go/bin
GO_ROOT=$(go env GOROOT 2>/dev/null) || GO_ROOT=
export GO_ROOT
trap 'rm -f "$log"' EXIT

# Less than a minute from the package to the first refusal, by the processors' time: a busy
# machine's clock says nothing of the package.
in_time() {
    seconds=$(tail -n 1 "$log" | sed -n 's/^\([0-9]*\) s of processors .*/\1/p')
    [ -n "$seconds" ] && [ "$seconds" -lt 60 ]
}
# ROOT TEST...
installs() {
    root=$1
    shift
    packaging/inside.sh "$root" sh "/tests/$@" 2>&1 && in_time
}

for suite in ${*:-bookworm trixie}; do
    root=$(packaging/root.sh "$suite" test) || { echo "no clean $suite" && failed=$((failed + 1)) && continue; }
    measure "$suite: no Rust, no tollbar" packaging/inside.sh "$root" sh -c '! command -v cargo && ! command -v rustc && ! find / -xdev -name "*tollbar*" -not -path "/tests/*" -not -path "/packages/*" -not -path "/docs/*" | grep . && echo clean'
    measure "$suite: C tarball" installs "$root" c.sh
    measure "$suite: libtollbar-dev" installs "$root" dev.sh "$suite"
    measure "$suite: the command" installs "$root" command.sh "$suite"
    measure "$suite: nginx modules" installs "$root" nginx.sh "$suite"
    measure "$suite: the five minutes of docs/nginx.md" installs "$root" nginx-page.sh "$suite"
    [ -n "$short" ] || measure "$suite: Go module" installs "$root" go.sh
    measure "$suite: Python wheel" installs "$root" python.sh ${short:+plain}
done
finish
