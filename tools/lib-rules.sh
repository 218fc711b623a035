#!/bin/sh
# Builds libtollbar-rules.so (soname .$2) into $1. It has Rust's standard library in it, and needs
# libc and libgcc_s; all names but those in abi/tollbar-rules.symbols are local, so it may stand
# beside libtollbar, of whose core it has a copy of its own. It runs with glibc 2.17 and later.
#
# For another machine: TARGET and CROSS as for lib.sh.
set -eu
. "$(dirname "$0")/rust.sh"
out=$1 abi=$2
cross=${CROSS:-}
cc=${CC:-${cross}cc}
[ -z "$cross" ] || cc=${cross}gcc
least=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' crates/tollbar-rules/Cargo.toml)
if [ "$(printf '%s\n' "$least" "$rust_version" | sort -V | head -n 1)" != "$least" ]; then
    echo "Rust is too old for libtollbar-rules: there is $rust_version, and $least or later is needed (https://rustup.rs)" >&2
    exit 1
fi
mkdir -p "$out"
# The profile of the C libraries would take minutes for the parsers and gain nothing that a caller
# notices.
cargo rustc --quiet --package tollbar-rules-c --profile command --lib --crate-type staticlib ${TARGET:+--target "$TARGET"}
names=abi/tollbar-rules.symbols
{ echo '{ global:'; sed 's/$/;/' "$names"; echo 'local: *; };'; } >"$out/tollbar-rules.map"

# TO LIBRARY...: links the library with these.
link() {
    to=$1
    shift
    # shellcheck disable=SC2046
    "$cc" -shared -nodefaultlibs -Wl,--gc-sections,-soname,libtollbar-rules.so."$abi",-O1,--hash-style=gnu,-z,relro,-z,now,--no-undefined \
        -Wl,--version-script,"$out/tollbar-rules.map" $(sed 's/^/-Wl,-u,/' "$names") -o "$to" \
        "${CARGO_TARGET_DIR:-target}/${TARGET:+$TARGET/}command/libtollbar_rules_c.a" "$@" -lgcc_s -lgcc
}

# A function that glibc has moved or changed since 2.17 has the newer version in a library that is
# linked with this system's glibc, which an older system then refuses to load. So the library is
# linked a second time, with a libc.so.6 that has the old versions only: those that this system's
# glibc keeps for old programs. A weak name (statx, getrandom) gets none, and is found, or not, when
# the library is loaded; Rust's library then makes the system call.
old_glibc() {
    "${cross}objdump" -T "$1" | awk '$1 ~ /^0+$/ && / \*UND\*/ && !/ w / && /\(?GLIBC_/ { print $NF }' | sort -u >"$out/rules-wants"
    "${cross}objdump" -T "$2" | awk '/GLIBC_2/ && !/\*UND\*/ { v = $(NF - 1); gsub(/[()]/, "", v); sub(/^GLIBC_/, "", v); print $NF, v }' |
        sort -V | awk -v wants="$out/rules-wants" '
            BEGIN { while ((getline name < wants) > 0) want[name] = 1; split("2.17", most, ".") }
            { split($2, v, "."); if (v[1] < 2 || v[1] == 2 && v[2] <= 17) old[$1] = $2 }
            END {
                # glibc had these in each program, as calls of the names on the right.
                moved["stat64"] = "__xstat64"; moved["fstat64"] = "__fxstat64"; moved["lstat64"] = "__lxstat64"; moved["fstatat64"] = "__fxstatat64"
                for (name in want) {
                    if (name == "__tls_get_addr") continue
                    if (name in old) print name, old[name]
                    else if (name in moved && moved[name] in old) print moved[name], old[moved[name]]
                    else { print "found " name " in glibc after 2.17 only" > "/dev/stderr"; exit 1 }
                }
            }' >"$out/rules-versions"
    awk '{ print ".globl v" NR; print ".type v" NR ", %function"; print "v" NR ":"; print ".symver v" NR ", " $1 "@@GLIBC_" $2 }' "$out/rules-versions" >"$out/rules-libc.s"
    awk '{ print "GLIBC_" $2 " {};" }' "$out/rules-versions" | sort -u >"$out/rules-libc.map"
    "$cc" -shared -nostdlib -Wl,-soname,libc.so.6,--version-script,"$out/rules-libc.map" -o "$out/rules-libc.so" "$out/rules-libc.s"
    "$cc" -O2 -fPIC -ffunction-sections -fvisibility=hidden -c -o "$out/rules-stat.o" tools/old-stat.c
}

new=$out/libtollbar-rules.new
link "$new" -lpthread -ldl -lm -lc
glibc=$("$cc" -print-file-name=libc.so.6)
# Without a glibc of this name, as with musl, the library stays as it is.
if [ -e "$glibc" ]; then
    loader=$("${cross}objdump" -p "$new" | awk '$1 == "NEEDED" && $2 ~ /^ld-linux/ { print $2 }')
    old_glibc "$new" "$glibc"
    link "$new" "$out/rules-stat.o" "$out/rules-libc.so" ${loader:+"-l:$loader"}
    rm -f "$out"/rules-libc.* "$out"/rules-stat.o "$out"/rules-wants "$out"/rules-versions
fi
"${cross}strip" "$new"
# A new file in the place of the old one, which a program may have mapped.
mv "$new" "$out/libtollbar-rules.so"
ln -sf libtollbar-rules.so "$out/libtollbar-rules.so.$abi"
