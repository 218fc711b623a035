#!/bin/sh
# dev.sh SUITE: from libtollbar-dev to the first refusal.
set -eu
. /tests/clock.sh
cd "/packages/debian/$1"
apt-get install -y -q --no-install-recommends ./libtollbar1_*_amd64.deb ./libtollbar-redis1_*_amd64.deb ./libtollbar-dev_*_amd64.deb
cat >/tmp/app.c <<'EOF'
#include <tollbar.h>

int main(void) {
    tollbar_limiter *limiter = NULL;
    int admitted = 0;
    if (tollbar_limiter_from_text("3/day", &limiter, NULL) != 0)
        return 1;
    for (int i = 0; i < 5; i++)
        admitted += tollbar_limiter_check(limiter, 1, NULL) == 0;
    tollbar_limiter_free(limiter);
    return admitted == 3 ? 0 : 2;
}
EOF
# shellcheck disable=SC2046
cc /tmp/app.c $(pkg-config --cflags --libs tollbar) -o /tmp/app
/tmp/app
refused
ldd /tmp/app | grep '/usr/lib/.*/libtollbar.so.1\|/lib/.*/libtollbar.so.1'
report "from the packages to the first refusal"
