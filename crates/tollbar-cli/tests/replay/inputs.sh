# shellcheck shell=sh
# Sourced by test.sh: the kinds of logs that can be read, their order, and the memory that they
# take.

# --- formats ---------------------------------------------------------------------------------------

# The same twelve requests in each format: two clients at one-second steps, the second at half the
# pace.
twelve() {
    for n in 0 1 2 3 4 5 6 7; do
        echo "$n 192.0.2.1 /a"
        [ $((n % 2)) = 1 ] || echo "$n 192.0.2.2 /b?x=1"
    done
}

# in_format NAME FORMAT [OPTION...]: the log on standard input is found to be of that format, and
# has the same verdicts.
in_format() {
    name=$1 format=$2
    shift 2
    cat > "$work/log"
    "$replay" --policy '1/2s burst 2' --decisions "$work/decisions" "$@" "$work/log" > "$work/report" 2>"$work/errors"
    check "$name" "$expected||2015-05-17 10:05:00 to 2015-05-17 10:05:07 UTC" "$(cut -c1 "$work/decisions" | tr -d '\n')|$(cat "$work/errors")|$(
        sed -n 's/^times *//p' "$work/report")"
    check "$name: its format" "$format" "$("$replay" --json "$@" "$work/log" | sed -n 's/.*"format": "\(.*\)",/\1/p')"
}

