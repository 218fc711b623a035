#!/bin/sh
# Tests of `tollbar replay`, which has been built in $1. Most sections replay in the order of the file (--reorder 0); `in_order_of_time` does not.
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

# --- log lines -------------------------------------------------------------------------------------

# clf LINE: the time that is read, or why none is.
clf() {
    printf '%s\n' "$1" > "$work/line"
    "$replay" --policy 1/s "$work/line" 2>"$work/errors" | sed -n 's/^times *\(.*\) to .*/\1/p'
    sed -n 's/^tollbar: .*line:1: //p' "$work/errors"
}
when() { check "time $1" "$2" "$(clf "192.0.2.1 - - [$1] \"GET / HTTP/1.1\" 200 1")"; }
line() { check "line $1" "$2" "$(clf "$1")"; }

log_lines() {
    when '17/May/2015:10:05:03 +0000' '2015-05-17 10:05:03'
    when '17/May/2015:10:05:03 +0200' '2015-05-17 08:05:03'
    when '17/May/2015:10:05:03 -0000' '2015-05-17 10:05:03'
    when '17/May/2015:23:05:03 -0330' '2015-05-18 02:35:03'
    when '01/Jan/2015:00:30:00 +0545' '2014-12-31 18:45:00'
    when '31/Dec/1999:23:59:60 +0000' '2000-01-01 00:00:00'
    when '29/Feb/2000:12:00:00 +0000' '2000-02-29 12:00:00'
    when '29/Feb/2024:23:00:00 -0100' '2024-03-01 00:00:00'
    when '01/Jan/1970:00:00:00 +0000' '1970-01-01 00:00:00'
    when '31/Dec/2099:23:59:59 +0000' '2099-12-31 23:59:59'
    when '17/May/2015:10:05:03.250 +0000' '2015-05-17 10:05:03'
    when '29/Feb/1900:12:00:00 +0000' 'there is no such day in that month'
    when '29/Feb/2015:12:00:00 +0000' 'there is no such day in that month'
    when '00/May/2015:10:05:03 +0000' 'there is no such day in that month'
    when '1/May/2015:10:05:03 +0000' 'the day is not two digits and a slash'
    when '17/Mai/2015:10:05:03 +0000' 'the month is not one of Jan to Dec and a slash'
    when '17/May/15:10:05:03 +0000' 'the year is not four digits and a colon'
    when '17/May/2015:24:05:03 +0000' 'the hour is not 00 to 23 and a colon'
    when '17/May/2015:10:60:03 +0000' 'the minute is not 00 to 59 and a colon'
    when '17/May/2015:10:05:61 +0000' 'the second is not 00 to 60'
    when '17/May/2015:10:05:03' 'no blank and zone follow the time of day'
    when '17/May/2015:10:05:03 UTC' 'the zone does not start with + or -'
    when '17/May/2015:10:05:03 +02' 'the zone is not a sign and four digits such as +0200'
    when '17/May/2015:10:05:03 +0060' 'the zone is not a sign and four digits such as +0200'
    when '17/May/2015:10:05:03 +0000 ' 'the time does not end with a bracket'
    when '01/Jan/1970:00:00:00 +0100' 'the time is before 1970'
    when '01/Jan/2600:00:00:00 +0000' 'the time does not fit 64 bits of nanoseconds'
    when '17/May' 'the month is not one of Jan to Dec and a slash'

    t='[17/May/2015:10:05:03 +0000]'
    line "h - - $t" '2015-05-17 10:05:03'
    line "h - - $t \"GET / HTTP/1.1" '2015-05-17 10:05:03'
    line "h - - $t GET / 200" '2015-05-17 10:05:03'
    line "h - [a] name $t \"GET /\"" '2015-05-17 10:05:03'
    line 'h - - "GET /[17/May/2015:10:05:03 +0000]" 200' 'no time in brackets'
    line 'h - - [] "GET /[17/May/2015:10:05:03 +0000]" 200' 'the day is not two digits and a slash'
    line 'h' 'no time in brackets'
    line "$(printf 'h\001i') - - $t" "a control byte in the client's address"

    # A fraction of a second counts: half a second after the first, half of the two-second wait is over.
    { echo 'h - - [17/May/2015:10:05:03.5 +0000]'; echo 'h - - [17/May/2015:10:05:04 +0000]'; } > "$work/line"
    "$replay" --policy '1/2s' --decisions "$work/decisions" "$work/line" >/dev/null
    check 'fractions of a second' 'A 0 -
D 0 1500000000' "$(cat "$work/decisions")"
}

