# shellcheck shell=sh
# Sourced first: takes the time from the package to the first refusal.
began=$(date +%s)

# The first refusal has been seen.
refused() {
    date +%s >/tmp/refused
    # Of the programs which have ended, the second line. Not through a pipe: that is a shell of its
    # own, which has started none.
    times >/tmp/times
    awk 'NR == 2 { for (n = 1; n <= 2; n++) { split($n, part, "m"); sum += part[1] * 60 + part[2] } printf "%d\n", sum + 0.5 }' \
        /tmp/times >/tmp/processors
}

# WORDS: the last line of a test, which packaging/test.sh reads.
report() { echo "$(cat /tmp/processors) s of processors and $(($(cat /tmp/refused) - began)) s of a clock $1"; }