formats() {
    twelve > "$work/twelve"
    # What is right is decided by the format that the reference reads.
    awk '{ print (1431857100 + $1) "000000000", $2, 1 }' "$work/twelve" > "$work/twelve.trace"
    expected=$(verdicts "$work/twelve.trace" '1/2s burst 2')
    check 'twelve requests' 12 "$(printf %s "$expected" | wc -c | tr -d ' ')"
    awk '{ printf "%s - - [17/May/2015:10:05:%02d +0000] \"GET %s HTTP/1.1\" 200 1 \"-\" \"x\"\n", $2, $1, $3 }' "$work/twelve" |
        in_format 'combined' clf
    awk '{ printf "{\"time_iso8601\":\"2015-05-17T12:05:%02d+02:00\",\"remote_addr\":\"%s\",\"request_uri\":\"%s\"}\n", $1, $2, $3 }' "$work/twelve" |
        in_format 'nginx JSON' json
    awk '{ printf "{\"ts\":%d.0,\"request\":{\"remote_ip\":\"%s\",\"uri\":\"%s\",\"headers\":{\"User-Agent\":[\"x\"]}},\"status\":200}\n", 1431857100 + $1, $2, $3 }' "$work/twelve" |
        in_format 'Caddy' json
    awk '{ printf "{\"start_time\":\"2015-05-17T10:05:%02d.000Z\",\"downstream_remote_address\":\"%s:4711\",\"path\":\"%s\"}\n", $1, $2, $3 }' "$work/twelve" |
        in_format 'Envoy JSON' json
    awk '{ printf "[2015-05-17T10:05:%02d.000Z] \"GET %s HTTP/2\" 200 - 0 1 2 1 \"%s\" \"x\" \"id\" \"host\" \"tcp\"\n", $1, $3, $2 }' "$work/twelve" |
        in_format 'Envoy text' envoy
    { echo 'path,when,who'; awk '{ printf "\"%s\",%d,%s\n", $3, 1431857100 + $1, $2 }' "$work/twelve"; } |
        in_format 'CSV with named columns' csv --format csv --field time=when --field key=who
    { echo 'url,Timestamp,client_ip'; awk '{ printf "%s,%d000,%s\n", $3, 1431857100 + $1, $2 }' "$work/twelve"; } |
        in_format 'CSV with usual columns' csv
    # C3: lines behind what collectors put before them, and formats of load balancers.
    combined() { awk -v before="$1" '{ printf "%s%s - - [17/May/2015:10:05:%02d +0000] \"GET %s HTTP/1.1\" 200 1 \"-\" \"x\"\n", before, $2, $1, $3 }' "$work/twelve"; }
    for before in 'web-1  | ' '2015-05-17T10:05:09.1Z stdout F ' 'May 17 10:05:09 web nginx[17]: ' '<190>May 17 10:05:09 web nginx: ' \
        'shop.example:443 ' '[pod/web-0/nginx] '; do
        combined "$before" | in_format "combined behind $before" clf
    done
    combined '' | sed '1i /docker-entrypoint.sh: Configuration complete' > "$work/log"
    check 'a first line that is no request does not choose the format' '12 1 clf' \
        "$(value requests "$work/log") $(value 'bad lines' "$work/log") $("$replay" --json "$work/log" 2>/dev/null | sed -n 's/.*"format": "\(.*\)",/\1/p')"
    awk '{ printf "web-1  | {\"ts\":%d,\"remote_addr\":\"::ffff:%s\"}\n", 1431857100 + $1, $2 }' "$work/twelve" |
        in_format 'JSON behind docker compose, mapped addresses' json
    awk '{ printf "May 17 10:05:09 lb haproxy[17]: %s:33317 [17/May/2015:10:05:%02d.000] in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 \"GET %s HTTP/1.1\"\n", $2, $1, $3 }' "$work/twelve" |
        in_format 'HAProxy' haproxy
    awk '{ printf "https 2015-05-17T10:05:%02d.000000Z app/lb/5 %s:2817 10.0.0.1:80 0.1 0.1 0.1 200 200 0 57 \"GET https://shop.example:443%s HTTP/1.1\" \"x\"\n", $1, $2, $3 }' "$work/twelve" |
        in_format 'Application Load Balancer' alb
    { printf '#Software: Microsoft Internet Information Services 10.0\n#Fields: date time s-ip cs-method cs-uri-stem c-ip\n'
        awk '{ printf "2015-05-17 10:05:%02d 10.0.0.1 GET %s %s\n", $1, $3, $2 }' "$work/twelve"; } | in_format 'IIS' w3c
    { printf '#Version: 1.0\n#Fields: date time c-ip cs-method cs-uri-stem\n'
        awk '{ printf "2015-05-17\t10:05:%02d\t%s\tGET\t%s\n", $1, $2, $3 }' "$work/twelve"; } | in_format 'CloudFront' w3c
    awk '{ printf "{\"ClientAddr\":\"%s:4711\",\"ClientHost\":\"%s\",\"RequestPath\":\"%s\",\"StartUTC\":\"2015-05-17T10:05:%02dZ\",\"time\":\"2015-05-17T10:05:59Z\"}\n", $2, $2, $3, $1 }' "$work/twelve" |
        in_format 'Traefik JSON' json
    awk '{ printf "{\"ClientIP\":\"%s\",\"ClientRequestURI\":\"%s\",\"EdgeStartTimestamp\":%d000000000}\n", $2, $3, 1431857100 + $1 }' "$work/twelve" |
        in_format 'Cloudflare JSON' json
    awk '{ printf "{\"httpRequest\":{\"requestUrl\":\"https://shop.example%s\",\"remoteIp\":\"%s\"},\"timestamp\":\"2015-05-17T10:05:%02dZ\"}\n", $3, $2, $1 }' "$work/twelve" |
        in_format 'Google Cloud JSON' json
    # C3: one client is one key, however its address is written, and an IPv6 network is one.
    combined '' | sed 's/^192.0.2.1 /[::ffff:192.0.2.1]:4711 /; s/^192.0.2.2 /::ffff:c000:202 /' | in_format 'addresses as servers write them' clf
    combined '' | awk '{ sub(/^192.0.2.1/, "2001:db8:1:2::" NR); print }' | in_format 'addresses of one /64' clf
    combined '' | awk '{ sub(/^192.0.2.1/, "2001:db8:1:2::" NR); print }' > "$work/log"
    check 'address/32/128: each address of a /64' 9 "$(value keys --key address/32/128 "$work/log")"
    check 'address/0/0' 2 "$(value keys --key address/0/0 "$work/log")"
    refused '--key with a wrong prefix' 2 'address/N/M with the bits of IPv4' --key address/33/64 "$work/log"
    refused '--field for lines without names' 2 'key=N, the number of the word' --field time=when "$work/log"
    check 'the second word as the key' '12 1' "$(value requests --field key=4 "$work/log") $(value keys --field key=6 "$work/log")"
    check 'a trace is known, too' trace "$("$replay" --json "$work/twelve.trace" | sed -n 's/.*"format": "\(.*\)",/\1/p')"
    printf '{"a":1}\n{"time":"x","client":"::1"}\n[1]\n' > "$work/log"
    "$replay" --format json "$work/log" 2>&1 >/dev/null | sed "s,.*/log:,," > "$work/errors"
    check 'JSON lines that are none' '1: no time: none of
2: the time is not a number
3: column 1: invalid type: sequence, expected an object' "$(cut -c1-60 "$work/errors" | sed 's/\(none of\).*/\1/; s/no line.*//' | head -n 3)"
}

