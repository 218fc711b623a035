#!/bin/sh
# The ABI that a library's header describes, against abi/LIBRARY.abi. LIBRARY is tollbar or
# tollbar-redis.
#
#   abi.sh LIBRARY WORK            compares
#   abi.sh LIBRARY WORK --write    writes abi/LIBRARY.abi: for additions, or a new ABI
#   abi.sh LIBRARY WORK --prove    shows that the comparison fails for changed headers
#
# Rust libraries have no debug information of C types. C programs are compiled against the header,
# so the script dumps the header: it gives every function an empty body, and compiles that. The
# debug information then has the structs, arguments and symbols that programs use.
# `cargo xtask header --check` and `cargo xtask symbols --check` show that the header agrees with
# the library.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
library=$1 work=$2/$1 mode=${3:-}
kept=$root/abi/$library.abi
name=$(echo "$library" | tr - _).h
header=$root/include/$name
mkdir -p "$work"

# HEADER OUT: compiles a library of the header's functions, without those of the headers that it
# includes.
build_from() {
    : > "$work/others"
    : > "$work/own"
    # Experimental sections are in the dump, so that a change of them is seen, too.
    gcc -E -DTOLLBAR_EXPERIMENTAL -nostdinc -I"$work" -I"$root/include" "$1" 2> "$work/cpp.err" |
        awk -v header="\"$1\"" -v own="$work/own" -v others="$work/others" \
            '/^# [0-9]+ "/ { mine = index($0, header); next } { print > (mine ? own : others) }'
    {
        echo '#include <stddef.h>'
        echo '#include <stdint.h>'
        cat "$work/others"
        awk 'BEGIN { RS = ";"; ORS = "" }
            /extern const uint32_t tollbar_(redis_)?abi_1/ { sub(/extern /, ""); print $0 " = 1;"; next }
            /tollbar_[a-z_0-9]*\([^;]*\)[ \n]*$/ && !/typedef/ { print $0 " { __builtin_trap(); }"; next }
            /[^ \n]/ { print $0 ";" }' "$work/own"
    } > "$2.c"
    gcc -std=c99 -g -gdwarf-4 -O0 -fPIC -shared -w -Wl,-soname,lib"$library".so.1 -o "$2" "$2.c"
}

dump() {
    abidw --no-corpus-path --no-comp-dir-path --no-show-locs --no-architecture --no-elf-needed \
        --type-id-style hash --out-file "$work/dump" "$1"
    # The directory of the compilation is not part of the ABI.
    sed "s| path='[^']*'| path='include/$name'|" "$work/dump" > "$2"
}

# LIBRARY: fails for every change, also for a compatible one.
compare() {
    abidiff --no-architecture --harmless "$kept" "$1" > "$work/diff" 2>&1
}

# SED-EXPRESSION: changes the header, and checks that the comparison fails.
sees() {
    sed "$1" "$header" > "$work/changed.h"
    if cmp -s "$header" "$work/changed.h"; then
        echo "nothing changed by $1"
        exit 1
    fi
    build_from "$work/changed.h" "$work/changed.so"
    if compare "$work/changed.so"; then
        echo "unseen: $1"
        exit 1
    fi
}

# Empty system headers keep the system's types out of the dump; only their names stay.
: > "$work/stddef.h"
: > "$work/stdint.h"
build_from "$header" "$work/header.so"

# Every promised symbol has got a body.
nm -D --defined-only "$work/header.so" | awk '{ print $3 }' | sort | diff - "$root/abi/$library.symbols"

case $mode in
--write)
    dump "$work/header.so" "$kept"
    ;;
--prove)
    compare "$work/header.so"
    case $library in
    tollbar)
        sees 's/uint32_t cold;/uint64_t cold;/'
        sees 's/uint64_t remaining;/int64_t remaining;/'
        sees 's/uint64_t slack;/uint64_t slack; uint64_t more;/'
        sees 's/uint32_t clock;$/uint32_t clock2;/'
        sees 's/uint64_t most,/uint32_t most,/'
        sees 's/^int32_t tollbar_clock_is_counter/int64_t tollbar_clock_is_counter/'
        sees 's/uint32_t missing_key;/uint64_t missing_key;/'
        sees 's/uint64_t backward_steps;$/& uint64_t more;/'
        sees 's/uint32_t reserved;$/&\n    uint32_t more;/'
        sees 's/int32_t tollbar_table_sync(/int64_t tollbar_table_sync(/'
        sees 's/tollbar_table_now(/tollbar_table_time(/'
        sees 's/tollbar_cell_reset(/tollbar_cell_renew(/'
        sees 's/^void tollbar_policy_free(tollbar_policy \*policy);/&\nvoid tollbar_policy_more(void);/'
        ;;
    tollbar-redis)
        sees 's/uint64_t life_ns;/int64_t life_ns;/'
        sees 's/uint32_t nodes;/uint32_t machines;/'
        sees 's/uint64_t owed;/& uint64_t more;/'
        sees 's/uint32_t timeout_ms)/uint64_t timeout_ms)/'
        sees 's/tollbar_lease_now(/tollbar_lease_time(/'
        sees 's/^void tollbar_lease_close(tollbar_lease \*lease);/&\nvoid tollbar_lease_more(void);/'
        ;;
    esac
    ;;
*)
    if ! compare "$work/header.so"; then
        cat "$work/diff"
        exit 1
    fi
    ;;
esac
