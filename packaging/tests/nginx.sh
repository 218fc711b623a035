#!/bin/sh
# nginx.sh SUITE: from the Debian packages to the first 429.
set -eu
. /tests/clock.sh
packages=/packages/debian/$1
version=$(cd "$packages" && echo libnginx-mod-http-tollbar_*_amd64.deb)
version=${version#libnginx-mod-http-tollbar}
cd "$packages"
apt-get update -q
apt-get install -y -q --no-install-recommends nginx "./libnginx-mod-http-tollbar$version" "./libnginx-mod-http-tollbar-limit-req$version" \
    "./libnginx-mod-stream-tollbar$version"
nginx -t
# Installing a package has enabled its module.
[ "$(cat /etc/nginx/modules-enabled/*tollbar*.conf | grep -c '^load_module')" -eq 3 ]
cat >/etc/nginx/conf.d/limits.conf <<'EOF'
tollbar_zone   $tollbar_client zone=clients:1m rate=3r/h burst=2;
limit_req_zone $binary_remote_addr zone=drop_in:1m rate=1r/m;
server {
    listen 127.0.0.1:8081;
    root /var/www/html;
    location / { tollbar zone=clients nodelay; tollbar_status 429; try_files /index.nginx-debian.html =404; }
    location /search { limit_req zone=drop_in burst=4 nodelay; limit_req_status 429; try_files /index.nginx-debian.html =404; }
}
EOF
cat >>/etc/nginx/nginx.conf <<'EOF'
stream {
    tollbar_zone $tollbar_client zone=connections:1m rate=2r/h;
    server { listen 127.0.0.1:8082; tollbar zone=connections burst=1 nodelay; proxy_pass 127.0.0.1:8081; }
}
EOF
cat >/tmp/ask.sh <<'EOF'
set -eu
nginx
ask() { for n in 1 2 3 4 5 6 7 8; do curl -s -o /dev/null -w '%{http_code} ' "$1" || :; done; echo; }
one=$(ask http://127.0.0.1:8081/)
echo "tollbar: $one"
[ "$one" = "200 200 200 429 429 429 429 429 " ]
two=$(ask http://127.0.0.1:8081/search)
echo "limit_req: $two"
[ "$two" = "200 200 200 200 200 429 429 429 " ]
# A connection that is refused gives no answer. Those that pass have used up their address's
# requests.
three=$(ask http://127.0.0.1:8082/)
echo "stream: $three"
[ "$three" = "429 429 000 000 000 000 000 000 " ]
nginx -s stop
EOF
python3 /tests/alone.py sh /tmp/ask.sh
refused
report "from the packages to the first 429"
