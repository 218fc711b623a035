#!/bin/sh
# Tests of `tollbar replay`, which has been built in $1. Most sections replay in the order of the
# file (--reorder 0); `in_order_of_time` does not.
set -u
build=$(cd "${1:?usage: test.sh BUILD}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
export LC_ALL=C
# shellcheck source=../check.sh
. "$here/../check.sh"

# report ARGUMENT...: the report's lines, each with single blanks.
report() { "$replay" "$@" 2>/dev/null | tr -s ' '; }
# value NAME ARGUMENT...: one line of the report, without its name.
value() {
    name=$1
    shift
    report "$@" | sed -n "s/^$name //p"
}
# decisions TRACE POLICY: one line a request.
decisions() {
    "$replay" --format trace --policy "$2" --decisions "$work/decisions" "$1" >/dev/null && cat "$work/decisions"
}
# verdicts TRACE POLICY: one letter a request.
verdicts() { decisions "$1" "$2" | cut -c1 | tr -d '\n'; }
seconds() { for t in $2; do echo "${t}000000000 $1 1"; done; }

# --- small traces, checked by hand -----------------------------------------------------------------

golden() {
    for file in "$here"/golden/*.txt; do
        sed 's/#.*//' "$file" | awk '$1 ~ /^[0-9]/ { print $1, $2, $3 }' > "$work/golden"
        expected=$(sed 's/#.*//' "$file" | awk '$1 ~ /^[0-9]/ { print $4, $5, $6 }')
        policy=$(sed -n 's/^policy //p' "$file")
        check "golden/$(basename "$file")" "$expected" "$(decisions "$work/golden" "$policy")"
    done
}

# --- traces of requests per stretch of time --------------------------------------------------------

# evenly N FROM TO: N requests in [FROM, TO) milliseconds.
evenly() {
    awk -v n="$1" -v from="$2" -v to="$3" 'BEGIN {
        for (i = 0; i < n; i++) printf "%.0f k 1\n", int(from * 1e6 + i * (to - from) * 1e6 / n) }'
}

# admits TRACE POLICY ALLOWED [MOST]
admits() {
    check "$1: $2: allowed" "$3" "$(value allowed --format trace --policy "$2" "$work/$1")"
    if [ $# = 4 ]; then
        check "$1: $2: most in a period" "$4 in one period, k" \
            "$(value 'most admitted' --format trace --policy "$2" "$work/$1")"
    fi
}

traces() {
    { evenly 20 0 30000; evenly 100 30000 60000; evenly 100 60000 90000; evenly 20 90000 120000; } > "$work/T1"
    { evenly 2 0 20000; evenly 2 20000 40000; evenly 116 40000 60000; evenly 116 60000 80000; } > "$work/T1b"
    { evenly 10 30000 60000; evenly 10 60000 90000; } > "$work/T2"
    { evenly 150 999 1000; evenly 150 1000 1001; } > "$work/edge"

    admits T1 '120/min algo fixed-window' 240 200
    admits T1b '120/min algo fixed-window' 236 234
    admits T2 '10/min algo fixed-window' 20 20
    admits T2 '10/min algo fixed-window anchor first' 10
    admits edge '100/s algo fixed-window' 200 200

    admits T1 '120/min algo sliding-log' 160 120
    admits T1 '120/min algo sliding-log count rejected' 121
    check 'T1: sliding log, by half-minutes' '20 100 20 20' \
        "$(verdicts "$work/T1" '120/min algo sliding-log' | fold -w 20 |
            awk '{ n[NR == 1 ? 1 : NR < 7 ? 2 : NR < 12 ? 3 : 4] += gsub(/A/, "") }
                END { print n[1], n[2], n[3], n[4] }')"
    seconds u '3601 3630 3650 3700 3705' > "$work/five"
    check 'sliding log, rejected not logged' AADAA "$(verdicts "$work/five" '2/min algo sliding-log')"
    check 'sliding log, rejected logged' AADAD "$(verdicts "$work/five" '2/min algo sliding-log count rejected')"
    printf '5000 u 1\n5000 u 1\n5000 u 1\n' > "$work/same"
    check 'sliding log, hits at one instant' AAD "$(verdicts "$work/same" '2/s algo sliding-log')"

    while read -r trace segments n strict interpolated; do
        admits "$trace" "120/min algo sliding-window segments $segments" "$n"
        admits "$trace" "120/min algo sliding-window segments $segments mode strict" "$strict"
        admits "$trace" "120/min algo sliding-window segments $segments mode interpolated" "$interpolated"
    done <<END
T1 3 187 147 173
T1 6 160 153 159
T1 60 160 159 159
T1b 3 122 120 121
END
    { evenly 11 5000 6000; echo '65000000000 k 1'; } > "$work/eleven"
    check 'sliding window lets go after a window' AAAAAAAAAADA \
        "$(verdicts "$work/eleven" '10/min algo sliding-window segments 60')"

    admits T1 '120/min algo weighted-window' 199
    admits T1b '120/min algo weighted-window' 159
}

# --- order, keys, ranks ----------------------------------------------------------------------------

ranks() {
    # 12 keys, denied as often as their number is above 2; 3 and 03 as often.
    for key in 1 2 3 4 5 6 7 8 9 10 11 12 03; do
        yes "5 $key 1" | head -n "$key"
    done > "$work/ranks"
    check 'ranks' '10 12|9 11|8 10|7 9|6 8|5 7|4 6|3 5|2 4|1 03|' \
        "$("$replay" --format trace --policy '2/s' "$work/ranks" | sed -n '/^most denied/,$p' |
            sed 's/^most denied//' | tr -s ' ' | sed 's/^ //' | tr '\n' '|')"
    check 'ranks: keys denied' '13, of them denied 11' "$(value keys --format trace --policy '2/s' "$work/ranks" | tail -n 1)"
    check 'most admitted: ties by key' '2 in one period, 03' \
        "$(value 'most admitted' --format trace --policy '2/s' "$work/ranks")"
    check 'never' '81, of them never 81' "$(value denied --format trace --policy '2/s' - <<END
$(yes '1 k 3' | head -n 81)
END
)"
    check 'one key for all' '2 in one period, (all)' \
        "$(value 'most admitted' --format trace --key none --policy '2/s' "$work/ranks")"

    # The window (t - 10, t]: 10 and 0 are not in one, 10 and 1 are.
    printf '10 k 4\n0 k 2\n1 k 1\n11 k 2\n' > "$work/order"
    # In the order of the file a late request counts at the latest time before it: 4 and 1 at 10,
    # and 2 at 11. The 2 of time 0 are refused, since a bucket that is full again at 10.4 lacks 104
    # permits then.
    check 'out of order: the fullest window' '7 in one period, k' \
        "$(value 'most admitted' --format trace --policy '100/10ns' "$work/order")"
    check 'out of order: counted' '2, by up to 10 ns|of the file' \
        "$(value 'out of order' --format trace "$work/order")|$(value order --format trace "$work/order")"
    check 'out of order: times' '0 to 11 ns' "$(value times --format trace "$work/order")"

    # Policies of one request stand one after the other.
    printf '0 k 2\n0 k 1\n' > "$work/two"
    "$replay" --format trace --policy 2/s --policy '1/s algo sliding-log' --decisions "$work/decisions" \
        "$work/two" >/dev/null
    check 'several policies' 'A 0 -
