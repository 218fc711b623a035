#!/bin/bash
# Builds the nginx modules, each a .so: build.sh OUT [NGINX-SOURCE]. `make nginx` calls it.
#
# Without a source tree they are built for the nginx that is installed, with Debian's nginx-dev,
# whose conf_flags say how that nginx was configured. A module loads only into the version of nginx
# that it was built for, so another nginx in PATH is an error. TOLLBAR_NGINX_DEV stands for the
# directory of nginx-dev.
#
# nginx's configure writes into the directory it is run in. It is run in one of links to the source
# tree, so that nothing there is written to, be it the system's or somebody's own.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(mkdir -p "$1" && cd "$1" && pwd)
source=${2:-${TOLLBAR_NGINX_DEV:-/usr/share/nginx/src}}
export TOLLBAR_BUILD=${TOLLBAR_BUILD:-$(dirname "$out")}

if [ ! -d "$source/auto" ]; then
    echo "$source is not nginx's source: install nginx-dev, or make nginx NGINX_SRC=directory" >&2
    exit 1
fi
source=$(cd "$source" && pwd)

# The nginx that a user would start, which need not be the one whose sources Debian has.
version_of() { sed -n 's/^#define NGINX_VERSION *"\(.*\)"/\1/p' "$1/src/core/nginx.h"; }
version=$(version_of "$source")
found=$(PATH=$PATH:/usr/sbin:/sbin command -v nginx) || found=
if [ $# -ge 2 ]; then
    echo "for nginx $version, whose sources are in $source"
elif [ -n "$found" ]; then
    installed=$("$found" -v 2>&1 | sed -n 's,^nginx version: [^/]*/\([^ ]*\).*,\1,p')
    if [ "$installed" != "$version" ]; then
        echo "$found is nginx $installed, and $source has the sources of $version: modules of these would not load there." >&2
        echo "For that nginx: make nginx NGINX_SRC=directory of its sources; for $version: make nginx NGINX_SRC=$source" >&2
        exit 1
    fi
fi
tree=$out/tree
objects=$out/objects

# Debian's conf_flags set this array.
NGX_CONF_FLAGS=(--with-compat)
configure=./configure
if [ -e "$source/conf_flags" ]; then
    # shellcheck disable=SC1091
    . "$source/conf_flags"
else
    [ -e "$source/configure" ] || configure=./auto/configure
    # TLS to a store by nginx's OpenSSL. A module with it loads into no nginx without.
    if [ -n "$found" ] && "$found" -V 2>&1 | grep -q -e --with-http_ssl_module; then
        NGX_CONF_FLAGS+=(--with-http_ssl_module)
    fi
fi
for config in "$here"/*/config; do
    NGX_CONF_FLAGS+=("--add-dynamic-module=$(dirname "$config")")
done

# A package's build has flags of its own, such as Debian's for hardening.
cc_options="${TOLLBAR_NGINX_CFLAGS:--g -O2} -fPIC" ld_options="${TOLLBAR_NGINX_LDFLAGS:-} -fPIC"

# Configured anew only if anything that goes into it has changed.
wanted=$(
    printf '%s\n' "$source" "$TOLLBAR_BUILD" "${CC:-cc}" "${NGX_CONF_FLAGS[@]}" "$cc_options" "$ld_options"
    cksum "$here/build.sh" "$here"/*/config "$here/common/addon.sh" "$source/src/core/nginx.h"
)
if [ "$(cat "$out/configured" 2>/dev/null)" != "$wanted" ]; then
    rm -rf "$tree" "$objects" "$out/configured"
    mkdir -p "$tree"
    for entry in "$source"/*; do
        case ${entry##*/} in
        Makefile | objs) ;;
        *) ln -s "$entry" "$tree/" ;;
        esac
    done
    if ! (cd "$tree" && $configure "${NGX_CONF_FLAGS[@]}" --builddir="$objects" --with-cc="${CC:-cc}" \
        --with-cc-opt="$cc_options" --with-ld-opt="$ld_options") >"$out/configure.log" 2>&1; then
        tail -n 20 "$out/configure.log" >&2
        exit 1
    fi
    printf '%s\n' "$wanted" >"$out/configured"
fi

make --silent --no-print-directory -C "$tree" -f "$objects/Makefile" modules
for module in "$objects"/*.so; do
    to=$out/${module##*/}
    # Moved into place: a running nginx has the old one mapped.
    if ! cmp -s "$module" "$to"; then
        cp "$module" "$to.new"
        mv "$to.new" "$to"
        echo "built $to"
    fi
done
