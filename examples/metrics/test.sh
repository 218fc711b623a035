#!/bin/sh
# Tests the alert rules by alerts_test.yml: each fires for its fault, and none fires on a healthy
# day. It needs promtool, of Debian's package prometheus. Where it is missing, this takes it from
# that package without installing the package, which would start a server.
set -u
cd "$(dirname "$0")"
root=$PWD/../..
kept=$root/build/prometheus
promtool=$(command -v promtool) || promtool=$kept/usr/bin/promtool
if [ ! -x "$promtool" ]; then
    mkdir -p "$kept"
    (cd "$kept" && apt-get download -q prometheus >/dev/null 2>&1 && dpkg-deb -x prometheus_*.deb . && rm -f prometheus_*.deb)
    [ -x "$promtool" ] || { echo "missing: promtool in PATH, or apt-get download prometheus (Debian)" >&2 && exit 1; }
fi
"$promtool" check rules alerts.yml >/dev/null || exit 1
# Each alert has a case in which it fires.
status=0
for alert in $(sed -n 's/.*- alert: //p' alerts.yml); do
    fires=$(awk -v alert="$alert" '$2 == "alertname:" { on = $3 == alert } on && $1 == "exp_alerts:" && !$2' alerts_test.yml)
    [ -n "$fires" ] || { echo "alerts_test.yml: no case in which $alert fires" >&2 && status=1; }
done
[ $status -eq 0 ] && "$promtool" test rules alerts_test.yml && echo "$(grep -c -- '- name:' alerts_test.yml) passed, 0 failed"
