#!/bin/sh
# run.sh BUILD-DIRECTORY: PHP, Node and Java call the library through their foreign-function
# interfaces: the tests of each, its README's program, its example with several workers, and all
# three in one table. `make lib` must have built the library in the directory. The last line is
# `N passed, N failed`.
set -u
build=$(cd "${1:?the build directory}" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$build/ffi
# shellcheck source=koffi.sh
. "$root/ffi-tests/ffi/koffi.sh"
jna=${JNA:-/usr/share/java/jna.jar}
passed=0
failed=0
servers=
rm -rf "$work/php" "$work/node" "$work/java" "$work/classes"
mkdir -p "$work/classes"
tables=$(mktemp -d)
# The workers of PHP's and Node's servers may outlive them.
stop() {
    for server in $servers; do
        # shellcheck disable=SC2046
        kill $(ps -o pid= --ppid "$server") "$server" 2>/dev/null
    done
}
trap 'stop; rm -rf "$tables"' EXIT
trap 'exit 1' HUP INT TERM
export TOLLBAR_LIBRARY="$build/libtollbar.so"

# NAME COMMAND...: one test.
holds() {
    name=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $name"
        cat "$work/log"
    fi
}

# NAME COMMAND...: a program that prints `N passed, N failed`.
counts() {
    name=$1
    shift
    "$@" >"$work/log" 2>&1
    sum=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$work/log" | tail -n 1)
    echo "$name: ${sum:-no result}"
    good=${sum%% *}
    bad=${sum#*, }
    [ -n "$sum" ] || bad=1
    passed=$((passed + ${good:-0}))
    failed=$((failed + ${bad%% *}))
    [ "${bad%% *}" = 0 ] || cat "$work/log"
}

# BINDING LANGUAGE FILE: the README's program.
program_of() {
    awk -v fence="\`\`\`$2" '$0 == fence { on = 1; next } /^```$/ { on = 0 } on' "$root/bindings/$1/README.md" >"$3" && [ -s "$3" ]
}

# COMMAND...: the program prints that three requests pass and two wait for the permit of 20 s.
three_of_five() {
    "$@" >"$work/out" || return 1
    cat "$work/out"
    [ "$(grep -c '^passes, [210] left$' "$work/out")" -eq 3 ] && [ "$(grep -cE '^again in (1[0-9]|20) s$' "$work/out")" -eq 2 ]
}

# PORT: forty clients at once, of which the example admits three, and tells the others when to come
# back. A permit comes back every 20 s, in which a busy machine may not have asked for all of them.
serves() {
    tries=0
    until curl --silent --output /dev/null --interface 127.0.0.9 "http://127.0.0.1:$1/"; do
        tries=$((tries + 1))
        [ $tries -lt 1200 ] || return 1
        sleep 0.05
    done
    began=$(date +%s)
    seq 40 | xargs -P 8 -I % curl --silent --dump-header "$work/headers-%" --output /dev/null "http://127.0.0.1:$1/"
    cat "$work/headers-1"
    took=$(($(date +%s) - began + 1))
    admitted=$(grep -l '^HTTP/1.1 200' "$work"/headers-* | wc -l)
    refused=$(grep -l '^HTTP/1.1 429' "$work"/headers-* | xargs awk -v least=$((20 - took)) '
        tolower($1) == "retry-after:" && $2 + 0 >= 1 && $2 + 0 >= least && $2 + 0 <= 20' | wc -l)
    rm -f "$work"/headers-*
    echo "$admitted admitted, $refused refused in less than $took s"
    [ "$admitted" -ge 3 ] && [ "$admitted" -le $((3 + took / 20)) ] && [ $((admitted + refused)) -eq 40 ]
}

# The processes of the three languages take single permits of one key, 1000 in all.
one_table() {
    php -d ffi.enable=1 "$root/bindings/php/test.php" take "$tables/all" key 600 >"$work/php.got" &
    a=$!
    node "$work/node/test.js" take "$tables/all" key 600 >"$work/node.got" &
    b=$!
    java -cp "$work/classes:$jna" TableTest take "$tables/all" key 600 >"$work/java.got" || return 1
    wait $a && wait $b || return 1
    cat "$work/php.got" "$work/node.got" "$work/java.got"
    [ $(($(cat "$work/php.got") + $(cat "$work/node.got") + $(cat "$work/java.got"))) -eq 1000 ]
}

# A port that is free now.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

counts php php -d ffi.enable=1 "$root/bindings/php/test.php"
php_program() {
    mkdir -p "$work/php" && cp "$root/bindings/php/Tollbar.php" "$work/php" && program_of php php "$work/php/readme.php" &&
        three_of_five php -d ffi.enable=1 "$work/php/readme.php"
}
holds "PHP's README" php_program
port=$(free_port)
VISITS=$tables/php PHP_CLI_SERVER_WORKERS=8 php -d ffi.enable=1 -S "127.0.0.1:$port" "$root/bindings/php/example.php" >"$work/php.log" 2>&1 &
servers="$servers $!"
holds "PHP's example with eight workers" serves "$port"

mkdir -p "$work/node" && cp "$root"/bindings/node/*.js "$root"/bindings/node/*.ts "$work/node"
holds "koffi $koffi" fetched
ln -sfn "$modules/node_modules" "$work/node/node_modules"
counts node node "$work/node/test.js"
# The program that uses each declaration, with the types of the language alone and with a browser's.
typed() {
    typescript_fetched && for lib in es2022 es2022,dom; do
        "$typescript/node_modules/.bin/tsc" --noEmit --strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --noUnusedLocals \
            --target es2022 --lib "$lib" --module node16 "$work/node/types.ts" || return 1
    done
}
# Each export has a declaration, and each declaration an export.
declared() {
    node -e 'const made = require(process.argv[1]); console.log([...Object.keys(made), ...Object.getOwnPropertyNames(made.Table.prototype)].sort().join("\n"))' \
        "$work/node/tollbar.js" | grep -v '^constructor$' >"$work/node/exports"
    sed -n '/^export class Table/,/^}/s/^    \([a-z]*\)(.*/\1/p; s/^export \(class\|function\) \([A-Za-z]*\).*/\2/p' "$work/node/tollbar.d.ts" | sort >"$work/node/declarations"
    diff "$work/node/exports" "$work/node/declarations"
}
holds "Node's types, strictly" typed
holds "Node's exports and their declarations" declared
node_program() { program_of node js "$work/node/readme.js" && three_of_five node "$work/node/readme.js"; }
holds "Node's README" node_program
port=$(free_port)
VISITS=$tables/node PORT=$port node "$work/node/example.js" >"$work/node.log" 2>&1 &
servers="$servers $!"
holds "Node's example with four processes" serves "$port"

compiled() {
    javac -Xlint:all -Werror -d "$work/classes" -cp "$jna" "$root/bindings/java/tollbar/Table.java" "$root"/bindings/java/*.java
}
holds "Java compiles without warnings" compiled
counts java java -cp "$work/classes:$jna" TableTest
java_program() {
    mkdir -p "$work/java" && program_of java java "$work/java/Visits.java" &&
        three_of_five java -cp "$work/classes:$jna" "$work/java/Visits.java"
}
holds "Java's README" java_program
port=$(free_port)
java -cp "$work/classes:$jna" Example "$port" "$tables/java" >"$work/java.log" 2>&1 &
servers="$servers $!"
holds "Java's example" serves "$port"

holds "PHP, Node and Java in one table" one_table
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
