/* C's side of bench.lua: the loops that C++ is measured against, and the keys. */
#include "../../ffi-tests/cpp/bench.c"

char bench_keys[KEYS][KEY_LENGTH];
