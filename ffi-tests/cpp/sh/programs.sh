# shellcheck shell=sh
# The tests against the libraries as they are installed, under valgrind and under the sanitizers;
# the example. Sourced. Those that need more than libtollbar, and the threads, are programs of their
# own. Every other *_test.cpp of this folder is a part of all_test, each in a namespace of its
# file's name: the compiler reads the headers once.
cpp_apart="lease_test rules_test threads_test"
cpp_tests="all_test $cpp_apart"

# What the tests include comes first, and a second time is left out.
all_tests() {
    echo '#define TOLLBAR_EXPERIMENTAL'
    set --
    for test in "$here"/*_test.cpp; do
        name=$(basename "$test" .cpp)
        case " $cpp_apart " in *" $name "*) ;; *) set -- "$@" "$name" ;; esac
    done
    (cd "$here" && for name; do grep -h '^#include' "$name.cpp"; done) | sort -u | sed "s|\"\.\./|\"$root/ffi-tests/|"
    for name; do printf 'namespace %s {\n#undef TOLLBAR_EXPERIMENTAL\n#include "%s.cpp"\n}\n' "$name" "$name"; done
}

# compile_cpp DIRECTORY COMPILER-AND-FLAGS TOLLBAR TOLLBAR-REDIS: TOLLBAR and TOLLBAR-REDIS are the
# linker's arguments for the two libraries. Only one program needs both. Another one needs
# libtollbar-rules, which is always shared.
compile_cpp() {
    into=$work/$1 compiler=$2
    mkdir -p "$into"
    all_tests > "$work/all_test.cpp"
    gcc -std=c99 -g -O1 -c -o "$work/redis.o" "$root/ffi-tests/c/redis.c" || return 1
    gcc -std=c99 -g -O1 -c -o "$work/vectors.o" "$root/ffi-tests/c/vectors.c" || return 1
    # shellcheck disable=SC2086
    for t in $cpp_tests; do
        source=$here/$t.cpp
        case $t in
        all_test) source=$work/all_test.cpp libraries=$3 ;;
        lease_test) libraries="$work/redis.o $4 $3" ;;
        rules_test) libraries="-L$build -ltollbar-rules -Wl,-rpath,$build $3" ;;
        *) libraries=$3 ;;
        esac
        $compiler -g $cpp_strict -I"$root/include" -I"$here" -DVECTORS="\"$root/ffi-tests/vectors\"" -o "$into/$t" \
            "$source" "$work/vectors.o" $libraries -lpthread || return 1
    done
}

# NAME DIRECTORY TESTS COMMAND...: runs them, each under the command.
run_cpp() {
    run_name=$1 from=$work/$2 run_these=$3
    shift 3
    for t in $run_these; do
        suite "$run_name: $t" "$@" "$from/$t"
    done
}

# All programs are compiled twice, each time by another compiler, in another standard and with the
# other form of the libraries: here, and for the address sanitizer.
cpp_shared() {
    check "compile: clang++ -std=c++17 -O1, shared library" \
        compile_cpp so "clang++ -std=c++17 -O1" "-L$build -ltollbar -Wl,-rpath,$build" "-L$build -ltollbar-redis"
}

# Coroutines, by clang and under the address sanitizer by g++ below; those of asio have a header of
# their own.
asio_program() {
    # shellcheck disable=SC2086
    g++ -std=c++20 -O1 -g $cpp_strict -I"$root/include" -I"$here" -o "$work/asio" "$here/asio.cpp" "$build/libtollbar.a" -lpthread
}
coroutines_program() {
    # shellcheck disable=SC2086
    clang++ -std=c++20 -O1 -g $cpp_strict -I"$root/include" -I"$here" -o "$work/coroutines" "$here/waiting_test.cpp" "$build/libtollbar.a" -lpthread
}

cpp_against_libraries() {
    cpp_shared
    run_cpp "libtollbar.so" so "$cpp_tests"
    check "compile: asio.cpp" asio_program
    suite "asio's coroutines" "$work/asio"
    check "compile: coroutines by clang++ -std=c++20" coroutines_program
    suite "coroutines" "$work/coroutines"
}

# Without the threads: valgrind runs one at a time, and they have a sanitizer of their own.
cpp_under_valgrind() {
    [ -x "$work/so/all_test" ] || cpp_shared
    run_cpp valgrind so "$(echo "$cpp_tests" | tr ' ' '\n' | grep -vx threads_test)" \
        valgrind --quiet --error-exitcode=1 --leak-check=full --child-silent-after-fork=yes
}

# Without optimization, which takes the compiler longer than all else here.
cpp_under_address_sanitizer() {
    check "compile: g++ -std=c++20 address,undefined, archive" compile_cpp asan \
        "g++ -std=c++20 -O0 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all" \
        "$build/libtollbar.a" "$build/libtollbar-redis.a"
    run_cpp "address,undefined, libtollbar.a" asan "$cpp_tests"
}

# FLAG: both sides instrumented, with the Rust compiler's run-time, as for the C tests.
link_cpp_threads() {
    runtime=$(find "$(rustc --print target-libdir)" -name 'librustc*_rt.tsan.a') && [ -n "$runtime" ] || return 1
    # shellcheck disable=SC2086
    g++ -std=c++17 -g "$1" -O1 -fsanitize=thread -I"$root/include" -c -o "$work/threads.o" "$here/threads_test.cpp" || return 1
    g++ -o "$work/threads-tsan" "$work/threads.o" "$work/thread.a" -Wl,--whole-archive "$runtime" \
        -Wl,--no-whole-archive -Wl,--export-dynamic -lpthread -ldl -lm -lrt
}

cpp_sees_planted_race() {
    link_cpp_threads -DPLANT_RACE || return 1
    # 66 is the sanitizer's exit code for "reported".
    code=0
    setarch -R "$work/threads-tsan" > "$work/planted" 2>&1 || code=$?
    [ $code -eq 66 ] && grep -q 'data race' "$work/planted"
}

cpp_under_thread_sanitizer() {
    check "build: library with thread sanitizer" instrumented_library thread
    check "thread sanitizer reports a planted race" cpp_sees_planted_race
    check "compile: threads_test, both sides with thread sanitizer" link_cpp_threads -DNO_RACE
    suite "thread sanitizer of both sides: threads_test" setarch -R "$work/threads-tsan"
}

# STATUS OUTPUT ARGUMENTS...: how the example ends and what it prints.
says() {
    want_status=$1 want=$2
    shift 2
    status=0
    got=$(LOGINS="$work/logins" "$work/keyed" "$@" 2>&1) || status=$?
    printf 'status %s, got:\n%s\n' $status "$got"
    [ $status -eq "$want_status" ] && [ "$got" = "$want" ]
}

# ADDRESS: is refused, with a Retry-After of 12 s, the time of a permit of 5/min, or a little less
# on a slow machine.
refuses() {
    status=0
    got=$(LOGINS="$work/logins" "$work/keyed" "$1" 2>&1) || status=$?
    printf 'status %s, got:\n%s\n' $status "$got"
    [ $status -eq 1 ] && echo "$got" | grep -qxE "$1: 429, Retry-After: ([89]|1[0-2])"
}

# The first program of docs/cpp.md, whose table is another for each run.
document() {
    rm -f "$work/document"*
    awk '/^```cpp$/ { on = 1; next } /^```$/ && on { exit } on' "$root/docs/cpp.md" | sed "s|/run/logins/table|$work/document-logins|" >"$work/document.cpp"
    # shellcheck disable=SC2086
    g++ -std=c++17 $cpp_strict -I"$root/include" -o "$work/document" "$work/document.cpp" "$build/libtollbar.a" || return 1
    "$work/document" >"$work/document.out" || return 1
    cat "$work/document.out"
    sed 's/ [0-9]* ms$//' "$work/document.out" | uniq -c | tr -s ' \n' ' ' | grep -qx ' 3 passes 2 again in 1 limit 1 refuses '
}

cpp_example() {
    check "docs/cpp.md: its first program" document
    rm -f "$work/logins"
    # shellcheck disable=SC2086
    check "examples/cpp: compiles" g++ -std=c++17 $cpp_strict -I"$root/include" -o "$work/keyed" \
        "$root/examples/cpp/keyed.cpp" "$build/libtollbar.a"
    check "examples/cpp: two addresses of a /64 are one client" says 0 "2001:db8::1: 200, 1 left
2001:db8::2: 200, 0 left
192.0.2.1: 200, 1 left" 2001:db8::1 2001:db8::2 192.0.2.1
    check "examples/cpp: the next process finds the table" refuses 2001:db8::3
    check "examples/cpp: not an address" says 1 "nobody: not a network address" nobody
    echo "something else" > "$work/logins"
    check "examples/cpp: not a table" says 2 "$work/logins: tollbar: not a tollbar table" 192.0.2.1
}
