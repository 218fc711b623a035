# shellcheck shell=sh
# TLS by OpenSSL (include/tollbar_openssl.h) with a real redis-server. Sourced. The certificates are
# made here. The server and its files end with the step.

tls_certificates() {
    cd "$work/tls" || return 1
    new="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    # shellcheck disable=SC2086
    openssl req -x509 $new -keyout ca.key -out ca.crt -subj "/CN=authority of a test" &&
        openssl req -x509 $new -keyout other.key -out other.crt -subj "/CN=another authority" &&
        openssl req -x509 $new -keyout server.key -out server.crt -subj "/CN=a test" -CA ca.crt -CAkey ca.key \
            -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:localhost,IP:127.0.0.1 &&
        openssl req -x509 $new -keyout subject.key -out subject.crt -subj "/CN=localhost" -CA ca.crt -CAkey ca.key &&
        openssl req -x509 $new -keyout client.key -out client.crt -subj "/CN=a client" -CA ca.crt -CAkey ca.key \
            -addext basicConstraints=critical,CA:FALSE -addext extendedKeyUsage=clientAuth
}

# Its library is not in $build, where packages take what they find.
tls_program() {
    make --silent -C "$root" openssl B="$work/tls" || return 1
    # shellcheck disable=SC2086
    gcc $c99 -o "$work/tls/tls" "$here/tls.c" "$work/tls/libtollbar-redis-openssl.a" "$build/libtollbar-redis.a" "$build/libtollbar.a" -lssl -lcrypto -lpthread
}

tls_cli() {
    redis-cli -p "$tls_port" --tls --cacert "$work/tls/ca.crt" --cert "$work/tls/client.crt" --key "$work/tls/client.key" "$@" 2>&1
}

# [CERTIFICATE]: starts the server at a free port, and waits until it answers.
tls_server() {
    tls_certificate=${1:-server}
    [ -n "${tls_port:-}" ] || tls_port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    redis-server --port 0 --tls-port "$tls_port" --bind 127.0.0.1 127.0.0.2 --save "" --dir "$work/tls" \
        --tls-cert-file "$tls_certificate.crt" --tls-key-file "$tls_certificate.key" --tls-ca-cert-file ca.crt >"$work/tls/server.log" 2>&1 &
    tls_pid=$!
    for _ in $(seq 300); do
        [ "$(tls_cli PING)" != PONG ] || return 0
        sleep 0.1
    done
    cat "$work/tls/server.log"
    return 1
}

# URL AUTHORITY CERTIFICATE: runs the program for some seconds, as a client with these files.
tls_client() {
    key=$(echo "$3" | sed 's/\.crt$/.key/')
    (cd "$work/tls" && timeout 60 ./tls "$1" "$2" "$3" "$key" "${4:-4}") >"$work/tls/said"
    tls_status=$?
    cat "$work/tls/said"
}

# An exact limiter admits 400 of them. Exactness keeps back 8.
tls_answers() {
    tls_cli FLUSHALL >/dev/null
    tls_client "rediss://$1:$tls_port" ca.crt client.crt || return 1
    admitted=$(sed -n 's/^\([0-9]*\) of 400 admitted.*/\1/p' "$work/tls/said")
    [ "$tls_status" -eq 0 ] && [ "$admitted" -ge 300 ] && [ "$admitted" -le 401 ]
}

# URL AUTHORITY CERTIFICATE WORDS: no answer, and the error says these words.
tls_refuses() {
    tls_client "$1" "$2" "$3" 2
    [ "$tls_status" -eq 3 ] && grep -q "$4" "$work/tls/said"
}

# The server is killed while a client runs, and comes back empty. The client tells it what the key
# has used.
tls_comes_back() {
    tls_cli FLUSHALL >/dev/null
    (cd "$work/tls" && timeout 60 ./tls "rediss://localhost:$tls_port" ca.crt client.crt client.key 9) >"$work/tls/said" &
    client=$!
    sleep 2
    kill -9 "$tls_pid"
    wait "$tls_pid" 2>/dev/null
    sleep 2
    tls_server || return 1
    wait "$client" || return 1
    cat "$work/tls/said"
    # Closed, open, and closed again.
    admitted=$(sed -n 's/^\([0-9]*\) of 400 admitted.*/\1/p' "$work/tls/said")
    [ "$(grep -c '^circuit 1' "$work/tls/said")" -ge 2 ] && [ "$admitted" -ge 300 ] && [ "$admitted" -le 401 ]
}

openssl_by_tls() {
    mkdir -p "$work/tls"
    check "openssl makes certificates" tls_certificates
    check "compile: a client with OpenSSL" tls_program
    check "redis-server has TLS" tls_server
    measure "a client has permits through TLS, by the server's name" tls_answers localhost
    measure "and by its address" tls_answers 127.0.0.1
    measure "a server with another's certificate is refused" tls_refuses "rediss://127.0.0.2:$tls_port" ca.crt client.crt "IP address mismatch"
    measure "a server of an unknown authority is refused" tls_refuses "rediss://localhost:$tls_port" other.crt client.crt "TLS with the server failed: "
    measure "a client without a certificate is refused, and says why" tls_refuses "rediss://localhost:$tls_port" ca.crt - "TLS with the server failed: \|closed the connection"
    measure "a server that is killed and comes back" tls_comes_back
    kill "$tls_pid"
    wait "$tls_pid" 2>/dev/null
    check "redis-server with a certificate that has its name in its subject only" tls_server subject
    measure "is refused" tls_refuses "rediss://localhost:$tls_port" ca.crt client.crt "TLS with the server failed: hostname mismatch"
    kill "$tls_pid"
    wait "$tls_pid" 2>/dev/null
    rm -rf "$work/tls"
}
