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
cat >rules.c <<'EOF'
#include <stdio.h>
#include <tollbar_rules.h>

int main(void) {
    char faults[1000] = "";
    tollbar_rules *rules = NULL;
    if (tollbar_rules_open("limits.toml", NULL, &rules, faults, sizeof faults) != 0)
        return fputs(faults, stderr), 1;
    tollbar_rules_field address = {":address", 8, "192.0.2.1", 9};
    for (int i = 0; i < 2; i++)
        puts(tollbar_rules_check(rules, &address, 1, NULL) == 0 ? "passes" : "refused");
    tollbar_rules_close(rules);
    return 0;
}
EOF
printf 'version = 1\n[group.a]\nlimit = "1/day"\n' >limits.toml
# shellcheck disable=SC2046
cc rules.c $(pkg-config --cflags --libs tollbar-rules) -Wl,-rpath,"$PWD/lib" -o rules
[ "$(./rules | tr '\n' ' ')" = "passes refused " ]
bin/tollbar rules check limits.toml
[ -s share/man/man1/tollbar.1 ]
ldd shared | grep libtollbar.so.1
! ldd static | grep tollbar
report "from the tarball to the first refusal"
