# shellcheck shell=sh
# tollbar.hpp and tollbar_redis.hpp in every standard and compiler it promises, what must not
# compile, and that it has all of C. Sourced.
cpp_strict="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wold-style-cast -Werror"

# COMPILER STANDARD HEADERS...: each alone and twice, the first without exceptions and run-time
# types, too.
compiles_alone() {
    compile="$1 -x c++ -std=$2 $cpp_strict -I$root/include -fsyntax-only"
    shift 2
    printf '#include "%s"\n' "$1" | $compile -fno-exceptions -fno-rtti - || return 1
    printf '#define TOLLBAR_EXPERIMENTAL\n#include "%s"\n' "$1" | $compile - || return 1
    for header in "$@"; do
        printf '#include "%s"\n#include "%s"\n' "$header" "$header" | $compile - || return 1
    done
}

# COMPILER STANDARD: in two units of one program, which run together.
links_twice() {
    # shellcheck disable=SC2086
    set -- "$1 -std=$2 $cpp_strict -I$root/include"
    printf '#include "tollbar_redis.hpp"\nint second() { return tollbar::limiter("1/h").check() ? 0 : 1; }\n' > "$work/second.cpp"
    $1 -c -o "$work/second.o" "$work/second.cpp" || return 1
    printf '#include "tollbar.hpp"\nint second();\nint main() { return tollbar::limiter("1/h").check() ? second() : 1; }\n' > "$work/first.cpp"
    $1 -o "$work/twice" "$work/first.cpp" "$work/second.o" "$build/libtollbar.a" && "$work/twice"
}

# refused "WRONG // RIGHT": the compiler refuses WRONG. `accepted` compiles RIGHT, the same code
# without the mistake, and so shows that the compiler refuses WRONG for its mistake.
refused() {
    function_of "${1##*//}" >> "$work/accepted.cpp"
    { refused_begins && function_of "${1%%//*}"; } > "$work/refused.cpp"
    ! g++ -std=c++17 -Werror -I"$root/include" -fsyntax-only "$work/refused.cpp"
}

refused_begins() {
    printf '#include "tollbar.hpp"\n#include <vector>\nstruct padded { char a; int b; };\ntemplate <int> void f(tollbar::table &, tollbar::limiter &, tollbar::cell &);\n'
}

# CODE, in a function with a number of its own.
function_of() {
    refused_number=$((${refused_number:-0} + 1))
    printf 'template <> void f<%s>([[maybe_unused]] tollbar::table &t, [[maybe_unused]] tollbar::limiter &l, [[maybe_unused]] tollbar::cell &c) { %s }\n' \
        $refused_number "$1"
}

accepted() { g++ -std=c++17 -Werror -I"$root/include" -fsyntax-only "$work/accepted.cpp"; }

# Older than C++17: one error that says so, before hundreds that do not.
says_what_it_needs() {
    printf '#include "tollbar.hpp"\n' | g++ -x c++ -std=c++14 -I"$root/include" -fsyntax-only - > "$work/old" 2>&1 && return 1
    sed -n 's/.*error: //p' "$work/old" | head -n 1 | grep 'needs C++17'
}

# Each error of the headers is an errc.
has_every_error() {
    grep -o 'TOLLBAR_E_[A-Z_]*' -h "$root/include/tollbar.h" "$root/include/tollbar_redis.h" | sort -u > "$work/errors"
    grep -o '= TOLLBAR_E_[A-Z_]*' "$root/include/tollbar/error.hpp" | sed 's/= //' | sort -u > "$work/errcs"
    # TOLLBAR_E_UNKNOWN is no error of a call: an accessor returns it for numbers that are no
    # errors.
    grep -vx 'TOLLBAR_E_UNKNOWN' "$work/errors" | diff - "$work/errcs"
}

# Each function of abi/*.symbols is called, but for those that read a text and make something in one
# step, since texts of C++ may have no NUL at the end, and for those that a macro of the header calls.
has_every_function() {
    cat "$root"/include/tollbar/*.hpp | grep -o 'tollbar_[a-z_0-9]*' | sort -u > "$work/called"
    for name in $(cat "$root"/abi/*.symbols); do
        case $name in
            tollbar_policy_from_text | tollbar_limiter_from_text | tollbar_queue_from_text) continue ;;
            tollbar_times_begin | tollbar_times_end) continue ;;
        esac
        grep -qx "$name" "$work/called" || echo "$name"
    done > "$work/uncalled"
    cat "$work/uncalled"
    [ -s "$work/called" ] && [ ! -s "$work/uncalled" ]
}

cpp_header() {
    for compiler in g++ clang++; do
        for standard in c++17 c++20 c++2b; do
            check "header: $compiler -std=$standard, alone, twice, without exceptions" compiles_alone $compiler $standard tollbar_redis.hpp tollbar.hpp
        done
        check "header: $compiler -std=c++17, in two units" links_twice $compiler c++17
    done
    # shellcheck disable=SC2046
    check "header: each of its parts" compiles_alone g++ c++17 $(cd "$root/include" && echo tollbar/*.hpp | tr ' ' '\n' | grep -v '/asio.hpp$')
    check "header: C++14 is told what is needed" says_what_it_needs
    check "header: every error of C" has_every_error
    check "header: every function of C" has_every_function
    refused_begins > "$work/accepted.cpp"
    check "refused: a verdict that nobody looks at" refused 'l.check(); // if (l.check()) return;'
    check "refused: a verdict as a number" refused 'int i = l.admit(); (void)i; // int i = l.admit().get(); (void)i;'
    check "refused: a result that nobody looks at" refused 't.try_sync(); // if (t.try_sync()) return;'
    check "refused: a copy of a limiter" refused 'tollbar::limiter m(l); // tollbar::limiter m(std::move(l));'
    check "refused: a copy of a table" refused 'tollbar::table u = t; // tollbar::table u = std::move(t);'
    check "refused: a copy of a cell" refused 'tollbar::cell d = c; // tollbar::cell d;'
    check "refused: a number as a key" refused 'if (t.check(7)) return; // if (t.check(tollbar::bytes_of(7))) return;'
    check "refused: the bytes of a double" refused '(void)tollbar::bytes_of(1.0); // (void)tollbar::bytes_of(1);'
    check "refused: the bytes of padding" refused '(void)tollbar::bytes_of(padded{}); // (void)tollbar::bytes_of(padded{}.b);'
    check "refused: the bytes of a pointer" refused '(void)tollbar::bytes_of(&c); // (void)tollbar::bytes_of(c.word);'
    check "refused: a number as a time" refused 'if (l.check_at(5)) return; // if (l.check_at(std::chrono::seconds(5))) return;'
    check "refused: a time that may not be there, as one" \
        refused 'std::chrono::nanoseconds n = l.check().retry_after(); (void)n; // auto n = l.check().retry_after(); (void)n;'
    check "accepted: the same code without the mistakes" accepted
}
