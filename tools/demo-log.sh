#!/bin/sh
# 10,000 requests of an imaginary morning, the same each time: some clients ask much and most
# little, some in bursts; lines come up to three seconds late; a few are no requests.
set -eu
awk '
# Park and Miller: awk has no generator that is the same everywhere. The product fits a double.
function random() { seed = (seed * 16807) % 2147483647; return seed / 2147483647 }
function address(n) {
    if (n % 10 == 0) return sprintf("2001:db8::%x", n)
    return sprintf("%s.%d", n % 2 ? "198.51.100" : "203.0.113", n % 250 + 1)
}
function request(client, at,    h, m, s) {
    at = int(at)
    h = int(at / 3600); m = int(at / 60) % 60; s = at % 60
    printf "%s - - [17/May/2015:%02d:%02d:%02d +0200] \"GET /page/%d HTTP/1.1\" 200 %d \"-\" \"demo\"\n", \
        client, h, m, s, random() * 100, 200 + random() * 9000
}
BEGIN {
    seed = 20150517
    now = 6 * 3600
    for (i = 0; i < 10000; ) {
        now += random() * 1.6
        # The k-th client asks about 1/k as often as the first.
        client = address(int(exp(random() * log(400))))
        n = random() < 0.01 ? 15 + int(random() * 25) : 1
        for (; n > 0 && i < 10000; n--) {
            i++
            if (i % 2500 == 0)
                print substr("198.51.100.7 - - [17/May/2015:09:", 1, 12 + i / 2500 * 4)
            else
                request(client, now + (n - 1) * 0.05 - (random() < 0.05 ? random() * 3 : 0))
        }
    }
}'