N 1 -
D 0 500000000
A 0 -' "$(cat "$work/decisions")"
    check 'policies are printed in full' '120/min|1/s algo sliding-window segments 4|' \
        "$(value policy --format trace --policy '120/60s' --policy '1/1000ms segments 4 algo sliding-window' \
            "$work/two" | tr '\n' '|')"
}

. "$here/lines.sh"
. "$here/inputs.sh"
. "$here/tables.sh"
. "$here/faults.sh"

# --- the demo, where there is no real log -----------------------------------------------------------

demo() {
    mkdir -p "$work/project/tools" "$work/project/build"
    cp "$here/../../../../tools/demo.sh" "$here/../../../../tools/demo-log.sh" "$work/project/tools"
    cp "$tollbar" "$work/project/build/tollbar"
    (cd "$work/project" && sh tools/demo.sh build) > "$work/demo" 2>"$work/errors"
    check 'demo' "0 10000 4 9996" "$? $(echo $(wc -l < "$work/project/build/demo.log")) \
$(grep -c 'demo.log:[0-9]*: ' "$work/errors" | awk '{ print $1 / 3 }') \
$(echo $(wc -l < "$work/project/build/demo-decisions.txt"))"
    check 'demo: six algorithms' 6 "$(grep -c '^10/min' "$work/demo")"
}

# --- the reference ---------------------------------------------------------------------------------

requests=20000

equals_reference() {
    if ! python3 "$here/reference.py" random "$1" 20150517 $requests "$work/random"; then
        check "$1: reference" 'python3, and a policy that it can do' 'neither'
        return
    fi
    "$replay" --format trace --policy "$1" --decisions "$work/got" "$work/random.trace" |
        sed -n '/^policy/,$p' > "$work/report"
    check "$1: $requests decisions" 'same' \
        "$(cmp "$work/random.decisions" "$work/got" >/dev/null && echo same ||
            paste -d'|' "$work/random.trace" "$work/random.decisions" "$work/got" |
            awk -F'|' '$2 != $3 { print NR ": " $0; exit }')"
    check "$1: report" "$(cat "$work/random.report")" "$(cat "$work/report")"
}

reference() {
    while read -r policy; do
        equals_reference "$policy"
    done <<END
10/min
700000000/s burst 12
3/s burst 5 init 2
7/s burst 3 init 3 borrow
3/min algo interval
2/s burst 5 algo interval
9/s burst 7 algo interval anchor first
10/s algo fixed-window
3/min algo fixed-window count rejected
10/s algo fixed-window anchor first
7/333333333ns algo weighted-window
6/s algo sliding-window segments 5
6/s algo sliding-window segments 5 mode strict
10/3s algo sliding-window segments 6 mode interpolated
10/s algo sliding-log
3/min algo sliding-log count rejected
3/s algo pacer slack 2
100/s burst 4 algo pacer
100/s burst 20 algo warm-up warm 2s
3/s burst 12 algo warm-up warm 4s cold 5
END
}

tollbar=$build/tollbar
replay=$work/replay
printf '#!/bin/sh\nexec "%s" replay --reorder 0 "$@"\n' "$tollbar" >"$replay"
chmod +x "$replay"
golden
traces
log_lines
odd_logs
trace_lines
formats
compressed
ranks
in_order_of_time
faults
tables
classes
table_files
table_faults
memory
hostile
demo
reference

finish
