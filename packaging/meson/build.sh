#!/bin/sh
# build.sh SOURCE OUT: for meson.build: the libraries of the sources, in the directory OUT, which
# need not be below them.
set -eu
out=$(cd "$2" && pwd)
cd "$1"
tools/lib.sh "$out" 1
