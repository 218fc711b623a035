# shellcheck shell=sh
# test.sh sources this file. It tests which lines of logs and traces `tollbar replay` reads, and
# which ones it refuses with which message.

# --- log lines -------------------------------------------------------------------------------------

# clf LINE: prints the time that the command reads from a log line, or its message about the line.
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
    line "192.0.2.1 - - $t" '2015-05-17 10:05:03'
    line "192.0.2.1 - - $t \"GET / HTTP/1.1" '2015-05-17 10:05:03'
    line "192.0.2.1 - - $t GET / 200" '2015-05-17 10:05:03'
    line "192.0.2.1 - [a] name $t \"GET /\"" '2015-05-17 10:05:03'
    line '192.0.2.1 - - "GET /[17/May/2015:10:05:03 +0000]" 200' 'no time in brackets'
    line '192.0.2.1 - - [] "GET /[17/May/2015:10:05:03 +0000]" 200' 'the day is not two digits and a slash'
    line '192.0.2.1' 'no time in brackets'
    help='(--field key=1 takes the first word as it is, key=2 the second)'
    line "$(printf 'h\001i') - - $t" "the first word is no address: \"h\x01i\" $help"
    line "client.example - - $t" "the first word is no address: \"client.example\" $help"
    line "- - - $t" 'no client: the first word is "-"'

    # A fraction of a second counts: half a second after the first, half of the two-second wait is
    # over.
    { echo '::1 - - [17/May/2015:10:05:03.5 +0000]'; echo '::1 - - [17/May/2015:10:05:04 +0000]'; } > "$work/line"
    "$replay" --policy '1/2s' --decisions "$work/decisions" "$work/line" >/dev/null
    check 'fractions of a second' 'A 0 -
D 0 1500000000' "$(cat "$work/decisions")"
}

# A log with a byte order mark, blank lines, control bytes, lines of megabytes and a last line
# without an end.
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
        printf '::ffff:192.0.2.1 - - %s\n' "$t"
        printf '[::1] - - %s' "$t"
    } > "$work/odd"
    # Five lines are requests, three of them from one client. Four lines are refused.
    check 'odd log: requests' 5 "$(value requests "$work/odd")"
    check 'odd log: bad lines' 4 "$(value 'bad lines' "$work/odd")"
    check 'odd log: blank lines' 3 "$(value 'blank lines' "$work/odd")"
    check 'odd log: keys' 3 "$(value keys "$work/odd")"
    "$replay" "$work/odd" 2>&1 >/dev/null | sed "s,$work/,," > "$work/errors"
    check 'odd log: bad lines are named' "tollbar: odd:6: no time in brackets
tollbar: odd:8: no time in brackets within the first mebibyte
tollbar: odd:9: the first word is no address: \"\\x5c\\x1b[2J\" $help
tollbar: odd:10: the first word is no address: \"\\x5cw\\xc3\\xa9b\" $help" "$(cat "$work/errors" | sed 's/the day is.*/?/')"
    check 'odd log: keys are printed in plain letters' \
        '3 192.0.2.1|1 ::/64|1 2001:db8::/64|' \
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
    # At a time after the last one that a state can hold, the limiter refuses every request, and no
    # wait helps.
    echo '18446744073709551615 k 1' > "$work/lines"
    check 'the end of time' 'D 0 -' "$(decisions "$work/lines" '1/s')"
}
