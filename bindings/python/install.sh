#!/bin/sh
# Installs the Python package as a user gets it: a venv in build/python, and pip install from this
# checkout. PYTHON names the interpreter.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
make --silent -C "$root" lib
venv=$root/build/python
pip="$venv/bin/python -m pip --quiet --disable-pip-version-check"

[ -x "$venv/bin/python" ] && "$venv/bin/python" -c '' 2>/dev/null || "${PYTHON:-python3}" -m venv --clear "$venv"
$pip install 'setuptools>=77'
$pip install --no-build-isolation --no-deps --force-reinstall "$here"
