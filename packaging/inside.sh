#!/bin/sh
# inside.sh [--keep] ROOT COMMAND [ARGUMENT...]: runs a command in the system in the directory ROOT,
# in namespaces of its own: what it writes is gone afterwards (unless --keep), and what it starts
# ends with it. Needs root. The command finds
#
#   /packages   build/packages, to read
#   /out        the directory that OUT names, to write, if it is set
#   /go         Go, if GO_ROOT names it
#   /tests      packaging/tests, to read
#   /docs       docs, to read
set -eu
keep=
[ "$1" != --keep ] || { keep=yes && shift; }
if [ -z "${TOLLBAR_INSIDE:-}" ]; then
    TOLLBAR_INSIDE=$(cd "$(dirname "$0")/.." && pwd) exec unshare --mount --pid --fork --kill-child "$0" ${keep:+--keep} "$@"
fi
top=$TOLLBAR_INSIDE
root=$1
shift
mount --make-rprivate /
if [ -z "$keep" ]; then
    # The layer is in memory.
    layer=$top/build/roots/layer
    mkdir -p "$layer"
    mount -t tmpfs tmpfs "$layer"
    mkdir "$layer/upper" "$layer/work" "$layer/root"
    mount -t overlay overlay -o "lowerdir=$root,upperdir=$layer/upper,workdir=$layer/work" "$layer/root"
    root=$layer/root
fi
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/dev"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t devpts devpts "$root/dev/pts" -o newinstance,ptmxmode=0666
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
# Names and certificates as this machine has them: its registries may be reached through others.
for file in /etc/resolv.conf /etc/hosts; do
    [ ! -e "$file" ] || cp -L "$file" "$root$file"
done
certificates=/etc/ssl/certs/ca-certificates.crt
if [ -e "$certificates" ]; then
    mkdir -p "$root/etc/ssl/certs"
    # dpkg's own may come here later.
    [ -n "$keep" ] || cp -L "$certificates" "$root$certificates"
fi
# FROM TO OPTIONS
show() {
    mkdir -p "$root$2"
    mount --bind "$1" "$root$2"
    [ -z "$3" ] || mount -o "remount,bind,$3" "$root$2"
}
if [ -z "$keep" ]; then
    [ ! -d "$top/build/packages" ] || show "$top/build/packages" /packages ro
    show "$top/packaging/tests" /tests ro
    show "$top/docs" /docs ro
    [ -z "${OUT:-}" ] || show "$OUT" /out ""
    [ -z "${GO_ROOT:-}" ] || show "$GO_ROOT" /go ro
fi
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
exec env -i PATH=$path HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive ${INSIDE_ENV:-} chroot "$root" "$@"
