#!/bin/sh
# dev.sh SUITE: from libtollbar-dev to the first refusal.
set -eu
. /tests/clock.sh
cd "/packages/debian/$1"
apt-get install -y -q --no-install-recommends ./libtollbar1_*_amd64.deb ./libtollbar-redis1_*_amd64.deb ./libtollbar-rules1_*_amd64.deb ./libtollbar-dev_*_amd64.deb
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
cat >/tmp/limits.toml <<'EOF'
version = 1

[route.login]
path = "/login"
limit = "3/day"
EOF
cat >/tmp/rules.c <<'EOF'
#include <stdio.h>
#include <tollbar_rules.h>

int main(void) {
    const tollbar_rules_field request[] = {{":path", 5, "/login", 6}, {":address", 8, "192.0.2.1", 9}};
    tollbar_rules *rules = NULL;
    char error[4096] = "";
    int admitted = 0;
    if (tollbar_rules_open("/tmp/limits.toml", NULL, &rules, error, sizeof error) != 0)
        return fprintf(stderr, "%s\n", error), 1;
    for (int i = 0; i < 5; i++)
        admitted += tollbar_rules_check(rules, request, 2, NULL) == TOLLBAR_ALLOWED;
    tollbar_rules_close(rules);
    return admitted == 3 ? 0 : 2;
}
EOF
# shellcheck disable=SC2046
cc /tmp/rules.c $(pkg-config --cflags --libs tollbar-rules) -o /tmp/rules
/tmp/rules
ldd /tmp/app | grep '/usr/lib/.*/libtollbar.so.1\|/lib/.*/libtollbar.so.1'
report "from the packages to the first refusal"
