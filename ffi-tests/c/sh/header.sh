# shellcheck shell=sh
# Compiles the header with every compiler and standard that it promises. Sourced.
strict="-Wall -Wextra -Wpedantic -Wundef -Wconversion -Werror"

# Whether a compiler knows a standard.
knows() {
    echo 'int main(void) { return 0; }' | "$1" -x "$2" "-std=$3" -fsyntax-only - > /dev/null 2>&1
}

# COMPILER LANGUAGE STANDARD: each header alone, twice, and in two units of a program that is run.
headers_in() {
    header_in "$1 -x $2 -std=$3" header.c libtollbar.a && header_in "$1 -x $2 -std=$3" header_redis.c libtollbar-redis.a
}

# COMPILER-AND-FLAGS SOURCE ARCHIVE
header_in() {
    compile="$1 $strict -I$root/include"
    rm -f "$work/a.o" "$work/b.o" "$work/header"
    $compile -fsyntax-only "$here/$2" || return 1
    $compile -DTWICE -fsyntax-only "$here/$2" || return 1
    $compile -DLINKED -c -o "$work/a.o" "$here/$2" || return 1
    $compile -DSECOND -c -o "$work/b.o" "$here/$2" || return 1
    ${1%% *} -o "$work/header" "$work/a.o" "$work/b.o" "$build/$3" || return 1
    "$work/header"
}

# The program in the header's introduction compiles unchanged, and its one request is admitted.
first_program() {
    awk '/^ \*     #include/ { on = 1 } on && !/^ \*(     |$)/ { exit } on { sub(/^ \*/, ""); print }' \
        "$root/include/tollbar.h" > "$work/first.c"
    # shellcheck disable=SC2086
    gcc -std=c99 $strict "-I$root/include" -o "$work/first" "$work/first.c" "$build/libtollbar.a" || return 1
    [ "$("$work/first")" = passes ]
}

header_matrix() {
    combinations=0
    check "the first program of tollbar.h" first_program
    for compiler in gcc clang; do
        for standard in c99 c11 c17 c2x c++11 c++14 c++17 c++20 c++2b; do
            case $standard in
            c++*) language=c++ ;;
            *) language=c ;;
            esac
            # A compiler may not know the newest standard yet. It must know all others.
            if [ $standard = c++2b ] && ! knows $compiler $language $standard; then
                echo "      ($compiler does not know $standard)"
                continue
            fi
            check "headers: $compiler -std=$standard, alone, twice, in two units" \
                headers_in $compiler $language $standard
            combinations=$((combinations + 6))
        done
    done
    echo "      $combinations combinations of header, compiler, standard and use"
}
