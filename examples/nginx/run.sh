#!/bin/bash
# run.sh [PORT]: runs site.conf. It builds the modules if they are missing (make nginx), starts
# nginx in a directory of its own, prints requests to try, and ends with Ctrl-C. Without a port it
# takes the first free one from 8080.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
modules=${TOLLBAR_NGINX_MODULES:-$root/build/nginx}
# Debian keeps nginx in a directory that is not on every user's path.
PATH=$PATH:/usr/sbin:/sbin
program=${TOLLBAR_NGINX:-nginx}
# nginx reads inherited sockets from this variable.
unset NGINX

if [ ! -f "$modules/ngx_http_tollbar_module.so" ] || ! command -v "$program" >/dev/null; then
    make -C "$root" nginx
fi

taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
port=${1:-8080}
while taken "$port"; do
    if [ $# -gt 0 ]; then
        echo "port $port is in use" >&2
        exit 1
    fi
    port=$((port + 1))
done

home=$(mktemp -d "${TMPDIR:-/tmp}/tollbar-example.XXXXXX")
nginx=
finish() {
    trap '' INT TERM
    [ -z "$nginx" ] || kill -TERM "$nginx" 2>/dev/null || true
    [ -z "$nginx" ] || wait "$nginx" || true
    rm -rf "$home"
}
trap finish EXIT
trap 'exit 0' INT TERM

# nginx started by root serves as another user, who must reach the files.
chmod 755 "$home"
mkdir -p "$home/html/api" "$home/html/downloads"
echo "<p>Hello.</p>" >"$home/html/index.html"
echo '{"hello": "world"}' >"$home/html/api/hello"
head -c 1000000 /dev/zero >"$home/html/downloads/file"
sed "s/127\.0\.0\.1:8080/127.0.0.1:$port/" "$here/site.conf" >"$home/site.conf"
cat >"$home/nginx.conf" <<END
load_module $modules/ngx_http_tollbar_module.so;
daemon off;
pid nginx.pid;
error_log error.log;
events {}
http {
    client_body_temp_path temp_body;
    proxy_temp_path temp_proxy;
    fastcgi_temp_path temp_fastcgi;
    uwsgi_temp_path temp_uwsgi;
    scgi_temp_path temp_scgi;
    include site.conf;
}
END

"$program" -p "$home" -c nginx.conf -e error.log &
nginx=$!
until taken "$port"; do
    if ! kill -0 "$nginx" 2>/dev/null; then
        cat "$home/error.log" >&2
        exit 1
    fi
    sleep 0.05
done

at=http://127.0.0.1:$port
cat <<END
nginx serves $here/site.conf at $at; its logs are in $home.
Try:

# Alice's plan has 6 requests a minute, and 3 at once; see the headers
curl -si -H 'X-API-Key: alices-key' '$at/api/hello?[1-4]'

# Bob's plan has more
curl -s -o /dev/null -w '%{http_code} ' -H 'X-API-Key: bobs-key' '$at/api/hello?[1-3]'

# two downloads at one time, of some seconds each
for n in 1 2 3; do curl -s -o /dev/null -w '%{http_code} ' $at/downloads/file & done; wait

# 10 a second for each address, and 20 more at once: some of 40 are refused
curl -s -o /dev/null -w '%{http_code} ' '$at/?[1-40]'

# the counters of the zones
curl -s $at/limits

Ctrl-C ends it.
END
wait "$nginx"
