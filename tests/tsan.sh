#!/bin/sh
# tsan.rs under the thread sanitizer, on the stable toolchain and without the standard library's
# source. A report makes it fail. Arguments go to cargo.
set -eu
cd "$(dirname "$0")/.."
target=$(rustc -vV | sed -n 's/^host: //p')
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg tollbar_tsan"
export TSAN_OPTIONS="halt_on_error=1 ${TSAN_OPTIONS:-}"
# tollbar_tsan: plain additions in Rust, since the sanitizer does not see instructions that are
# written out. The sanitizer wants its addresses where it expects them.
run="setarch $(uname -m) -R"
$run true 2>/dev/null || run=
exec $run cargo test --target "$target" --target-dir "${TSAN_TARGET_DIR:-target/tsan}" --package tollbar --test tsan "$@"
