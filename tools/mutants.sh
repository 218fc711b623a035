#!/bin/sh
# Changes the sources one place at a time with cargo-mutants and runs the tests of that layer, in a
# copy of the tree in build/mutants. build/mutants/survivors lists the changes that no test noticed,
# one a line: file:line:column: change. build/mutants/counts has the sums.
#   MUTANTS=src/units.rs tools/mutants.sh      files, by names or patterns of cargo-mutants
#   SHARD=3/8 tools/mutants.sh                 one eighth of each layer, the fourth: shards count from 0
# A change takes some 4 seconds, because all tests of a layer are one program that ends at the first
# failure. The slow tests are run with those changes that survive the quick ones. The script
# succeeds whatever survives: the list is what is asked for.
set -u
cd "$(dirname "$0")/.."
tools/setup.sh mutants || exit 1
. tools/rust.sh
root=$PWD
work=$root/build/mutants
tree=$work/tree
export CARGO_TARGET_DIR="$work/target" CARGO_INCREMENTAL=1
# A property test need not look for the smallest case that fails.
export PROPTEST_MAX_SHRINK_ITERS=0
rm -rf "$work/out"
mkdir -p "$work/out"
: >"$work/survivors"
: >"$work/counts"

# CRATE MODULE...: makes the tree in which the crate has these files of its tests/ among its unit
# tests. A change is compiled once for all of them, and incrementally: 2 s in place of a minute for
# a program each. Files of a program with a folder use what lies beside it by `crate::`.
combine() {
    crate=$tree/crates/$1 crate_name=$(echo "$1" | tr - _)
    [ "$1" != tollbar ] || crate=$tree
    shift
    rm -rf "$tree"
    mkdir -p "$tree"
    mkdir -p "$tree/crates"
    cp -r Cargo.lock README.md src tests ffi-tests examples "$tree"
    cp -r crates/tollbar-redis "$tree/crates"
    # The library alone, optimized for a short time until the tests end: compiling is most of it,
    # and the oracle's big numbers are compiled once.
    sed -e '/^members = \[/,/^\]/c members = [".", "crates/tollbar-redis"]' -e '/^default-members/d' -e '/^\[profile\./,/^$/d' Cargo.toml >"$tree/Cargo.toml"
    sed -i '/^\[\[bench\]\]/,/^$/d' "$tree/Cargo.toml"
    cat >>"$tree/Cargo.toml" <<'PROFILE'

[profile.test]
opt-level = 0
debug = 0

[profile.test.package."*"]
opt-level = 3
PROFILE
    # The programs are written for std's prelude.
    sed -i 's/^#!\[no_std\]$//' "$crate/src/lib.rs"
    {
        printf '#[cfg(test)]\nextern crate self as %s;\n' "$crate_name"
        # Tests run in the order of their names.
        n=100
        for shared in common oracle overload; do
            [ ! -e "$crate/tests/$shared/mod.rs" ] || [ "$crate_name" != tollbar ] ||
                printf '#[cfg(test)]\n#[path = "../tests/%s/mod.rs"]\nmod %s;\n' "$shared" "$shared"
        done
        for module; do
            n=$((n + 1))
            file=$(cd "$crate/tests" && find . -not -path './oracle/*' \( -path "*/$module.rs" -o -path "*/$module/mod.rs" \))
            printf '#[cfg(test)]\n#[path = "../tests/%s"]\nmod a%s_%s;\n' "$file" "$n" "$module"
        done
        cat <<'STOP'
/// Ends the process at the first panic: one failure is enough.
#[cfg(test)]
mod stop {
    extern "C" fn at_the_first_failure() {
        std::panic::set_hook(std::boxed::Box::new(|why| {
            let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{why}\n"));
            // SAFETY: `_exit` takes no pointer.
            unsafe { libc::_exit(101) }
        }));
    }
    #[used]
    #[link_section = ".init_array"]
    static INSTALLED: extern "C" fn() = at_the_first_failure;
}
STOP
    } >>"$crate/src/lib.rs"
}

# OUT ARGUMENTS...: changes the tree's files one by one, as cargo-mutants is told by the arguments,
# and runs the tests that $tests leave. $options are cargo's. It runs them first without a change,
# and takes what needs three times as long for noticed.
mutate() {
    out=$work/out/$1
    shift
    # shellcheck disable=SC2086
    (cd "$tree" && cargo mutants --in-place --config "$root/tools/mutants.toml" --colors never --output "$out" --timeout-multiplier 3 \
        --minimum-test-timeout 15 "$@" -C=--lib $options -- -- $tests)
    status=$?
    # 2: some survived; 3: some made a test run too long.
    case $status in 0 | 2 | 3) ;; *) exit 1 ;; esac
}

# LAYER: changes the files in $files, with quick tests.
quick() {
    # shellcheck disable=SC2086
    mutate "$1-quick" ${SHARD:+--shard "$SHARD" --sharding round-robin} $files
}

