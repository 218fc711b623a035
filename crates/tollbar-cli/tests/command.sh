#!/bin/sh
# Tests of `tollbar policy`, `tollbar table`, `tollbar bench` and the rest of the command, which has
# been built in $1.
set -u
tollbar=$(cd "${1:?usage: command.sh BUILD}" && pwd)/tollbar
# shellcheck source=check.sh
. "$(dirname "$0")/check.sh"

# has NAME WORDS TEXT
has() { check "$1" yes "$(printf '%s\n' "$3" | grep -qF -- "$2" && echo yes || printf '%s\n' "$3")"; }

# --- policies --------------------------------------------------------------------------------------

check 'policies in their shortest form' '120/min
5/min burst 2' "$("$tollbar" policy check '120/60s' '5/min  burst 2 algo gcra')"
"$tollbar" policy check 10/min '10/fortnight' >"$work/out" 2>"$work/errors"
check 'a wrong one' '2||tollbar: policy, column 4' "$?|$(cat "$work/out")|$(head -n 1 "$work/errors" | cut -d: -f1,2)"
has 'explained' 'at most 119 permits in some window of 1 s' "$("$tollbar" policy explain '100/s burst 20')"
check 'a chart of twenty bars' 20 "$("$tollbar" policy explain '100/s burst 20' | grep -c '#$')"

# --- rules -----------------------------------------------------------------------------------------

site=$(dirname "$0")/../../../examples/rules/site.toml
has 'rules check: the worst case that surprises' ':13:10: warning: blog: "6/min" admits 11 in some minute' "$("$tollbar" rules check "$site")"
check 'rules check: one that does not' 0 "$("$tollbar" rules check "$site" | grep -c 'site: "30/min burst 15"')"
printf "version = 1\n[group.a]\nlimit = '5r/y'\nlimti = 1\n" >"$work/bad.toml"
"$tollbar" rules check "$work/bad.toml" >"$work/out" 2>"$work/errors"
check 'rules check: faults' "2||$work/bad.toml:3:11: $work/bad.toml:4:1: " \
    "$?|$(cat "$work/out")|$(sed 's/^tollbar: //' "$work/errors" | grep -o '^[^ ]* ' | tr -d '\n')"
printf "version = 1\n[group.a]\nlimit = '5/s'\nkey = 'header X-Real-IP'\n" >"$work/forged.toml"
"$tollbar" rules check "$work/forged.toml" >"$work/out" 2>/dev/null
check 'rules check: warnings' '3|1' "$?|$(grep -c 'warning: a: anybody can choose the key' "$work/out")"
# Cases: what the rules decide otherwise than they say has a place, and a status of its own.
cat >"$work/cases.toml" <<'EOF2'
version = 1
[[case]]
name = "two of three"
[[case.step]]
request = "GET /a"
address = "192.0.2.1"
times = 3
pass = 2
status = 429
rule = "a"
wait = "30s"
[[case.step]]
after = "30s"
request = "GET /a"
address = "192.0.2.1"
pass = 0
body = "no"
EOF2
printf 'version = 1\n[group.a]\nlimit = "2/min"\n' >"$work/two.toml"
"$tollbar" rules test "$work/two.toml" "$work/cases.toml" >"$work/out" 2>"$work/errors"
check 'rules test: a failed case' "3|$work/cases.toml:12:1: \"two of three\": 1 of 1 passed, the last by a; expected 0|$work/two.toml: 1 case with 4 requests, 1 failed" \
    "$?|$(head -n 1 "$work/out")|$(cat "$work/errors")"
check 'rules test: the body of the last answer' 1 "$(grep -c 'body "" of the last; expected "no"' "$work/out")"
sed -e '/^pass = 0/d' -e '/^body/d' "$work/cases.toml" >"$work/good.toml"
check 'rules test: standard input' '-: 1 case with 4 requests, 0 failed|0' "$("$tollbar" rules test - "$work/good.toml" <"$work/two.toml")|$?"
printf 'version = 1\n[[case]]\nname = "x"\n[[case.step]]\nrequest = "GET /"\nafter = "5"\ntimes = 0\nfoo = 1\n' >"$work/wrong.toml"
"$tollbar" rules test "$work/two.toml" "$work/wrong.toml" >"$work/out" 2>"$work/errors"
check 'rules test: faults of the cases' "2||6:9: 7:9: 8:1: " "$?|$(cat "$work/out")|$(grep -oE ':[0-9]+:[0-9]+: ' "$work/errors" | sed 's/^://' | tr -d '\n')"
check 'rules check: YAML on standard input, a fault there' "2|-:4:14: group.a.limit: \"y\" in \"5/y\"" \
    "$(printf 'version: 1\ngroup:\n  a:\n    limit: 5/y\n' | "$tollbar" rules check --yaml - 2>&1 >/dev/null | cut -d';' -f1 | sed 's/^/2|/')"