# Everything that a real log may hold, and what is made of it.
odd_logs() {
    t='[17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1'
    {
        printf '\357\273\277192.0.2.1 - - %s\r\n' "$t"
        printf '\r\n   \n\n'
        printf '2001:db8::1 - - %s "-" "a\000b"\r\n' "$t"
        printf '\000\000\000\000\n'
        printf '192.0.2.1 - - %s "' "$t"
        head -c 3000000 /dev/zero | tr '\0' x
        printf '"\n'
        head -c 3000000 /dev/zero | tr '\0' '['
        printf '\n\\\033[2J - - %s\n' "$t"
        printf '\\w\303\251b - - %s\n' "$t"
        printf '[::1] - - %s' "$t"
    } > "$work/odd"
    # The five that may pass, one of them twice, and three that are none.
    check 'odd log: requests' 5 "$(value requests "$work/odd")"
    check 'odd log: bad lines' 3 "$(value 'bad lines' "$work/odd")"
    check 'odd log: blank lines' 3 "$(value 'blank lines' "$work/odd")"
    check 'odd log: keys' 4 "$(value keys "$work/odd")"
    "$replay" "$work/odd" 2>&1 >/dev/null | sed "s,$work/,," > "$work/errors"
    check 'odd log: bad lines are named' "tollbar: odd:6: a control byte in the client's address
tollbar: odd:8: no time in brackets within the first mebibyte
tollbar: odd:9: a control byte in the client's address" "$(cat "$work/errors" | sed 's/the day is.*/?/')"
    check 'odd log: keys are printed in plain letters' \
        '2 192.0.2.1|1 2001:db8::1|1 [::1]|1 \x5cw\xc3\xa9b|' \
        "$("$replay" --policy 0/s "$work/odd" 2>/dev/null | sed -n '/^most denied/,$p' |
            sed 's/^most denied//' | tr -s ' ' | sed 's/^ //' | tr '\n' '|')"
    check 'standard input' "$(report "$work/odd" | tail -n +2)" "$(report - < "$work/odd" | tail -n +2)"

    : > "$work/empty"
    check 'empty log' '0 in one period' "$(value 'most admitted' --policy 1/s "$work/empty")"
    check 'empty log, compared' 6 "$(report "$work/empty" | grep -c '^10/min.* 0 0 0 0 0 -$')"

    yes 'no request' | head -n 100 > "$work/bad"
    check 'only bad lines' '0 1 2 3 4 5' \
        "$("$replay" "$work/bad" 2>&1 >/dev/null | sed -n 's/.*bad:\([0-9]*\): no time in brackets$/\1/p' |
            { printf '0 '; tr '\n' ' '; } | sed 's/ $//')"
    check 'only bad lines: in all' 1 "$("$replay" "$work/bad" 2>&1 >/dev/null | grep -c '100 bad lines in all$')"
    check 'only bad lines: the report' 100 "$(value 'bad lines' "$work/bad")"
}