# LAYER: tries again what survived the quick tests. Whether there is anything must be known before
# the tree is made.
slow() {
    layer=$1
    set --
    while read -r name; do
        set -- "$@" --re "^$(printf '%s' "$name" | sed 's/[][\\.*^$()+?{}|]/\\&/g')\$"
    done <"$work/out/$layer-quick/mutants.out/missed.txt"
    mutate "$layer-slow" "$@"
}
survived() { [ -s "$work/out/$1-quick/mutants.out/missed.txt" ]; }

# LAYER: one line with its sums.
count() {
    cat "$work/out/$1-quick/mutants.out/missed.txt" >"$work/out/missed"
    ! survived "$1" || cp "$work/out/$1-slow/mutants.out/missed.txt" "$work/out/missed"
    cat "$work/out/missed" >>"$work/survivors"
    lines() { find "$work/out" -path "*/$1-*/mutants.out/$2.txt" -exec cat {} + | wc -l; }
    caught=$(lines "$1" caught) timeout=$(lines "$1" timeout) unviable=$(lines "$1" unviable) missed=$(wc -l <"$work/out/missed")
    echo "$1: $((caught + timeout + unviable + missed)) mutants, $caught caught, $timeout timed out, $unviable unviable, $missed survived" |
        tee -a "$work/counts"
}

# LAYER PATTERNS: whether MUTANTS chooses any of the layer's files; they are in $files, as
# cargo-mutants wants them.
chosen() {
    layer=$1
    shift
    files= options=
    # shellcheck disable=SC2086
    for pattern in ${MUTANTS:-$*}; do
        case $layer:$pattern in
        pure:src/algorithm* | pure:src/units.rs | pure:src/policy* | pure:src/decision.rs | table:src/table* | lease:crates/tollbar-redis/src/lease*) files="$files --file $pattern" ;;
        pure:* | table:* | lease:*) ;;
        esac
    done
    [ -n "$files" ]
}

set -f
for pattern in ${MUTANTS:-}; do
    case $pattern in
    src/algorithm* | src/units.rs | src/policy* | src/decision.rs | src/table* | crates/tollbar-redis/src/lease*) ;;
    *) echo "MUTANTS: $pattern is in none of src/algorithm, src/units.rs, src/policy, src/decision.rs, src/table, crates/tollbar-redis/src/lease" >&2 && exit 2 ;;
    esac
done
# A test that is to panic would end the process. Tests on the real clock may fail on a loaded
# machine.
never='--skip overflow_is_checked --skip on_the_real_clock --skip table::memory::region'
programs='units rules policy windows invariants expiry traps state_word rates order waiting buckets reasons pacing oracle_buckets oracle_windows end_of_time'
# shellcheck disable=SC2086
if chosen pure 'src/algorithm/*.rs' src/units.rs 'src/policy/**/*.rs' src/decision.rs; then
    combine tollbar $programs
    tests="$never --skip table:: --skip limiter::striped --skip limiter::state_word --skip clock:: --skip windows_are_exact_over
        --skip a_full_table --skip a_table_admits --skip invariant_3_retry_after --skip no_window_admits_more --skip governor_rounds"
    TOLLBAR_TRACES=30 quick pure
    if survived pure; then
        combine tollbar $programs striped table table_single table_change table_policies table_hot_keys
        tests=$never
        slow pure
    fi
    count pure
fi
programs='lease_idle lease_life lease_simulation lease_terms lease_fuzz'
# shellcheck disable=SC2086
if chosen lease 'crates/tollbar-redis/src/lease/**/*.rs'; then
    combine tollbar-redis $programs
    tests="$never --skip table:: --skip limiter:: --skip clock:: --skip redis:: --skip store:: --skip algorithm:: --skip whatever_is_in_its_memory
        --skip the_greater_bound_holds --skip the_chosen_life"
    TOLLBAR_SCHEDULES=600 quick lease
    if survived lease; then
        combine tollbar-redis $programs redis_lease_keys redis_lease_script
        tests="$never --skip table:: --skip limiter:: --skip clock::"
        slow lease
    fi
    count lease
fi
programs='table table_single table_change table_policies table_hot_keys table_transfer table_counts table_statistics table_full wide'
# shellcheck disable=SC2086
if chosen table 'src/table/**/*.rs'; then
    combine tollbar $programs
    tests="$never --skip limiter:: --skip clock:: --skip algorithm:: --skip slots_change_hands --skip no_more_passes_than --skip shuts_out_nobody
        --skip a_million_keys --skip how_many_new_keys_find_no_slot --skip a_busy_key_has --skip credit_ends_before --skip every_key_is_a_limiter
        --skip kills_lose_no_count --skip a_child_and_its_parent --skip a_fresh_state_is_never"
    quick table
    if survived table; then
        combine tollbar $programs table_stress table_fuzz
        tests='--skip overflow_is_checked --skip on_the_real_clock'
        slow table
    fi
    count table
fi
set +f
sort -u -o "$work/survivors" "$work/survivors"
echo "$(wc -l <"$work/survivors") survived: build/mutants/survivors"
