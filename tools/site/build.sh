#!/bin/sh
# Builds the documentation as a site into build/site, with the report of a log in it. A broken link
# ends the build. site/build.sh BUILD: `tollbar` has been built there.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:?usage: build.sh BUILD}" && pwd)
venv=$build/site-tools
if ! "$venv/bin/python" -c 'import material' 2>/dev/null; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/python" -m pip --quiet --disable-pip-version-check install -r "$root/tools/site/requirements.txt" || {
        echo "MkDocs cannot be installed into $venv; expected: a package index that pip reaches"
        exit 1
    }
fi
"$root/tools/demo-log.sh" >"$build/site.log"
"$build/tollbar" replay --policy '10/min' --policy '10/min burst 3' --html "$build/site-report.html" "$build/site.log" >/dev/null 2>&1
cd "$root"
# Not --quiet: MkDocs counts only the warnings that it prints.
NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" --no-color build --strict --clean -f tools/site/mkdocs.yml >"$build/site.out" 2>&1 || {
    cat "$build/site.out"
    exit 1
}
pages=$(find "$build/site" -name '*.html' | wc -l)
echo "build/site/index.html: $pages pages"