trace_lines() {
    cat > "$work/lines" <<END
1 k 1
 2	k  3	
18446744073709551615 k 18446744073709551615
18446744073709551616 k 1
1 k 18446744073709551616
-1 k 1
1.5 k 1
1 k x
1 k 1 1
1 k
1
END
    "$replay" --format trace "$work/lines" 2>&1 >/dev/null | sed 's/.*lines://' > "$work/errors"
    check 'trace lines that are none' '4: the time does not fit 64 bits
5: the cost does not fit 64 bits
6: the time is not a whole number
7: the time is not a whole number
8: the cost is not a whole number' "$(head -n 5 "$work/errors")"
    check 'trace lines' '3 8' "$(echo "$(value requests --format trace "$work/lines")" \
        "$(value 'bad lines' --format trace "$work/lines")")"
    printf '1 k 1 1\n1 k\n1\n' > "$work/lines"
    "$replay" --format trace "$work/lines" 2>&1 >/dev/null | sed -n 's/.*lines:\([1-3]:\)/\1/p' > "$work/errors"
    check 'trace lines of other lengths' '1: more than a time, a key and a cost
2: no cost after the key
3: no key after the time' "$(cat "$work/errors")"
    # After the last time that a word can hold nothing is admitted, and no wait helps.
    echo '18446744073709551615 k 1' > "$work/lines"
    check 'the end of time' 'D 0 -' "$(decisions "$work/lines" '1/s')"
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
    # In the order of the file a late request counts at the latest time before it: 4 and 1 at 10, and 2 at 11. The 2 of time 0 are refused,
    # since a bucket that is full again at 10.4 lacks 104 permits then.
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

# --- tables ----------------------------------------------------------------------------------------

# small ON_FULL POLICY: the decisions on 10,000 keys in the 5,120 slots of the smallest table, as
# "allowed refused-without-a-place".
small() {
    "$replay" --format trace --policy "$2" --keys 1 --on-full "$1" "$work/crowd" |
        awk '$1 == "allowed" { allowed = $2 } $1 == "no" { without = $3 } END { print allowed, without + 0 }'
}
# refused_crowd POLICY: a checksum of the refused keys.
refused_crowd() {
    "$replay" --format trace --policy "$1" --keys 1 --decisions "$work/decisions" "$work/crowd" >/dev/null &&
        cksum < "$work/decisions"
}
# holds NAME CONDITION: of the numbers $1 and $2 in `got`.
holds() { check "$1: $2" yes "$(echo "$got" | awk "{ print ($2) ? \"yes\" : \"no: \" \$0 }")"; }

tables() {
    awk 'BEGIN { for (i = 0; i < 10000; i++) print "1000000000 k" i " 1" }' > "$work/crowd"
    check 'a state for each key' '10000|' "$(value allowed --format trace --policy 1/h "$work/crowd")|$(
        value 'no place' --format trace --policy 1/h "$work/crowd")"
    check 'enough room, as asked' '2 for 20000 keys a policy, 3.4 MB|0' "$(
        value tables --format trace --keys 20000 --policy 1/h --policy '9/h algo sliding-log' "$work/crowd")|$(
        value 'no place' --format trace --keys 20000 --policy 1/h "$work/crowd")"

    # Fewer than there are keys and policies, were it for all policies together.
    check 'enough room under each policy' 0 "$(value 'no place' --format trace --keys 15000 --policy 1/h --policy 2/h \
        --policy 3/h --policy 4/h "$work/crowd")"

    for policy in 1/h '1/h algo sliding-window' '1/h algo sliding-log'; do
        got=$(small deny "$policy")
        holds "too small, deny, $policy" '$1 <= 5120 && $1 > 4500 && $1 + $2 == 10000'
        check "too small, the same each time, $policy" "$(refused_crowd "$policy")" "$(refused_crowd "$policy")"
        got=$(small allow "$policy")
        holds "too small, allow, $policy" '$1 == 10000 && $2 >= 4880'
        got=$(small evict-nearest "$policy")
        holds "too small, evict-nearest, $policy" '$1 == 10000 && $2 >= 4880'
        # Whoever takes over the debt of one who has taken all is refused.
        got=$(small inherit "$policy")
        holds "too small, inherit, $policy" '$1 <= 5120 && $1 > 4500 && $1 + $2 == 10000'
    done
    # Of two permits the first has one and the heir the other.
    got=$(small inherit 2/h)
    holds 'too small, inherit, 2/h' '$1 - $2 <= 5120 && $1 - $2 > 4500 && $2 > 4500'
    for on_full in 'deny refused' "inherit with another key's debt" 'allow admitted, not remembered' \
        'evict-nearest admitted, another key forgotten'; do
        check "too small, ${on_full%% *}, told" "${on_full#* }" \
            "$(value 'no place' --format trace --policy 2/h --keys 1 --on-full "${on_full%% *}" "$work/crowd" |
                sed 's/^[0-9]*, //')"
    done

    # More than one table has policies, all the same, and two of those that have a table each.
    set --
    for i in $(seq 130); do set -- "$@" --policy 2/s; done
    set -- "$@" --policy '2/s algo sliding-log' --policy '2/s algo sliding-log' --format trace --keys 10
    check 'many policies: tables' 4 "$(value tables "$@" "$work/five" | cut -d' ' -f1)"
    seconds u '5 5 5' > "$work/same"
    check 'many policies: nobody pays for another' '132 2' \
        "$(value allowed "$@" "$work/same" | uniq -c | tr -s ' ' | sed 's/^ //')"
}

# with FILE LOG ARGUMENT...: the decisions of a replay into a table in FILE.
with() {
    file=$1 log=$2
    shift 2
    "$replay" --format trace --keys 10 --table "$file" --decisions "$work/decisions" "$@" "$log" > "$work/report" &&
        cat "$work/decisions"
}