# --- compressed logs, several logs -----------------------------------------------------------------

compressed() {
    plain=$(report --format trace --policy 120/min "$work/T1" | tail -n +2)
    gzip -c "$work/T1" > "$work/T1.gz"
    check 'gzip' "$plain" "$(report --format trace --policy 120/min "$work/T1.gz" | tail -n +2)"
    check 'gzip, standard input' "$plain" "$(report --format trace --policy 120/min - < "$work/T1.gz" | tail -n +2)"
    { head -n 100 "$work/T1" | gzip -c; tail -n +101 "$work/T1" | gzip -c; } > "$work/two.gz"
    check 'gzip of two parts' "$plain" "$(report --format trace --policy 120/min "$work/two.gz" | tail -n +2)"
    head -c 300 "$work/T1.gz" > "$work/cut.gz"
    refused 'gzip, cut off' 1 'after line' --format trace --policy 120/min "$work/cut.gz"
    if command -v zstd >/dev/null 2>&1; then
        zstd -q -c "$work/T1" > "$work/T1.zst"
        check 'zstd' "$plain" "$(report --format trace --policy 120/min "$work/T1.zst" | tail -n +2)"
        head -c 300 "$work/T1.zst" > "$work/cut.zst"
        refused 'zstd, cut off' 1 'after line' --format trace --policy 120/min "$work/cut.zst"
    else
        check 'zstd' 'a zstd to test with' 'none'
    fi
    head -n 100 "$work/T1" > "$work/first"
    tail -n +101 "$work/T1" > "$work/second"
    check 'two logs' "$plain" "$(report --format trace --policy 120/min "$work/first" "$work/second" | tail -n +2)"
}

# --- order of time ---------------------------------------------------------------------------------

in_order_of_time() {
    # By the seconds 10, 50, 55 and, too late, 52: 1/40s admits two of them in order of time, and
    # one if 50 comes first.
    printf '%s\n' '50000000000 k 1' '10000000000 k 1' '55000000000 k 1' '170000000000 k 1' '52000000000 k 1' > "$work/late"
    "$tollbar" replay --format trace --policy '1/40s' --decisions "$work/decisions" "$work/late" > "$work/report"
    check 'order of time: verdicts in the order of the log' AADAD "$(cut -c1 "$work/decisions" | tr -d '\n')"
    check 'order of time: told' 'of time; lines waited 1 min for older ones, and 1 came later than that' \
        "$(tr -s ' ' < "$work/report" | sed -n 's/^order //p')"
    "$replay" --format trace --policy '1/40s' --decisions "$work/decisions" "$work/late" > "$work/report"
    check 'order of the file: verdicts' ADDAD "$(cut -c1 "$work/decisions" | tr -d '\n')"
    "$tollbar" replay --format trace --policy '1/40s' "$work/late" > "$work/report"
    check 'order of time: what the other would do' ' 1/40s denies 2 so, and 3 in the order of the file' \
        "$(tr -s ' ' < "$work/report" | grep denies)"
    # A log that is shuffled within a minute is decided as if it had never been.
    awk 'BEGIN { for (i = 0; i < 5000; i++) printf "%.0f k%d 1\n", i * 77000000, i % 7 }' > "$work/sorted"
    awk '{ printf "%d %s\n", int(NR / 700) * 1000 + (NR * 389) % 700, $0 }' "$work/sorted" | sort -n | cut -d' ' -f2- > "$work/shuffled"
    for policy in 3/min '3/min algo sliding-log' '3/min algo sliding-window'; do
        of() { "$tollbar" replay --format trace --policy "$policy" "$1" | sed -n '/^policy/,$p'; }
        check "shuffled, $policy" "$(of "$work/sorted")" "$(of "$work/shuffled")"
        [ "$policy" = '3/min algo sliding-window' ] || check "shuffled, $policy: it matters" no "$([ "$(of "$work/sorted")" = "$("$replay" --format trace --policy "$policy" "$work/shuffled" |
            sed -n '/^policy/,$p')" ] || echo no)"
    done
}

