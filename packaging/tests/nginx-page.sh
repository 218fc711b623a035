#!/bin/sh
# nginx-page.sh SUITE: the five minutes of docs/nginx.md, word by word, to the first 429: with the
# module that the package loads, and with the page's own line load_module, as after `make nginx`.
set -eu
. /tests/clock.sh
packages=/packages/debian/$1
# NUMBER: that block of code of the page's section.
block() {
    awk -v number="$1" '/^## / { on = $0 == "## Five minutes" } !on { next } /^```/ { inside = !inside; blocks += inside; next }
        inside && blocks == number' /docs/nginx.md
}
apt-get update -q
apt-get install -y -q --no-install-recommends nginx "$packages"/libnginx-mod-http-tollbar_*_amd64.deb
block 1 | sed -n '/^load_module/p' >/tmp/top
block 1 | sed -e '1,/^http {/d' -e '/^}/,$d' >/tmp/http
block 2 >/tmp/ask
grep . /tmp/top && grep tollbar_zone /tmp/http && grep curl /tmp/ask
cp /etc/nginx/nginx.conf /tmp/before
awk '{ print } /^http \{/ { while ((getline line < "/tmp/http") > 0) print line }' /tmp/before >/etc/nginx/nginx.conf
cat >/tmp/ask.sh <<'EOF'
set -eu
nginx -t
nginx
# On a busy machine the requests may take so long that permits come back meanwhile: then again, when
# the zone's burst is full.
tenths=9
for try in 1 2 3 4 5 6 7 8 9 10; do
    [ "$tenths" -gt 4 ] || break
    [ "$try" = 1 ] || sleep 3
    began=$(date +%s%N)
    codes=$(sh /tmp/ask)
    tenths=$((($(date +%s%N) - began) / 100000000))
    echo "$codes in $tenths tenths of a second"
done
curl -s -D - -o /dev/null 'http://127.0.0.1:8080/?[1-30]' >/tmp/last
passed=$(echo "$codes" | tr ' ' '\n' | grep -c '^200$')
[ "$(echo "$codes" | tr ' ' '\n' | grep -c '^429$')" -eq $((30 - passed)) ]
# One more passes with each tenth of a second that the requests take.
[ "$passed" -ge 21 ] && [ "$passed" -le $((22 + tenths)) ]
grep -i -m 1 '^retry-after: 1' /tmp/last
nginx -s stop
EOF
python3 /tests/alone.py sh /tmp/ask.sh
refused
rm /etc/nginx/modules-enabled/*tollbar*.conf
cat /tmp/top - </etc/nginx/nginx.conf >/tmp/with && cp /tmp/with /etc/nginx/nginx.conf
python3 /tests/alone.py sh /tmp/ask.sh
report "from the page to the first 429"
