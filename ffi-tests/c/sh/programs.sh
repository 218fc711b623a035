# shellcheck shell=sh
# The tests against the libraries, with and without valgrind. Sourced. Every NAME_test.c here is a
# test. The tests of tollbar_redis.h begin with lease_ or store_ and are linked with both libraries.
# alloc_test.c needs the archive. Those that have a function of the system's, or start themselves
# again, are programs of their own; all others are one, all_test.
sources=$(cd "$here" && ls ./*_test.c | sed 's|^\./||; s|\.c$||')
apart="first_call_test table_file_test table_trust_test"
groups=$(echo "$sources" | grep -v -e '^lease_' -e '^store_' -e '^alloc_test$' -e "^$(echo "$apart" | sed 's/ /$\\|^/g')\$")
tests="all_test $apart"
redis_tests=$(echo "$sources" | grep -e '^lease_' -e '^store_')
# Tests with many threads, which print TAP themselves.
threaded="threads"
redis_threaded="lease_threads"
# It makes namespaces and mounts, and prints TAP itself, too. valgrind and the sanitizers read
# /proc, which it takes away.
namespaced="identity"
c99="-std=c99 -g $strict -I$root/include -DVECTORS=\"$root/ffi-tests/vectors\""

# The linker replaces the library's calls of these functions by the test's wrappers. It can do so
# for an archive only.
wrapped=-Wl,--wrap=malloc,--wrap=calloc,--wrap=posix_memalign,--wrap=free,--wrap=nanosleep
wrapped=$wrapped,--wrap=mmap,--wrap=munmap,--wrap=realpath

# DIRECTORY COMPILER-AND-FLAGS: the test that counts and refuses allocations.
compile_alloc() {
    # shellcheck disable=SC2086
    $2 $c99 -D_DEFAULT_SOURCE -o "$work/$1/alloc_test" "$here/alloc_test.c" "$here/test.c" \
        "$build/libtollbar.a" -lcmocka $wrapped
}

# The program that runs all groups, or those that its arguments name.
all_groups() {
    echo '#include <string.h>'
    for t in $groups; do echo "int $t(void);"; done
    echo 'static const struct { const char *name; int (*run)(void); } groups[] = {'
    for t in $groups; do echo "    {\"$t\", $t},"; done
    cat <<'C'
};
int main(int count, char **names) {
    int failed = 0;
    size_t group;
    for (group = 0; group < sizeof groups / sizeof *groups; group++) {
        int n, chosen = count == 1;
        for (n = 1; n < count; n++)
            chosen |= strcmp(names[n], groups[group].name) == 0;
        failed |= chosen && groups[group].run() != 0;
    }
    return failed;
}
C
}

# compile_tests DIRECTORY COMPILER-AND-FLAGS TOLLBAR TOLLBAR-REDIS compiles all test programs into
# DIRECTORY. TOLLBAR and TOLLBAR-REDIS are the linker's arguments for the two libraries. A source
# file that several programs use is compiled once.
compile_tests() {
    into=$work/$1 compiler=$2
    mkdir -p "$into"
    # shellcheck disable=SC2086
    for part in test vectors lease redis; do
        $compiler $c99 -c -o "$into/$part.o" "$here/$part.c" || return 1
    done
    all_groups > "$work/all_test.c"
    objects=
    # shellcheck disable=SC2086
    for t in $groups; do
        $compiler $c99 "-Dmain=$t" -c -o "$into/$t.o" "$here/$t.c" || return 1
        objects="$objects $into/$t.o"
    done
    # shellcheck disable=SC2086
    $compiler $c99 -o "$into/all_test" "$work/all_test.c" $objects "$into/test.o" "$into/vectors.o" $3 -lcmocka -lpthread || return 1
    # shellcheck disable=SC2086
    for t in $apart; do
        $compiler $c99 -o "$into/$t" "$here/$t.c" "$into/test.o" $3 -lcmocka -lpthread || return 1
    done
    # shellcheck disable=SC2086
    for t in $redis_tests; do
        $compiler $c99 -o "$into/$t" "$here/$t.c" "$into/test.o" "$into/lease.o" "$into/redis.o" $4 $3 -lcmocka -lpthread || return 1
    done
    # shellcheck disable=SC2086
    for t in $threaded; do
        $compiler $c99 -o "$into/$t" "$here/$t.c" $3 -lpthread || return 1
    done
    # shellcheck disable=SC2086
    for t in $redis_threaded; do
        $compiler $c99 -o "$into/$t" "$here/$t.c" "$into/redis.o" $4 $3 -lpthread || return 1
    done
    # shellcheck disable=SC2086
    $compiler $c99 -o "$into/$namespaced" "$here/$namespaced.c" $4 $3 || return 1
}

# NAME DIRECTORY
run_threaded() {
    for t in $threaded $redis_threaded; do
        suite "$1: $t" "$work/$2/$t"
    done
}

# NAME DIRECTORY
run_namespaced() {
    suite "$1: $namespaced" "$work/$2/$namespaced"
    sed -n 's/^# \(skipped: .*\)/\1/p' "$log"
}

# NAME DIRECTORY COMMAND...: runs the test programs, each under the command.
run_tests() {
    run_name=$1 from=$work/$2
    shift 2
    for t in $tests $redis_tests; do
        suite "$run_name: $t" "$@" "$from/$t"
    done
}

against_shared_libraries() {
    check "compile: gcc -O2, shared library" \
        compile_tests so "gcc -O2" "-L$build -ltollbar -Wl,-rpath,$build" "-L$build -ltollbar-redis"
    run_tests "libtollbar.so" so
    run_threaded "libtollbar.so" so
    run_namespaced "libtollbar.so" so
}

against_archives() {
    check "compile: clang -O0, archive" compile_tests a "clang -O0" "$build/libtollbar.a" "$build/libtollbar-redis.a"
    run_tests "libtollbar.a" a
    run_threaded "libtollbar.a" a
    run_namespaced "libtollbar.a" a
    check "compile: allocations, archive" compile_alloc a "gcc -O2"
    suite "libtollbar.a: alloc_test" "$work/a/alloc_test"
}

# A program that reads behind its memory and loses some, so that the silence of the others means
# something.
valgrind_sees() {
    printf '%s\n' '#include <stdlib.h>' 'int main(void) { char *volatile lost = malloc(10); lost[0] = lost[10]; lost = NULL; return 0; }' \
        > "$work/planted.c"
    gcc -g -O0 -w -o "$work/planted" "$work/planted.c" || return 1
    ! $valgrind "$work/planted" 2> "$work/planted.said" && grep 'Invalid read' "$work/planted.said" && grep 'definitely lost' "$work/planted.said"
}

# What makes, refuses and frees: arguments, memory of tables and of leases. `make soak ONLY=memory`
# has all tests but those with many threads: valgrind runs one thread at a time, and ThreadSanitizer
# checks those tests.
valgrind="valgrind --quiet --error-exitcode=1 --leak-check=full --child-silent-after-fork=yes"
under_valgrind() {
    check "valgrind reports what is planted" valgrind_sees
    # shellcheck disable=SC2086
    if [ -n "${TOLLBAR_SOAK:-}" ]; then
        run_tests valgrind so $valgrind
    else
        suite "valgrind: all_test, some groups" $valgrind "$work/so/all_test" \
            arguments_test table_arguments_test table_memory_test limiter_test queue_test
        suite "valgrind: lease_arguments_test" $valgrind "$work/so/lease_arguments_test"
    fi
}
