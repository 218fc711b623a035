#!/bin/sh
# Changes the sources one place at a time (cargo-mutants) and runs the tests of that layer, in a copy of the tree in build/mutants. What no test
# noticed is in build/mutants/survivors, one line each: file:line:column: change. Hours for all of it; a part is
#   MUTANTS=src/units.rs tools/mutants.sh      files, by names or patterns of cargo-mutants
#   SHARD=3/8 tools/mutants.sh                 the third eighth of each layer
# A survivor of the quick tests is tried again with the slow ones. It ends well whatever survives: the list is what is asked for.
set -u
cd "$(dirname "$0")/.."
tools/setup.sh mutants || exit 1
. tools/rust.sh
work=$PWD/build/mutants
tree=$work/tree
export CARGO_TARGET_DIR="$work/target"
# To compile is most of the work: little is optimized, and there is nothing for debuggers.
export CARGO_PROFILE_TEST_OPT_LEVEL=1 CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_TEST_DEBUG=0 CARGO_PROFILE_DEV_DEBUG=0
# Their own stores, from which nothing is taken over.
rm -rf "$work/out"
mkdir -p "$work/out"

copy() {
    rm -rf "$tree"
    mkdir -p "$tree"
    cp -r Cargo.toml Cargo.lock README.md src tests benches xtask "$tree"
}
# The pure layer is all there is where there is no Unix (src/lib.rs), which compiles several times faster.
without_unix() {
    copy
    grep -rl unix "$tree/src" | xargs sed -i -e '/cfg/s/not(unix)/all()/g' -e '/cfg/s/\bunix\b/any()/g'
}

# TARGETS: for each a -C, by which cargo-mutants passes it to every call of cargo: or it would compile all tests for each change.
targets() {
    for target; do
        case $target in --*) printf -- '-C=%s ' "$target" ;; *) printf -- '-C=--test=%s ' "$target" ;; esac
    done
}

# LAYER TARGETS: the files of $files, changed one by one in the tree as it is. Again: what has survived so far.
mutate() {
    layer=$1
    shift
    # shellcheck disable=SC2046,SC2086
    (cd "$tree" && cargo mutants --in-place --no-config --colors never --timeout "${TIMEOUT:-120}" --output "$work/out/$layer" \
        ${SHARD:+--shard "$SHARD"} $again $files $(targets "$@"))
    status=$?
    # 2: some survived; 3: some made a test run too long, which has noticed them.
    case $status in 0 | 2 | 3) ;; *) exit 1 ;; esac
    again='--iterate --baseline skip'
}

# LAYER PATTERNS: whether MUTANTS chooses any of the layer's files; they are in $files, as cargo-mutants wants them.
chosen() {
    layer=$1
    shift
    files= again=
    # shellcheck disable=SC2086
    for pattern in ${MUTANTS:-$*}; do
        case $layer:$pattern in
        pure:src/algorithm* | pure:src/units.rs | pure:src/policy* | pure:src/decision.rs | table:src/table* | lease:src/lease*) files="$files --file $pattern" ;;
        pure:* | table:* | lease:*) ;;
        esac
    done
    [ -n "$files" ]
}

set -f
for pattern in ${MUTANTS:-}; do
    case $pattern in
    src/algorithm* | src/units.rs | src/policy* | src/decision.rs | src/table* | src/lease*) ;;
    *) echo "MUTANTS: $pattern is in none of src/algorithm, src/units.rs, src/policy, src/decision.rs, src/table, src/lease" >&2 && exit 2 ;;
    esac
done
if chosen pure 'src/algorithm/*.rs' src/units.rs 'src/policy/*.rs' src/decision.rs; then
    without_unix
    mutate pure --lib windows invariants policy
    mutate pure expiry traps state_word rates order waiting
    copy
    mutate pure buckets reasons pacing oracle_buckets oracle_windows
fi
if chosen table 'src/table/**/*.rs'; then
    copy
    mutate table --lib table table_single table_statistics wide
    mutate table table_policies table_hot_keys table_transfer table_files table_stress
fi
if chosen lease 'src/lease/**/*.rs'; then
    copy
    mutate lease --features=redis --lib lease_simulation lease_terms
    mutate lease --features=redis redis_lease_keys redis_clock
fi

set +f
cat "$work"/out/*/mutants.out/missed.txt | sort -u >"$work/survivors"
cat "$work"/out/*/mutants.out/caught.txt "$work"/out/*/mutants.out/timeout.txt | sort -u >"$work/noticed"
echo "$(wc -l <"$work/noticed") changes noticed, $(wc -l <"$work/survivors") survived: build/mutants/survivors"
