#!/bin/sh
# command.sh SUITE: from the package tollbar to the first refusal.
set -eu
. /tests/clock.sh
cd "/packages/debian/$1"
apt-get install -y -q --no-install-recommends ./tollbar_*_amd64.deb
for second in 1 2 3 4 5; do
    echo "192.0.2.1 - - [10/Oct/2026:13:55:0$second +0000] \"GET / HTTP/1.1\" 200 2326"
done >/tmp/access.log
tollbar replay /tmp/access.log --policy 3/day >/tmp/report
cat /tmp/report
refused
grep -q '^denied  *2,' /tmp/report
[ -s /usr/share/man/man1/tollbar.1.gz ]
bash -n /usr/share/bash-completion/completions/tollbar
grep -q 'set-policy' /usr/share/bash-completion/completions/tollbar /usr/share/zsh/vendor-completions/_tollbar
report "from the package to the first refusal"