"$tollbar" rules check "$work/nowhere.toml" 2>"$work/errors"
check 'rules check: no file' "1|tollbar: $work/nowhere.toml: " "$?|$(grep -o "^tollbar: $work/nowhere.toml: " "$work/errors")"
printf 'version = 1\ninclude = "two.toml"\n[group.b]\nlimit = "5/y"\n' >"$work/main.toml"
check 'rules check: an included file' "$work/two.toml:3:9: group.a.limit" "$(printf 'version = 1\n[group.a]\nlimit = 7\n' >"$work/two.toml"; "$tollbar" rules check "$work/main.toml" 2>&1 | sed -n 2p | cut -d: -f1-4)"
has 'rules explain' 'takes 1 of "6/min" and "200/day" by address' "$("$tollbar" rules explain "$site" GET /blog/x :address:192.0.3.1)"
for second in 01 02 03 04 05 06 07 08 09 10 11 12; do
    echo "192.0.3.1 - - [17/May/2015:10:05:$second +0000] \"GET / HTTP/1.1\" 200 1"
done >"$work/shadow.log"
has 'replay: a shadow' 'site-strict              site                                1            0' "$("$tollbar" replay --rules "$site" "$work/shadow.log")"
has 'rules explain: a header' "(the key's own)" "$("$tollbar" rules explain "$site" GET /api/x X-Api-Key:gold)"

printf 'http {\n limit_req_zone $remote_addr zone=z:1m rate=1r/s;\n limit_req zone=z burst=2;\n}\n' >"$work/nginx.conf"
"$tollbar" rules import nginx "$work/nginx.conf" >"$work/imported.toml" 2>"$work/errors"
check 'rules import: a remark about a delay' "0|$work/nginx.conf:3:2: nginx delays" "$?|$(cut -d' ' -f1-3 "$work/errors")"
has 'rules import: good rules' '1 rule with 1 limit, 0 warnings' "$("$tollbar" rules check "$work/imported.toml")"
echo 'http {' >"$work/nginx.conf"
"$tollbar" rules import nginx "$work/nginx.conf" 2>"$work/errors"
check 'rules import: faults' "2|$work/nginx.conf:1:1: \"http\" without an end; expected \"}\"" "$?|$(cat "$work/errors")"
# imports PROGRAM NAME LIMIT: the rules from the configuration on stdin pass the check and have the
# limit.
imports() {
    cat >"$work/$2"
    "$tollbar" rules import "$1" "$work/$2" >"$work/imported.toml" 2>"$work/errors"
    check "rules import $1: $2" "0|1|1" "$?|$(grep -c "^limit = \"$3\"" "$work/imported.toml")|$("$tollbar" rules check "$work/imported.toml" 2>/dev/null | grep -c '1 rule with 1 limit')"
}
printf 'domain: d\ndescriptors:\n- key: remote_address\n  rate_limit: { unit: second, requests_per_unit: 5 }\n' |
    imports envoy ratelimit.yaml '5/s algo fixed-window'
printf -- '- { namespace: a, max_value: 5, seconds: 60, variables: [user] }\n' | imports limitador limits.yaml '5/min algo fixed-window'
check 'rules import: places' "$work/limits.yaml:1:3: a window of Limitador" "$(head -n 1 "$work/errors" | cut -d' ' -f1-5)"
printf '{"plugins": [{"name": "rate-limiting", "config": {"hour": 9, "limit_by": "ip"}}]}' | imports kong kong.json '9/h algo fixed-window'
printf 'http: { middlewares: { m: { rateLimit: { average: 6, period: 1m, burst: 3 } } } }\n' | imports traefik dynamic.yaml '6/min burst 3'
printf '[http.middlewares.m.rateLimit]\naverage = 6\nperiod = "1m"\nburst = 3\n' | imports traefik dynamic.toml '6/min burst 3'
printf 'http: *a\n' >"$work/alias.yaml"
"$tollbar" rules import traefik "$work/alias.yaml" 2>"$work/errors"
check 'rules import: an alias' "2|1:7: " "$?|$(grep -o '1:7: ' "$work/errors")"

