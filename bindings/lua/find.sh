# To be sourced by those who run Lua here, with $here and $root set: $luajit, and where it finds the
# module and the library.
luajit=${LUAJIT:-$(command -v luajit || command -v luajit2)} || {
    echo "luajit is not installed (Debian: luajit2)" >&2
    exit 1
}
export TOLLBAR_LIBRARY="${TOLLBAR_LIBRARY:-$root/build/libtollbar.so}" LUA_PATH="$here/?.lua;$here/tests/?.lua;;"
[ -f "$TOLLBAR_LIBRARY" ] || {
    echo "$TOLLBAR_LIBRARY is missing: make lib" >&2
    exit 1
}
