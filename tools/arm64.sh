#!/bin/sh
# `make arm64`: the library for 64-bit ARM, built on another machine into build/arm64, and what its
# tests can show there under an emulator: that the ways which only such processors take compile, and
# decide alike. How these order what they read and write an emulator does not imitate: for that
# there are the models.
set -u
cd "$(dirname "$0")/.."
tools/setup.sh arm64 || exit 1
triple=aarch64-unknown-linux-gnu
gnu=aarch64-linux-gnu
run=qemu-aarch64-static
root=$PWD
here=$root/ffi-tests/c
build=$root/build/arm64
work=$build/tests
mkdir -p "$work"
. "$here/sh/check.sh"
. "$here/sh/header.sh"
. "$here/sh/programs.sh"
. "$here/sh/artefacts.sh"
log=$work/log

# What the emulator is no test of. It takes MADV_WIPEONFORK and does nothing; shows a
# /proc/self/maps of its own making and says nothing of the pages; and what a program starts must be
# this machine's own. Of these everything else is tested.
no_wipe='a_child_has_no_credit'
no_maps='huge_pages_are_advised_within_the_region_only a_file_s_status_equals_that_of_std'
no_exec='an_unreadable_file_is_refused without_room_nothing_is_made programs_share_a_file kills_on_a_file_in_memory kills_on_a_file_on_a_disk'
skips=$(for name in $no_wipe $no_maps $no_exec; do printf -- '--skip %s ' "$name"; done)

# What is arithmetic and takes long there is left out, and so is the flood's test, which measures
# its own memory: there the emulator's.
programs="table_files table_storm waiting"
modules="table table_fuzz table_hot_keys table_policies table_single table_stress table_transfer wide stress striped traps expiry buckets windows"

# NAME COMMAND...: as suite, of a program of cmocka's, in which the tests above may fail.
suite_there() {
    "$run" "$2" >"$log" 2>"$log.err"
    all=$(grep -cE '^(not )?ok ' "$log")
    for name in $no_wipe $no_maps $no_exec; do
        sed -i "/^not ok [0-9]* - $name\$/d; /^not ok [0-9]* - $name in /d" "$log"
    done
    good=$(grep -c '^ok ' "$log") bad=$(grep -c '^not ok ' "$log")
    # One that did not come to its end has not passed.
    [ "$all" -gt 0 ] && [ "$all" = "$(sed -n 's/^1\.\.\([0-9]*\)$/\1/p' "$log" | awk '{ sum += $1 } END { print sum }')" ] || bad=$((bad + 1))
    passed=$((passed + good)) failed=$((failed + bad))
    if [ "$bad" -eq 0 ]; then
        echo "ok    $1: $good tests"
    else
        echo "FAIL  $1: $bad failed"
        sed 's/^/      /' "$log" "$log.err" | head -n 40
    fi
}

# POLICY: what `tollbar replay` decides there is what it decides here.
decides_alike() {
    "$root/build/tollbar" replay --format trace --policy "$1" --decisions "$work/here" "$work/trace" >"$work/report-here" || return 1
    "$run" "$build/tollbar" replay --format trace --policy "$1" --decisions "$work/there" "$work/trace" >"$work/report-there" || return 1
    [ -s "$work/here" ] && cmp "$work/here" "$work/there"
}

export CMOCKA_MESSAGE_OUTPUT=TAP
check "the library is built" make -s lib B="$build" TARGET=$triple CROSS=$gnu-
for library in tollbar tollbar-redis; do
    check "lib$library: no panic can be reached" no_panic_symbol $library "$gnu-nm"
    check "lib$library.so needs libc only" needs_libc_only $library
    check "lib$library.so has its soname" has_soname $library
    measure "lib$library.so runs with old C libraries" old_glibc_will_do $library
    measure "lib$library.so is small" is_small $library "$gnu-strip"
done
check "compile: the tests" compile_tests c "$gnu-gcc -O2" "$build/libtollbar.a" "$build/libtollbar-redis.a"
# shellcheck disable=SC2154
for t in $tests $redis_tests $threaded $redis_threaded; do
    suite_there "$t" "$work/c/$t"
done

# 20,000 requests of a thousand keys, some of which ask much, at times that do not always go on.
awk 'BEGIN {
    for (n = 1; n <= 20000; n++) {
        seed = (seed * 16807 + 11) % 2147483647
        key = seed % (seed % 7 ? 30 : 1000)
        printf "%d k%d %d\n", n * 3000000 + seed % 50000000, key, 1 + seed % 3
    }
}' >"$work/trace"
check "compile: the command, here" make -s build/tollbar
check "compile: the command, there" env CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$gnu-gcc tools/cli.sh "$build" $triple
for how in gcra interval fixed-window weighted-window sliding-window sliding-log pacer "warm-up warm 2s cold 3"; do
    check "decides alike: 7/s algo $how" decides_alike "7/s algo $how"
done

# Compiled for speed, with the assertions of a debug build.
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$gnu-gcc CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=$run CARGO_PROFILE_TEST_OPT_LEVEL=2
# Chooses each of the modules at the begin of a test's name: `windows::`, and not
# `oracle_windows::`.
tests_of_modules() {
    # shellcheck disable=SC2046,SC2086
    cargo test --package tollbar --no-fail-fast --target $triple --target-dir "$build/cargo" --test algorithm --test limiter --test table -- \
        --skip oracle_buckets:: --skip oracle_windows:: $skips $(printf '%s:: ' $modules)
}
# shellcheck disable=SC2046,SC2086
{
    cargo test --package tollbar --no-fail-fast --target $triple --target-dir "$build/cargo" --lib $(printf -- '--test %s ' $programs) -- $skips
    tests_of_modules
} 2>&1 | tee "$work/cargo.log"
good=$(sed -n 's/^test result: [^.]*\. \([0-9]*\) passed.*/\1/p' "$work/cargo.log" | awk '{ n += $1 } END { print n + 0 }')
bad=$(sed -n 's/^test result: .* \([0-9]*\) failed.*/\1/p' "$work/cargo.log" | awk '{ n += $1 } END { print n + 0 }')
# A program that did not end well, or was not built, has no such line.
grep -q '^error' "$work/cargo.log" && [ "$bad" -eq 0 ] && bad=1
[ "$good" -gt 0 ] || bad=$((bad + 1))
passed=$((passed + good)) failed=$((failed + bad))
finish