# A log by rules: one client, eight requests of the blog and one of an image in a second.
line() { printf '198.51.100.1 - - [17/May/2015:10:05:0%s +0000] "GET %s HTTP/1.1" 200 1 "-" "x"\n' "$1" "$2"; }
for n in 1 2 3 4 5 6 7 8; do line 3 /blog/$n; done >"$work/log"
line 2 /images/a >>"$work/log"
out=$("$tollbar" replay --rules "$site" --decisions "$work/decisions" "$work/log")
has 'replay --rules' 'blog                              6          2          0          0' "$out"
check 'replay --rules: decisions in the order of the file' 'A 200 blog|D 429 blog|A 200 -' "$(sed -n '6p;8p;9p' "$work/decisions" | paste -sd '|')"
check 'replay --rules: json' '2 7' "$("$tollbar" replay --rules "$site" --json "$work/log" | python3 -c 'import json, sys; all = json.load(sys.stdin); print(all["refused"], all["statuses"]["200"])')"
"$tollbar" replay --rules "$site" --policy 10/s "$work/log" 2>/dev/null
check 'replay: rules or policies' 2 $?

# --- tables ----------------------------------------------------------------------------------------

# Three keys that owe from now on, under a limit that the first has used up.
now=$(date +%s)
for key in a a a b b c; do echo "${now}000000000 $key 1"; done >"$work/trace"
"$tollbar" replay --format trace --keys 100 --table "$work/table" --policy '3/h' "$work/trace" >/dev/null || failed=$((failed + 1))
out=$("$tollbar" table stat "$work/table")
has 'stat: keys' 'keys           3, of them 3 with a debt' "$out"
has 'stat: decisions' 'decisions      6 allowed, 0 denied, 0 never' "$out"
has 'stat: policies' 'policy 0       3/h: 6 allowed, 0 denied, 0 never' "$out"
has 'stat: sound' 'slots are      sound' "$out"
# owing FILE: the permits that its keys have left.
owing() { "$tollbar" table dump --owing "$1" | cut -d' ' -f3 | sort | tr '\n' ' '; }
check 'dump: permits left' '0 1 2 ' "$(owing "$work/table")"
check 'top: the longest debt first' '0 1 ' "$("$tollbar" table top --count 2 "$work/table" | awk 'NR > 2 { print $(NF - 2) }' | tr '\n' ' ')"
has 'top: how many' '3 keys with a debt' "$("$tollbar" table top --count 2 "$work/table")"
check 'copy' 'copied 3, lost 0' "$("$tollbar" table copy "$work/table" "$work/larger" --keys 20000)"
check 'copy: the same debts' "$("$tollbar" table dump --owing "$work/table" | cut -d' ' -f1-3 | sort)" \
    "$("$tollbar" table dump --owing "$work/larger" | cut -d' ' -f1-3 | sort)"
