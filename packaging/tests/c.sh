#!/bin/sh
# c.sh: from the tarball to the first refusal, with the shared library and with the static one.
set -eu
. /tests/clock.sh
mkdir /tmp/c
cd /tmp/c
tar -xzf /packages/tollbar-*-linux-x86_64.tar.gz
cd tollbar-*
cat >app.c <<'EOF'
#include <stdio.h>
#include <tollbar.h>

int main(void) {
    tollbar_limiter *limiter = NULL;
    if (tollbar_limiter_from_text("3/day", &limiter, NULL) != 0)
        return 1;
    for (int i = 0; i < 5; i++)
        puts(tollbar_limiter_check(limiter, 1, NULL) == 0 ? "passes" : "refused");
    tollbar_limiter_free(limiter);
    return 0;
}
EOF
export PKG_CONFIG_PATH="$PWD/lib/pkgconfig"
# shellcheck disable=SC2046
cc app.c $(pkg-config --cflags --libs tollbar) -Wl,-rpath,"$PWD/lib" -o shared
# shellcheck disable=SC2046
cc app.c $(pkg-config --cflags tollbar) lib/libtollbar.a -o static
# shellcheck disable=SC2046
cc app.c $(pkg-config --cflags --libs tollbar tollbar-redis) -Wl,-rpath,"$PWD/lib" -o redis
for program in shared static redis; do
    [ "$(./$program | tr '\n' ' ')" = "passes passes passes refused refused " ]
done
refused
ldd shared | grep libtollbar.so.1
! ldd static | grep tollbar
report "from the tarball to the first refusal"
