#!/bin/sh
# Starts the shop: a Redis, two instances, as two machines, and the worker that sends mails. Ctrl-C ends all of them.
# `make lib rules` must have built the libraries.
#
#     examples/service/run.sh [PORT [PORT]]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
first=${1:-8080}
second=${2:-$((first + 1))}
for program in redis-server go; do
    PATH=$PATH:/usr/local/go/bin command -v $program >/dev/null || {
        echo "run.sh: $program is missing; expected redis-server and go in PATH" >&2
        exit 2
    }
done
PATH=$PATH:/usr/local/go/bin
work=${SHOP:-$(mktemp -d)}
running=
trap 'kill $running 2>/dev/null; for process in $running; do wait $process; done; [ -n "${SHOP:-}" ] || rm -rf "$work"' EXIT
trap 'exit 0' HUP INT TERM

(
    here=$root/bindings/go
    . "$root/bindings/go/env.sh"
    cd "$root/examples/service" && go build -o "$work/shop" .
)
[ -f "$work/limits.toml" ] || cp "$here/limits.toml" "$work/limits.toml"
redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --dir "$work" --daemonize no --logfile "$work/redis.log" &
running=$!
echo $running >"$work/redis.pid"
other=$second
for port in $first $second; do
    "$work/shop" -other "127.0.0.1:$other" -kill "kill \$(cat $work/redis.pid)" -listen "127.0.0.1:$port" -rules "$work/limits.toml" -store "unix:$work/redis.sock" -bans "$work/bans" \
        -mails "$work/mails" -outbox "$work/outbox" &
    running="$running $!"
    other=$first
done
# The worker is started again whenever it ends, as a service manager does it.
(
    trap 'kill $worker 2>/dev/null; exit 0' TERM
    while :; do
        "$work/shop" -work -store "unix:$work/redis.sock" -mails "$work/mails" -outbox "$work/outbox" &
        worker=$!
        echo $worker >"$work/worker.pid"
        wait $worker || sleep 0.3
    done
) &
running="$running $!"
echo "Open http://127.0.0.1:$first and http://127.0.0.1:$second in a browser. The limits are in $work/limits.toml. Ctrl-C ends the shop."
wait
