#!/bin/sh
# tools/setup.sh for one who is not root, on a machine with a shell and its tools and nothing else:
# it fails and names what each target needs. Nothing is installed.
set -u
cd "$(dirname "$0")/.."
work=$PWD/build/setup
rm -rf "$work"
mkdir -p "$work/bin"
. ffi-tests/c/sh/check.sh
log=$work/log
for tool in sh dirname basename sed awk grep sort head tail tr cat cut uname rm mkdir; do
    ln -s "$(command -v "$tool")" "$work/bin/$tool"
done
printf '#!/bin/sh\necho 1000\n' >"$work/bin/id"
chmod +x "$work/bin/id"

# TARGET WORD...: it fails, and says all of the words.
names() {
    target=$1
    shift
    ! PATH="$work/bin" HOME="$work" tools/setup.sh "$target" >"$work/said" 2>&1 || return 1
    cat "$work/said"
    for word; do grep -q -e "$word" "$work/said" || { echo "without $word" && return 1; }; done
}
compiler='missing; as root: apt-get install gcc make binutils'
check "lib" names lib "$compiler"
check "dependent" names dependent "$compiler"
check "nginx" names nginx "$compiler"
check "bench" names bench "$compiler" valgrind redis-server g++ python3-dev luajit2
check "ffi" names ffi "$compiler" php-cli nodejs npm default-jdk-headless
check "peers" names peers "$compiler" wrk default-jdk-headless maven
check "valkey" names valkey "missing: valkey-server"
check "arm64" names arm64 gcc-aarch64-linux-gnu qemu-user-static redis-server
check "soak" names soak "$compiler" redis-server python3-venv
check "mutants" names mutants "$compiler"
check "roots" names roots "$compiler" debootstrap
check "debian" names debian "$compiler" dpkg-dev debhelper lintian
check "rpm" names rpm "$compiler" rpm
check "python" names python "$compiler" python3-venv python3-dev
check "cross-aarch64" names cross-aarch64 "$compiler gcc-aarch64-linux-gnu"
check "musl-aarch64" names musl-aarch64 musl-tools "dpkg --add-architecture arm64"
check "test" names test "$compiler" clang cmake redis-server

# With all packages, and without Rust.
for tool in cc make ld redis-server python3; do ln -s /bin/true "$work/bin/$tool"; done
check "Rust" names soak "missing: Rust"
# With Rust, and without what Cargo can install.
printf '#!/bin/sh\n[ "$1" != --version ] || echo "rustc 9.9.9 (made up)"\nexit 0\n' >"$work/bin/rustc"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/cargo"
cp "$work/bin/cargo" "$work/bin/rustup"
chmod +x "$work/bin/rustc" "$work/bin/cargo" "$work/bin/rustup"
check "cargo-mutants" names soak "missing: cargo-mutants (cargo install --locked cargo-mutants)"
check "a target of Rust's" names dependent "missing: Rust's libraries for x86_64-unknown-none"
finish
