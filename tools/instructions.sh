#!/bin/sh
# The instructions of the hot calls, counted under valgrind and compared with those in
# benches/instructions.txt. With --record the file is written anew, and the table of costs in
# include/tollbar.h with it.
set -eu
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null 2>&1 || tools/setup.sh bench
make --silent lib
case " $* " in *" --record "*) ;; *) set -- --compare "$@" ;; esac
TOLLBAR_LIBRARY=$PWD/build/libtollbar.so cargo bench --quiet --package tollbar --bench instructions -- "$@"
case " $* " in *" --record "*) cargo xtask header ;; esac