# --- memory: by keys, and not by lines -------------------------------------------------------------

# peak ARGUMENT...: the most KiB of memory.
peak() { python3 "$here/peak.py" "$tollbar" replay "$@"; }

memory() {
    awk 'BEGIN { for (i = 0; i < 200000; i++) printf "%.0f k%d 1\n", i * 10000000, i % 100 }' > "$work/short"
    for i in 0 1 2 3 4 5 6 7 8 9; do
        awk -v i=$i '{ printf "%.0f %s 1\n", $1 + i * 2000000000000, $2 }' "$work/short"
    done > "$work/long"
    short=$(peak --format trace --policy 10/min "$work/short")
    long=$(peak --format trace --policy 10/min "$work/long")
    got="$short $long"
    holds 'ten times the lines, the same memory' '$1 > 0 && $2 < 1.1 * $1 + 1024'
    short=$(peak --json --format trace --policy 10/min "$work/short")
    long=$(peak --json --format trace --policy 10/min "$work/long")
    got="$short $long"
    holds 'ten times the lines, the same memory, JSON' '$1 > 0 && $2 < 1.1 * $1 + 1024'
    rm -f "$work/long"
}

# --- hostile lines ---------------------------------------------------------------------------------

hostile() {
    t='[17/May/2015:10:05:03 +0000]'
    {
        printf '<script>alert(1)</script> - - %s "GET /<img/src=x> HTTP/1.1" 200 1 "-" "<b>bot"\n' "$t"
        printf '"\047&<!-- - - %s "GET /</script><script>alert(2)</script> HTTP/1.1" 200 1\n' "$t"
        printf '\302\233\033[2J - - %s "GET /" 200 1\n' "$t"
        printf '\302\2332J - - %s "GET /\033]0;x\007 HTTP/1.1" 200 1\n' "$t"
        printf '192.0.2.9 - - %s "GET /' "$t"
        head -c 1000000 /dev/zero | tr '\0' y
        printf ' HTTP/1.1" 200 1\n'
        head -c 1000000 /dev/zero | tr '\0' z
        printf ' - - %s "GET / HTTP/1.1" 200 1\n' "$t"
    } > "$work/hostile"
    "$replay" --field key=1 --policy 0/s --html "$work/hostile.html" "$work/hostile" > "$work/report" 2>"$work/errors"
    check 'hostile: requests' 5 "$(sed -n 's/^requests *//p' "$work/report" | head -n 1)"
    check 'hostile: no control byte and nothing above ASCII' 0 "$(cat "$work/report" "$work/errors" | LC_ALL=C tr -d '\n -~' | wc -c | tr -d ' ')"
    # The page has the scripts that it has for any log, and no more.
    "$replay" --policy 0/s --html "$work/plain.html" "$work/one" > /dev/null 2>&1
    check 'hostile: no script of theirs in the page' "$(grep -c '<script' "$work/plain.html")" "$(grep -c '<script' "$work/hostile.html")"
    check 'hostile: their text is there' yes "$(grep -q 'u003cscript>alert(1)' "$work/hostile.html" && echo yes)"
    check 'hostile: the page does not grow with a path' yes "$([ "$(wc -c < "$work/hostile.html")" -lt $(($(wc -c < "$work/plain.html") + 20000)) ] && echo yes)"
}
