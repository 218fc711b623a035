#!/bin/sh
# The instructions of the hot calls, counted under valgrind and compared with those in
# benches/instructions.txt. With --record the file is written anew, and the table of costs in
# include/tollbar.h with it. Then what it costs a C program to measure how long its decisions take.
set -eu
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null 2>&1 || tools/setup.sh bench
make --silent lib
case " $* " in *" --record "*) ;; *) set -- --compare "$@" ;; esac
TOLLBAR_LIBRARY=$PWD/build/libtollbar.so cargo bench --quiet --package tollbar --bench instructions -- "$@"
case " $* " in *" --record "*) cargo xtask header ;; esac

[ "$(uname -m)" = x86_64 ] || exit 0
cc -std=c99 -O2 -Iinclude -o build/times_cost ffi-tests/c/times_cost.c build/libtollbar.so -Wl,-rpath,"$PWD/build"
counted() { valgrind --tool=callgrind --callgrind-out-file=/dev/null build/times_cost "$@" 2>&1 | sed -n 's/.*Collected : //p'; }
# Of ten times 1,024 decisions, so that the quotient is in tenths of an instruction.
tenths=$((($(counted 11264 measured) - $(counted 1024 measured) - $(counted 11264) + $(counted 1024)) / 1024))
echo "measuring a decision costs $((tenths / 10)).$((tenths % 10)) instructions; expected: at most 7"
[ "$tenths" -le 70 ]