# The copy's policy changes, and no key gains a permit by that.
check 'set-policy' 'policy 0: 5/h, before 3/h' "$("$tollbar" table set-policy "$work/larger" 5/h)"
chmod 660 "$work/larger"
check 'set-policy: a file that its group may write' 'policy 0: 5/h, before 5/h' "$("$tollbar" table set-policy "$work/larger" 5/h)"
chmod 606 "$work/larger"
"$tollbar" table set-policy "$work/larger" 5/h >"$work/out" 2>"$work/errors"
check 'set-policy: a file that others may write' '1|' "$?|$(cat "$work/out")"
chmod 600 "$work/larger"
check 'set-policy: keys keep the permits that they have left' '0 1 2 ' "$(owing "$work/larger")"
check 'set-policy: keys begin anew' 'policy 0: 3/h, before 5/h|' "$("$tollbar" table set-policy --keep reset "$work/larger" 3/h)|$(owing "$work/larger")"
"$tollbar" table set-policy --number 1 "$work/larger" 5/h 2>"$work/errors"
check 'set-policy: no such number' '2|--number 1: the table has no such policy, expected 0 to 0' "$?|$(grep -o -- '--number 1.*' "$work/errors")"
"$tollbar" table set-policy "$work/larger" 5/q 2>"$work/errors"
check 'set-policy: no policy' '2|3/h' "$?|$("$tollbar" table stat "$work/larger" | grep -o '3/h')"
"$tollbar" table set-policy "$work/none" 5/h 2>/dev/null
check 'set-policy: no table, and none is made' '1|' "$?|$(ls "$work/none" 2>/dev/null)"
for key in a a a b; do echo "${now}000000000 $key 1"; done >"$work/trace"
"$tollbar" replay --format trace --keys 100 --table "$work/reset" --policy '3/h' "$work/trace" >/dev/null || failed=$((failed + 1))
check 'A9: a key begins anew' 'policy 0: a begins anew|2 ' "$("$tollbar" table reset "$work/reset" a)|$(owing "$work/reset")"
"$tollbar" table reset "$work/reset" c 2>"$work/errors"
check 'A9: no such key' '1|c owes nothing under policy 0' "$?|$(grep -o 'c owes nothing under policy 0' "$work/errors")"
check 'A9: all keys begin anew' 'policy 0: all keys begin anew|' "$("$tollbar" table reset --all "$work/reset")|$(owing "$work/reset")"
"$tollbar" table reset "$work/reset" 2>/dev/null
check 'A9: which keys must be said' 2 $?
for at in 192.0.2.1 192.0.2.1 2001:db8::1 2001:db8::2; do
    printf '%s - - [%s] "GET / HTTP/1.1" 200 1 "-" "-"\n' "$at" "$(date '+%d/%b/%Y:%H:%M:%S %z')"
done >"$work/log"
"$tollbar" replay --keys 100 --table "$work/addresses" --policy '3/h' "$work/log" >/dev/null || failed=$((failed + 1))
check 'A9: an address begins anew, and no other' 'policy 0: 2001:db8::9 begins anew|1' \
    "$("$tollbar" table reset "$work/addresses" --address 2001:db8::9)|$(owing "$work/addresses" | wc -w)"
"$tollbar" table reset "$work/addresses" --address ann 2>"$work/errors"
check 'A9: no address' '2|ann: expected an address' "$?|$(grep -o 'ann: expected an address' "$work/errors")"
"$tollbar" table reset "$work/addresses" --address=33/64 192.0.2.1 2>"$work/errors"
check 'A9: no prefix' '2|expected at most 32 and 128 bits' "$?|$(grep -o 'expected at most 32 and 128 bits' "$work/errors")"
has 'metrics: decisions' 'tollbar_decisions_total{limit="table",policy="0",verdict="allowed"} ' "$("$tollbar" table metrics "$work/table")"
has 'metrics: OpenMetrics' '# EOF' "$("$tollbar" table metrics --openmetrics "$work/table")"
has 'metrics: names' 'expected: files of different names' "$("$tollbar" table metrics "$work/table" "$work/table" 2>&1)"
has 'copy: another size' 'keys for       20,000' "$("$tollbar" table stat "$work/larger")"
# A copy with room: a bucket becomes a window and a log, and its keys keep the permits that they have
# left. A copy of the copy has as much room.
check 'copy: with room' 'copied 3, lost 0' "$("$tollbar" table copy "$work/table" "$work/roomy" --keys 100 --room 10)"
has 'stat: room' 'MB, room for 10 segments or permits' "$("$tollbar" table stat "$work/roomy")"
for policy in '3/h algo sliding-window segments 10' '3/h algo sliding-log' 3/h '3/h algo fixed-window' '3/h algo sliding-log'; do
    "$tollbar" table set-policy "$work/roomy" "$policy" >"$work/out" || failed=$((failed + 1))
    check "set-policy: with room, $policy" '0 1 2 ' "$(owing "$work/roomy")"
done
check 'copy: the same room' 'copied 3, lost 0|policy 0: 3/h algo sliding-window segments 6, before 3/h algo sliding-log|0 1 2 ' \
    "$("$tollbar" table copy "$work/roomy" "$work/roomier" --keys 200)|$("$tollbar" table set-policy "$work/roomier" \
        '3/h algo sliding-window segments 6')|$(owing "$work/roomier")"
