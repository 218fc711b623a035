#!/bin/sh
# tools.sh VENV REQUIREMENTS: makes the venv have what the file names, if it has not been made by
# this very file.
set -eu
cmp -s "$2" "$1/made-by" && exit
python3 -m venv --clear "$1"
"$1/bin/pip" --quiet install -r "$2"
cp "$2" "$1/made-by"
