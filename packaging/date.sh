#!/bin/sh
# The time that packages carry, in seconds: of the last commit, or SOURCE_DATE_EPOCH. Two builds of
# one commit so have the same bytes.
set -eu
cd "$(dirname "$0")/.."
[ -z "${SOURCE_DATE_EPOCH:-}" ] || { echo "$SOURCE_DATE_EPOCH" && exit; }
git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.lock
