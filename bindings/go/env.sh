# To be sourced by those who run Go here, with $here and $root set.
#
# Go knows neither the library, its header nor the golden vectors as files that its results depend
# on. It does know its flags, so what they contain is put there: a linker's note, and a macro that
# nobody reads.
for library in tollbar tollbar-redis; do
    [ -f "$root/build/lib$library.a" ] || {
        echo "build/lib$library.a is missing: make lib" >&2
        exit 1
    }
done
library=$(cat "$root/build/libtollbar.a" "$root/build/libtollbar-redis.a" | sha256sum | cut -c 1-32)
header=$(cat "$root"/include/*.h "$here/bridge.h" "$here/redis/bridge.h" "$root/ffi-tests/vectors/decisions.json" | sha256sum | cut -c 1-16)
# A Go that is as new as go.mod asks for is used as it is. An older one fetches that version.
toolchain=local
least=$(sed -n 's/^go //p' "$here/go.mod")
[ "$(printf '%s\n' "go$least" "$(GOTOOLCHAIN=local go env GOVERSION)" | sort -V | head -n 1)" = "go$least" ] || toolchain=go$least.0
export GOTOOLCHAIN=$toolchain GOWORK=off GOFLAGS="-p=1 -ldflags=-B=0x$library" CGO_CFLAGS="-O2 -g -DTOLLBAR_HEADER_$header"
