#!/bin/sh
# run.sh BUILD-DIRECTORY [THEOREM...]: proves the arithmetic of algorithms with z3, which pip installs into the
# directory. The last line is `N passed, N failed`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv=${1:?the build directory}/solver
shift
if ! "$venv/bin/python" -c 'import z3' 2>/dev/null; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/python" -m pip --quiet --disable-pip-version-check install -r "$here/requirements.txt" || {
        echo "z3-solver cannot be installed into $venv; expected: a package index that pip reaches"
        exit 1
    }
fi
PYTHONDONTWRITEBYTECODE=1 exec "$venv/bin/python" "$here/prove.py" "$@"
