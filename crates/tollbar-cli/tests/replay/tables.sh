# shellcheck shell=sh
# test.sh sources this file. It tests replays into tables, in memory and in files.

# --- tables ----------------------------------------------------------------------------------------

# small ON_FULL POLICY: replays 10,000 keys into the 5,120 slots of the smallest table, and prints
# two numbers: the requests that were admitted, and the requests that found no slot.
small() {
    "$replay" --format trace --policy "$2" --keys 1 --on-full "$1" "$work/crowd" |
        awk '$1 == "allowed" { allowed = $2 } $1 == "no" { without = $3 } END { print allowed, without + 0 }'
}
# refused_crowd POLICY: prints a checksum of the decisions on these keys.
refused_crowd() {
    "$replay" --format trace --policy "$1" --keys 1 --decisions "$work/decisions" "$work/crowd" >/dev/null &&
        cksum < "$work/decisions"
}
# holds NAME CONDITION: checks an awk condition, in which $1 and $2 are the two numbers in `got`.
holds() { check "$1: $2" yes "$(echo "$got" | awk "{ print ($2) ? \"yes\" : \"no: \" \$0 }")"; }

tables() {
    awk 'BEGIN { for (i = 0; i < 10000; i++) print "1000000000 k" i " 1" }' > "$work/crowd"
    check 'a state for each key' '10000|' "$(value allowed --format trace --policy 1/h "$work/crowd")|$(
        value 'no place' --format trace --policy 1/h "$work/crowd")"
    check 'enough room, as asked' '2 for 20000 keys a policy, 3.5 MB|0' "$(
        value tables --format trace --keys 20000 --policy 1/h --policy '9/h algo sliding-log' "$work/crowd")|$(
        value 'no place' --format trace --keys 20000 --policy 1/h "$work/crowd")"

    # --keys counts the keys of each policy. 15,000 slots for all four policies together would be too few.
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
        # Each key takes its only permit, so a key that inherits a slot inherits a full debt, and is
        # refused.
        got=$(small inherit "$policy")
        holds "too small, inherit, $policy" '$1 <= 5120 && $1 > 4500 && $1 + $2 == 10000'
    done
    # A slot's first key takes one of the two permits, and the key that inherits the slot takes the
    # other.
    got=$(small inherit 2/h)
    holds 'too small, inherit, 2/h' '$1 - $2 <= 5120 && $1 - $2 > 4500 && $2 > 4500'
    for on_full in 'deny refused' "inherit with another key's debt" 'allow admitted, not remembered' \
        'evict-nearest admitted, another key forgotten'; do
        check "too small, ${on_full%% *}, in the report" "${on_full#* }" \
            "$(value 'no place' --format trace --policy 2/h --keys 1 --on-full "${on_full%% *}" "$work/crowd" |
                sed 's/^[0-9]*, //')"
    done

    # 130 equal policies need two tables, and each of the two sliding logs needs one of its own.
    set --
    for i in $(seq 130); do set -- "$@" --policy 2/s; done
    set -- "$@" --policy '2/s algo sliding-log' --policy '2/s algo sliding-log' --format trace --keys 10
    check 'many policies: tables' 4 "$(value tables "$@" "$work/five" | cut -d' ' -f1)"
    seconds u '5 5 5' > "$work/same"
    check 'many policies: each has its own states' '132 2' \
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
        check "file, $policy: without the file the second half starts afresh" no \
            "$([ "$whole" = "$(decisions "$work/first" "$policy"; decisions "$work/second" "$policy")" ] || echo no)"
    done
    # The table's counters go on from replay to replay. A report counts only its own replay. The
    # second replay finds a full table.
    rm -f "$work/table"
    set -- --format trace --policy 1/h --keys 1 --table "$work/table"
    echo '1000000000 newcomer 1' > "$work/one"
    got="$(value 'no place' "$@" "$work/crowd" | cut -d, -f1) $(value 'no place' "$@" "$work/one" | cut -d, -f1)"
    holds 'file: a report counts the keys without a slot of its own replay' '$1 >= 4880 && $2 == 1'

    # A log's times are Unix times. A server whose table has another clock, as it has by default,
    # cannot open the file.
    check 'file: its clock counts from 1970' 'clock          wall, from 1970 on; 0 steps back' "$("$tollbar" table stat "$work/table" | grep '^clock')"
    sum=$(cksum < "$work/table")
    fails 'file: other policies' 1 "$work/table: the table has other policies (tollbar table set-policy)" \
        --format trace --policy 2/h --keys 1 --table "$work/table" "$work/crowd"
    fails 'file: other capacity' 1 "$work/table: the table has another capacity" \
        --format trace --policy 1/h --keys 2 --table "$work/table" "$work/crowd"
    fails 'file: other options' 1 "$work/table: the table has other options" \
        --format trace --policy 1/h --keys 1 --on-full allow --table "$work/table" "$work/crowd"
    check 'file: unchanged by refused replays' "$sum" "$(cksum < "$work/table")"
    fails 'file: no table' 1 "$work/crowd: not a tollbar table" \
        --format trace --policy 1/h --keys 1 --table "$work/crowd" "$work/crowd"
    check 'file: no table, and unchanged' '10000 1000000000 k9999 1' "$(awk 'END { print NR, $0 }' "$work/crowd")"
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

# --- classes ---------------------------------------------------------------------------------------

# classed CLASS...: three hundred requests of one key, of these classes in turn.
classed() {
    awk -v n="$#" -v all="$*" 'BEGIN {
        split(all, class, " ")
        for (i = 0; i < 300; i++) printf "{\"ts\":1000,\"ip\":\"192.0.2.1\",\"group\":\"%s\"}\n", class[i % n + 1] }'
}

classes() {
    classed low > "$work/low"
    classed low high > "$work/both"
    classed other > "$work/other"
    set -- --policy '100/h reserve low 20 high 0' --field class=group
    for room in '' '--keys 10'; do
        # shellcheck disable=SC2086
        check "classes: low stops at its reserve $room" 80 "$(value allowed "$@" $room "$work/low" | cut -d' ' -f1)"
        # shellcheck disable=SC2086
        check "classes: high takes the rest $room" 100 "$(value allowed "$@" $room "$work/both" | cut -d' ' -f1)"
        # shellcheck disable=SC2086
        check "classes: a policy without classes $room" 100 "$(value allowed --policy 100/h --field class=group $room "$work/low" | cut -d' ' -f1)"
        # shellcheck disable=SC2086
        check "classes: one that the policy does not have $room" 'tollbar: the policy has no class "other"' \
            "$("$replay" "$@" $room "$work/other" 2>&1 >/dev/null | tail -n 1)"
    done
    "$replay" "$@" --decisions "$work/decisions" "$work/low" >/dev/null
    check 'classes: what is left at a refusal' '80 A|220 D 20' \
        "$(grep -c ^A "$work/decisions") A|$(grep -c '^D 20 ' "$work/decisions") D 20"
    { echo 'time,address,class'; for _ in $(seq 150); do echo '1000,192.0.2.1,1'; done; } > "$work/numbers"
    check 'classes: by number, in a CSV' 80 "$(
        value allowed --policy '100/h reserve low 20 high 0' --field class=class "$work/numbers" | cut -d' ' -f1)"
}