table_files() {
    for policy in '120/min' '120/min algo sliding-window' '120/min algo sliding-log'; do
        whole=$(decisions "$work/T1" "$policy")
        head -n 100 "$work/T1" > "$work/first"
        tail -n +101 "$work/T1" > "$work/second"
        rm -f "$work/table"
        check "file, $policy: goes on" "$whole" \
            "$(with "$work/table" "$work/first" --policy "$policy"; with "$work/table" "$work/second" --policy "$policy")"
        check "file, $policy: otherwise it would not" no \
            "$([ "$whole" = "$(decisions "$work/first" "$policy"; decisions "$work/second" "$policy")" ] || echo no)"
    done
    # A file counts from its beginning on, a report from its own. The crowd is still there.
    rm -f "$work/table"
    set -- --format trace --policy 1/h --keys 1 --table "$work/table"
    echo '1000000000 newcomer 1' > "$work/one"
    got="$(value 'no place' "$@" "$work/crowd" | cut -d, -f1) $(value 'no place' "$@" "$work/one" | cut -d, -f1)"
    holds 'file: who found no place this time' '$1 >= 4880 && $2 == 1'

    sum=$(cksum < "$work/table")
    fails 'file: other policies' 1 "$work/table: the table has other policies" \
        --format trace --policy 2/h --keys 1 --table "$work/table" "$work/crowd"
    fails 'file: other capacity' 1 "$work/table: the table has another capacity" \
        --format trace --policy 1/h --keys 2 --table "$work/table" "$work/crowd"
    fails 'file: other options' 1 "$work/table: the table has other options" \
        --format trace --policy 1/h --keys 1 --on-full allow --table "$work/table" "$work/crowd"
    check 'file: stays as it was' "$sum" "$(cksum < "$work/table")"
    fails 'file: no table' 1 "$work/crowd: not a tollbar table" \
        --format trace --policy 1/h --keys 1 --table "$work/crowd" "$work/crowd"
    check 'file: no table, and stays' '10000 1000000000 k9999 1' "$(awk 'END { print NR, $0 }' "$work/crowd")"
    fails 'file: no directory' 1 "$work/no/t: the file cannot be opened: No such file or directory" \
        --format trace --policy 1/h --keys 1 --table "$work/no/t" "$work/crowd"
    fails 'file: one table only' 2 "$work/t: the policies do not share one table" --keys 1 --table "$work/t" "$work/crowd"
    fails 'file: without keys' 2 '--table needs --keys: how many keys the file is for' --table "$work/t" "$work/crowd"
    refused 'file: twice' 2 'cannot be used multiple times' --table a --table b c
    check 'file: none was made' '' "$(ls "$work/t" 2>/dev/null)"
}

table_faults() {
    for keys in 0 -1 +1 x 1x '' ' 1' 18446744073709551616; do
        fails "keys '$keys'" 2 "--keys is a whole number from 1 on, not '$keys'" --keys "$keys" a
    done
    fails 'too many keys' 2 '10/min: the capacity is zero or more than a table can hold' \
        --keys 18446744073709551615 a
    refused 'wrong on-full' 2 "possible values: evict-nearest, inherit, allow, deny" --on-full evict a
    fails 'no memory' 1 '100000/h algo sliding-log: out of memory' \
        --format trace --keys 1000000000 --policy '100000/h algo sliding-log' "$work/one"
    check 'no memory: how much' 'tollbar: a table of 1000000000 keys takes 1 PB' \
        "$(sed -n '2s/takes 1[0-9]\{15\} bytes$/takes 1 PB/p' "$work/errors")"
    fails 'policy: no table for it' 2 \
        "6/s algo sliding-window anchor first: windows of many keys cannot start at a first request: leave out 'anchor first'" \
        --keys 10 --policy '6/s algo sliding-window anchor first' a
    fails 'policy: no table for its log' 2 \
        '9/10ns algo sliding-log: logs of many keys cannot have so many entries in so short a period' \
        --keys 10 --policy '9/10ns algo sliding-log' a
}

# --- faults ----------------------------------------------------------------------------------------

# fails NAME STATUS MESSAGE ARGUMENT...: nothing on standard output, the message first on the other.
fails() {
    name=$1 status=$2 message=$3
    shift 3
    output=$("$replay" "$@" 2>"$work/errors")
    check "$name" "$status||tollbar: $message" "$?|$output|$(head -n 1 "$work/errors")"
}

# refused NAME STATUS WORDS ARGUMENT...: nothing on standard output, and the words somewhere on the other.
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
    refused 'wrong key' 2 "possible values: address, none" --key user a
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

. "$here/inputs.sh"

# --- the demo, where there is no real log -----------------------------------------------------------

demo() {
    mkdir -p "$work/project/tools" "$work/project/build"
    cp "$here/../../../../tools/demo.sh" "$work/project/tools"
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
table_files
table_faults
memory
hostile
demo
reference

finish
