# shellcheck shell=sh
# A short demonstration of a shared limit: two processes, and a Redis that stops and starts again.
# Sourced.

# The demonstration runs nine seconds, three of them without Redis. Together the processes admit at
# most the burst and 100/s. Each process must notice that Redis stops, go on alone, and notice
# within three seconds that Redis is back. It needs a tenth of a second.
shares_through_redis() {
    "$root/examples/redis/run.sh" 9 "$build" > "$work/demo" || return 1
    cat "$work/demo"
    awk -F'|' '
        function number(text, what) { return match(text, "[0-9]+ " what) ? substr(text, RSTART) + 0 : -1000 }
        { for (i = 1; i <= 2; i++) {
              all += number($i, "admitted"); alone[i] += number($i, "alone")
              away[i] += $i ~ /is away/; back[i] += NR >= 7 && $i ~ /redis answers/
          } }
        END {
            print all " admitted in " NR " s"
            good = NR == 9 && all > 400 && all <= 100 + 100 * (NR + 1)
            for (i = 1; i <= 2; i++)
                good = good && away[i] >= 1 && alone[i] >= 50 && back[i] >= 1
            exit !good
        }' "$work/demo"
}

# Of 40 messages one leaves at once and the queue keeps 25. The 26 leave in order, at 20 a second.
sends_at_a_pace() {
    # shellcheck disable=SC2086
    gcc $c99 -o "$work/sender" "$root/examples/c/sender.c" -L"$build" -ltollbar -Wl,-rpath,"$build" -lpthread || return 1
    begun=$(date +%s%N)
    "$work/sender" > "$work/sent" || return 1
    ended=$(date +%s%N)
    { echo '14 refused' && seq -f 'message %.0f leaves' 0 25; } | cmp - "$work/sent" || return 1
    # 25 intervals of 50 ms, less the difference of two readings of two clocks.
    [ $((ended - begun)) -ge 1249000000 ]
}

# What the tenants get is the picture in docs/hierarchy.md.
shares_are_those_of_the_document() {
    # shellcheck disable=SC2086
    gcc $c99 -o "$work/tenants" "$root/examples/c/tenants.c" -L"$build" -ltollbar -Wl,-rpath,"$build" || return 1
    awk '/^```text/ { inside = 1; next } /^```/ { inside = 0 } inside' "$root/docs/hierarchy.md" > "$work/picture" || return 1
    [ -s "$work/picture" ] && "$work/tenants" | sed 's/ *$//' | cmp - "$work/picture"
}

# The example prints the lines of docs/table.md.
a_sale_is_that_of_the_document() {
    # shellcheck disable=SC2086
    gcc $c99 -o "$work/flash_sale" "$root/examples/c/flash_sale.c" -L"$build" -ltollbar -Wl,-rpath,"$build" || return 1
    grep '^second [ 0-9]*: ' "$root/docs/table.md" > "$work/sale" || return 1
    "$work/flash_sale" | cmp - "$work/sale"
}

demo() {
    check "a policy changes for a flash sale as the document says (examples/c/flash_sale.c)" a_sale_is_that_of_the_document
    check "tenants share a rate as the document draws it (examples/c/tenants.c)" shares_are_those_of_the_document
    check "a sender sends at a constant pace (examples/c/sender.c)" sends_at_a_pace
    measure "two processes share 100/s through Redis" shares_through_redis
}
