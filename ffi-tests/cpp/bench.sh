#!/bin/sh
# bench.sh BUILD-DIRECTORY: decisions through tollbar.hpp beside the same through tollbar.h;
# figures, no verdict.
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
include=$here/../../include
mkdir -p "$build/cpp-tests"
gcc -std=c99 -O2 -Wall -Wextra -Werror -I"$include" -c -o "$build/cpp-tests/bench-c.o" "$here/bench.c"
g++ -std=c++17 -O2 -Wall -Wextra -Werror -I"$include" -c -o "$build/cpp-tests/bench-cpp.o" "$here/bench.cpp"
g++ -o "$build/cpp-tests/bench" "$build/cpp-tests/bench-c.o" "$build/cpp-tests/bench-cpp.o" \
    -L"$build" -ltollbar "-Wl,-rpath,$build"
"$build/cpp-tests/bench"
