#!/bin/sh
# run.sh [SECONDS [BUILD]]: two processes share 100 requests a second through a Redis of their own.
# The script kills Redis after a third of the time and starts it again, empty, after two thirds. It
# prints the output of both processes side by side.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
seconds=${1:-12}
build=${2:-$root/build}
if ! command -v redis-server >/dev/null 2>&1; then
    echo "run.sh: no redis-server; as root: apt-get install redis-server" >&2
    exit 1
fi
[ -f "$build/libtollbar.a" ] || make --silent -C "$root" lib B="$build"
"${CC:-cc}" -std=c99 -Wall -Wextra -Wpedantic -O2 -I"$root/include" -o "$build/share" "$here/share.c" "$build/libtollbar-redis.a" "$build/libtollbar.a"

home=$(mktemp -d "${TMPDIR:-/tmp}/tollbar-redis.XXXXXX")
redis= first= second=
finish() {
    trap '' INT TERM
    for pid in $first $second $redis; do kill -KILL "$pid" 2>/dev/null || true; done
    rm -rf "$home"
}
trap finish EXIT
trap 'exit 130' INT TERM

start_redis() {
    redis-server --port 0 --unixsocket "$home/redis.sock" --dir "$home" --save '' --appendonly no --logfile log &
    redis=$!
}

start_redis
mkfifo "$home/1" "$home/2"
"$build/share" "unix:$home/redis.sock" "$seconds" >"$home/1" &
first=$!
"$build/share" "unix:$home/redis.sock" "$seconds" >"$home/2" &
second=$!
paste -d '|' "$home/1" "$home/2" | sed -u 's/|/     | /' &
table=$!

sleep $((seconds / 3))
kill -KILL "$redis"
wait "$redis" 2>/dev/null || true
rm -f "$home/redis.sock"
sleep $((seconds / 3))
start_redis
wait "$table"
wait "$first" && wait "$second"
first= second=