"$tollbar" table set-policy "$work/roomy" '3/h algo sliding-window segments 12' 2>"$work/errors"
check 'set-policy: too little room' '1|it needs room for 12 segments or permits, and they have room for 10' "$?|$(grep -o 'it needs .*' "$work/errors")"
"$tollbar" table set-policy "$work/larger" '3/h algo sliding-log' 2>"$work/errors"
check 'set-policy: no room' 1 $?
check 'create' "$work/made: for 1,000 keys" "$("$tollbar" table create "$work/made" 100/s '5/h algo sliding-log' --keys 1000 --room 30 | cut -d, -f1,2)"
has 'create: its policies' 'policy 1       5/h algo sliding-log: 0 allowed' "$("$tollbar" table stat "$work/made")"
check 'create: with room' 'policy 0: 100/s algo sliding-window segments 20, before 100/s' \
    "$("$tollbar" table set-policy "$work/made" '100/s algo sliding-window segments 20')"
sum=$(cksum <"$work/made")
"$tollbar" table create "$work/made" 100/s --keys 1000 2>"$work/errors"
check 'create: not over a file' "2|$sum" "$?|$(cksum <"$work/made")"
"$tollbar" table create "$work/mixed" 100/s '5/h algo sliding-log' --keys 1000 2>"$work/errors"
check 'create: no room for a log' '2|expected --room N|' "$?|$(grep -o 'expected --room N' "$work/errors")|$(ls "$work/mixed" 2>/dev/null)"
# The keys that are refused most, of bytes that a terminal would obey. Counts are halved at each
# multiple of 2^36 ns of the table's time: the second of the requests, and the twenty after it, are
# in one such time.
while
    now=$(date +%s)
    [ $((now * 1000000000 % 68719476736)) -gt 48000000000 ]
do
    sleep 1
done
for key in a a a b b c; do echo "${now}000000000 $key 1"; done >"$work/trace"
"$tollbar" replay --format trace --keys 100 --table "$work/refused" --policy '3/h' "$work/trace" >/dev/null || failed=$((failed + 1))
has 'top: recording begins' 'refusals are recorded from now on' "$("$tollbar" top "$work/refused")"
{ for n in 1 2 3 4 5 6; do printf '%s000000000 x\033[2J 1\n' "$now"; done; for n in 1 2 3 4 5; do echo "${now}000000000 y 1"; done; } >"$work/trace"
"$tollbar" replay --format trace --keys 100 --table "$work/refused" --policy '3/h' "$work/trace" >/dev/null || failed=$((failed + 1))
check 'top: the most refused first' '{"cut":false,"key":"x\\x1b[2J","policy":0,"refused":3}|{"cut":false,"key":"y","policy":0,"refused":2}' \
    "$("$tollbar" top --json "$work/refused" | paste -sd '|')"
has 'top: a page' '         3  x\x1b[2J                                  3/h' "$("$tollbar" top --once --count 1 "$work/refused")"
has 'top: the end' 'no longer recorded' "$("$tollbar" top --off "$work/refused")"
has 'top: after the end' 'recorded from now on' "$("$tollbar" top --once "$work/refused")"
"$tollbar" top --count 225 "$work/table" 2>"$work/errors"
check 'top: too many' "2|225 is not in 1..=224" "$?|$(grep -o '225 is not in 1..=224' "$work/errors")"
sum=$(cksum <"$work/larger")
"$tollbar" table copy "$work/table" "$work/larger" --keys 5 >/dev/null 2>"$work/errors"
check 'copy: not over a file' "2|$sum" "$?|$(cksum <"$work/larger")"

# A slot of a policy that the table does not have: 16 bytes of ones in an empty bucket.
python3 - "$work/table" <<'PYTHON'
import sys

with open(sys.argv[1], "r+b") as file:
    data = file.read()
    # The buckets of 64 bytes are the last that is written: beside the last key there is an empty
    # slot.
    at = len(data) // 64 * 64 - 64
    while data[at:at + 64] == bytes(64):
        at -= 64
    while data[at:at + 16] != bytes(16):
        at += 16
    file.seek(at)
    file.write(b"\xff" * 16)
