# shellcheck shell=sh
# test.sh sources this file. It tests that `tollbar replay` refuses wrong arguments and unusable
# files, with which status and which message.

# --- faults ----------------------------------------------------------------------------------------

# fails NAME STATUS MESSAGE ARGUMENT...: expects the exit status, an empty standard output, and
# `tollbar: MESSAGE` as the first line of standard error.
fails() {
    name=$1 status=$2 message=$3
    shift 3
    output=$("$replay" "$@" 2>"$work/errors")
    check "$name" "$status||tollbar: $message" "$?|$output|$(head -n 1 "$work/errors")"
}

# refused NAME STATUS WORDS ARGUMENT...: expects the exit status, an empty standard output, and the
# words somewhere in standard error.
refused() {
    name=$1 status=$2 words=$3
    shift 3
    output=$("$replay" "$@" 2>"$work/errors")
    check "$name" "$status|" "$?|$output"
    check "$name: said" yes "$(grep -qF -- "$words" "$work/errors" && echo yes || cat "$work/errors")"
}

faults() {
    echo '0 k 1' > "$work/one"
    refused 'no log' 2 '<LOG>...'
    refused 'unknown option' 2 "unexpected argument '--nope'" --nope a
    refused 'missing argument' 2 "a value is required for '--policy <POLICY>'" --policy
    refused 'wrong key' 2 "address, none" --key user a
    refused 'wrong format' 2 "invalid value 'xml'" --format xml a
    refused 'decisions twice' 2 'cannot be used multiple times' --decisions a --decisions b c
    refused 'standard input twice' 2 'standard input is given twice' - -
    refused 'wrong field' 2 "not 'size=x'" --field size=x a
    fails 'no such file' 1 "$work/none: No such file or directory" "$work/none"
    fails 'a directory' 1 "$work: Is a directory" "$work"
    fails 'a directory as input' 1 'standard input: Is a directory' - < "$work"
    fails 'no directory for decisions' 1 "$work/no/d: No such file or directory" --decisions "$work/no/d" "$work/one"
    fails 'decisions into a directory' 1 "$work: Is a directory" --decisions "$work" "$work/one"
    if [ "$(id -u)" != 0 ]; then
        rm -f "$work/closed"
        cp "$work/one" "$work/closed" && chmod 0 "$work/closed"
        fails 'no right to read' 1 "$work/closed: Permission denied" "$work/closed"
        fails 'no right to write' 1 "$work/closed: Permission denied" --decisions "$work/closed" "$work/one"
    fi
    fails 'decisions over the log' 2 "$work/one: decisions would overwrite the log" \
        --format trace --decisions "$work/one" "$work/one"
    fails 'decisions over the second log' 2 "$work/one: decisions would overwrite the log" \
        --format trace --decisions "$work/one" "$work/five" "$work/one"
    check 'decisions over the log: it is whole' '0 k 1' "$(cat "$work/one")"
    "$replay" --decisions "$work/report" --format trace "$work/one" > "$work/report" 2>"$work/errors"
    check 'report over the decisions' "2|tollbar: $work/report: the report would overwrite the decisions" \
        "$?|$(cat "$work/errors")"
    if [ -w /dev/full ]; then
        yes '0 k 1' | head -n 20000 > "$work/many"
        fails 'full disk, a few decisions' 1 '/dev/full: No space left on device' \
            --format trace --decisions /dev/full "$work/one"
        fails 'full disk, many decisions' 1 '/dev/full: No space left on device' \
            --format trace --decisions /dev/full "$work/many"
        for args in '--help' "--format trace $work/one" "--json --format trace $work/one"; do
            # shellcheck disable=SC2086
            "$replay" $args 2>"$work/errors" >/dev/full
            check "full disk, $args" '1|tollbar: standard output: No space left on device' \
                "$?|$(cat "$work/errors")"
        done
        fails 'full disk, the report' 1 '/dev/full: No space left on device' --html /dev/full "$work/one"
    fi
    check 'help' 0 "$("$replay" --help >/dev/null 2>&1; echo $?)"
    check 'version' 'tollbar' "$("$tollbar" --version | cut -d' ' -f1)"
    check 'a closed pipe says nothing' '' "$( { "$replay" --format trace "$work/crowd"; } 2>&1 >&1 | head -n 0)"

    fails 'policy: grammar' 2 'policy, column 4: expected `/` and a period' --policy '10 pro min' "$work/one"
    check 'policy: grammar, shown' '  10 pro min
     ^' "$(sed -n 2,3p "$work/errors")"
    "$replay" --policy '10/min algo foo' "$work/one" 2>"$work/errors"
    check 'policy: algorithm, shown' '2|  10/min algo foo
              ^' "$?|$(sed -n 2,3p "$work/errors")"
    fails 'policy: stops early' 2 'policy, column 13: expected a burst: a whole number' --policy '10/min burst' "$work/one"
    check 'policy: stops early, shown' '              ^' "$(sed -n 3p "$work/errors")"
    fails 'policy: refused' 2 'policy, column 26: an option does not belong to this algorithm' \
        --policy '10/min algo fixed-window burst 3' "$work/one"
    fails 'policy: too fast' 2 'policy, column 1: the rate is higher than this algorithm can count exactly' \
        --policy '100000000000/ns' "$work/one"
    fails 'policy: a log too large' 2 'policy, column 1: a sliding log may have 16777216 entries at most, fewer in a table if its period is short' \
        --policy '20000000/s algo sliding-log' "$work/one"
    fails 'policy: nothing' 2 'policy, column 1: expected a limit: a whole number' --policy '' "$work/one"
    for time in '' 60 1y -1s 1.5s; do
        "$tollbar" replay "--reorder=$time" "$work/one" >/dev/null 2>"$work/errors"
        check "reorder '$time'" "2|tollbar: --reorder is a time such as 60s, 500ms or 0, not '$time'" "$?|$(cat "$work/errors")"
    done
}
