#!/bin/sh
# static.sh: the static command, alone in the root that packaging/docker/command.Dockerfile says: no library, no shell, no network. No
# container engine is needed. One for another architecture runs under an emulator, if there is one. Counts its checks.
set -u
cd "$(dirname "$0")/../.."
. ffi-tests/c/sh/check.sh
recipe=packaging/docker/command.Dockerfile
root=$(mktemp -d)
log=$root.log
trap 'rm -rf "$root" "$log"' EXIT

# ARCHITECTURE: lays out the image's files as the recipe's last stage copies them.
lay_out() {
    rm -rf "$root" && mkdir -p "$root"
    sed -n '/^FROM scratch/,$ { s/^COPY --from=zones //p; s/^COPY \(build\)/\1/p; }' "$recipe" >"$log.copies"
    while read -r from to; do
        from=$(echo "$from" | sed "s/\${ARCHITECTURE}/$1/")
        mkdir -p "$root${to%/*}" && cp -RL "$from" "$root$to" || return 1
    done <"$log.copies"
    rm "$log.copies"
    mkdir "$root/mnt" && cp examples/rules/site.toml "$root/mnt"
}
# ARGUMENT...: the image's command, in namespaces of its own.
inside() {
    [ -z "$emulator" ] || { "$emulator" "build/static/$architecture/tollbar" "$@"; return; }
    # shellcheck disable=SC2046
    unshare --map-root-user --net --pid --fork chroot "$root" $(sed -n 's/^ENTRYPOINT \["\(.*\)"\]/\1/p' "$recipe") "$@"
}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
is_static() { ! readelf --program-headers "build/static/$1/tollbar" | grep -q INTERP && ! readelf -d "build/static/$1/tollbar" | grep NEEDED; }
says_its_version() { [ "$(inside --version)" = "tollbar $version" ]; }
knows_zones() { inside policy explain '10/month zone Europe/Berlin' >"$log.said" && cat "$log.said" && grep -q "+01:00" "$log.said"; }
checks_rules() { inside rules check /mnt/site.toml; }
refuses() {
    for second in 1 2 3 4 5; do
        echo "192.0.2.1 - - [10/Oct/2026:13:55:0$second +0000] \"GET / HTTP/1.1\" 200 2326"
    done | inside replay - --policy 3/day >"$log.said" && cat "$log.said" && grep -q '^denied  *2,' "$log.said"
}
for architecture in x86_64 aarch64; do
    [ -e "build/static/$architecture/tollbar" ] || continue
    check "$architecture: needs no library" is_static "$architecture"
    echo "      $(wc -c <"build/static/$architecture/tollbar") bytes"
    emulator=
    if [ "$architecture" = "$(uname -m)" ]; then
        check "$architecture: the recipe's files" lay_out "$architecture"
        check "$architecture: the version" says_its_version
        check "$architecture: a policy with a time zone" knows_zones
        check "$architecture: rules" checks_rules
        check "$architecture: a log" refuses
    elif command -v "qemu-$architecture-static" >/dev/null; then
        emulator=qemu-$architecture-static
        check "$architecture, emulated: the version" says_its_version
        check "$architecture, emulated: a log" refuses
    else
        echo "skipped: $architecture runs under an emulator only (Debian: qemu-user-static)"
    fi
done
rm -f "$log.said"
finish
