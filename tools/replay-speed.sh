#!/bin/sh
# How many lines a second of one core `tollbar replay` reads, by the command in build: a log in
# Common Log Format of a million lines and 5,000 clients, out of the cache of files. The best of
# five, in processor time.
set -eu
cd "$(dirname "$0")/.."
tollbar=$PWD/build/tollbar
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk 'BEGIN {
    seed = 20150517
    for (i = 0; i < 1000000; i++) {
        seed = (seed * 16807) % 2147483647
        s = int(i / 20)
        printf "198.51.%d.%d - - [17/May/2015:%02d:%02d:%02d +0000] \"GET /page/%d HTTP/1.1\" 200 %d\n", seed % 20, seed % 250, s / 3600, s / 60 % 60, s % 60, seed % 100, seed % 9000
    }
}' >"$work/log"
gzip -k "$work/log"
# seconds ARGUMENT...: user and system time.
seconds() {
    for _ in 1 2 3 4 5; do
        python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)' "$tollbar" replay "$@"
    done | sort -n | head -n 1
}
tell() {
    name=$1
    shift
    seconds "$@" | awk -v name="$name" '{ printf "%-34s %5.1f million lines a second\n", name, 1 / $1 }'
}
tell 'one policy' --policy '10/min burst 20' "$work/log"
tell 'one policy, order of the file' --reorder 0 --policy '10/min burst 20' "$work/log"
tell 'six algorithms' "$work/log"
tell 'one policy, gzip, both threads' --policy '10/min burst 20' "$work/log.gz"
tell 'one policy, JSON or HTML' --json --policy '10/min burst 20' "$work/log"