PYTHON
has 'repair: says first' 'damaged: 1 unknown' "$("$tollbar" table repair "$work/table")"
has 'repair: has changed nothing' 'damaged: 1 unknown' "$("$tollbar" table stat "$work/table")"
has 'repair' '1 slots emptied, 0 keys kept once' "$("$tollbar" table repair --unused "$work/table")"
has 'repair: sound' 'slots are      sound' "$("$tollbar" table stat "$work/table")"
check 'repair: debts are kept' '0 1 2 ' "$(owing "$work/table")"
for command in stat dump top repair; do
    "$tollbar" table $command "$work/none" >"$work/out" 2>"$work/errors"
    check "$command: no file, and none is made" '1||no' "$?|$(cat "$work/out")|$([ -e "$work/none" ] && echo made || echo no)"
    "$tollbar" table $command "$work/trace" >"$work/out" 2>"$work/errors"
    check "$command: no table" "1||tollbar: $work/trace: not a tollbar table" "$?|$(cat "$work/out")|$(cat "$work/errors")"
done

# --- leases ----------------------------------------------------------------------------------------

redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --dir "$work" >"$work/redis.log" 2>&1 &
redis=$!
for _ in $(seq 200); do [ -S "$work/redis.sock" ] && break; sleep 0.05; done
# The record of 1000/day over two machines, as a machine without an overdraft writes it.
redis-cli -s "$work/redis.sock" set 'tollbar:{logins}:record' "1 1 1 1 0 1700000000000000 1700000000000000 0 1000000;1 1 86400000 1000 \
86400000000 86400000000 4000000000 0 2 0 5 0 0;0 0 0 0 0;" >"$work/out"
# lease ARGUMENT…: the status, the output and the errors of `tollbar lease set`.
lease() {
    "$tollbar" lease set "$@" --store "unix:$work/redis.sock" >"$work/out" 2>"$work/errors"
    echo "$?|$(cat "$work/out")|$(cat "$work/errors")"
}
check 'lease set' '0|logins: version 2, 2000/day|' "$(lease logins 2000/day --if-version 1)"
has 'lease set: the record' ';2 1 43200000 2000 86400000000 ' "$(redis-cli -s "$work/redis.sock" get 'tollbar:{logins}:record')"
check 'lease set: again' '0|logins: version 2, 2000/day|' "$(lease logins 2000/day)"
check 'lease set: another version' '1||tollbar: logins: the limit has version 2: somebody else has changed it' "$(lease logins 5/min --if-version 1)"
check 'lease set: no limit' '1||tollbar: none: the store has no such limit: the first machine that uses a limit makes it' "$(lease none 5/min)"
# shellcheck disable=SC2016 # no command
check 'lease set: no lease' '2||tollbar: logins: only a single gcra can be leased, without `borrow`, `ban`, `init` and `reserve`' "$(lease logins '5/min algo sliding-log')"
kill $redis
wait $redis 2>/dev/null
check 'lease set: no store' "1||tollbar: logins: could not connect to the server: no such socket (errno 2)" "$(lease logins 5/min)"
"$tollbar" lease set logins 5/min --store http://h >"$work/out" 2>"$work/errors"
check 'lease set: no URL' '2||tollbar: --store http://h: column 1:' "$?|$(cat "$work/out")|$(cut -d' ' -f1-5 "$work/errors")"

# --- the rest --------------------------------------------------------------------------------------

check 'bench: a line for each' 6 "$("$tollbar" bench --keys 1000 | grep -c ' [0-9]*\.[0-9]$')"
for shell in bash zsh fish; do has "completions: $shell" replay "$("$tollbar" completions $shell)"; done
"$tollbar" completions bash >"$work/bash" && check 'completions: bash reads them' 0 "$(bash -n "$work/bash" && echo $?)"
"$tollbar" man "$work/man" && check 'manual pages' yes "$([ -s "$work/man/tollbar.1" ] && [ -s "$work/man/tollbar-replay.1" ] && echo yes)"
# The bar is drawn on a terminal, and nowhere else. `script` gives a terminal.
awk 'BEGIN { for (i = 0; i < 2000000; i++) printf "%d k%d 1\n", i, i % 9 }' >"$work/long"
check 'no bar without a terminal' '' "$("$tollbar" replay --policy 1/s "$work/long" 2>&1 >/dev/null)"
script -qec "$tollbar replay --policy 1/s $work/long" /dev/null >"$work/typescript" 2>&1
has 'a bar on a terminal' 'MiB' "$(tr -d '\r' <"$work/typescript")"

finish
