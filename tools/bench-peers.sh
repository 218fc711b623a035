#!/bin/sh
# tollbar beside all of its peers, in one run of some minutes: builds the programs of the peers in
# other languages into build/peers, runs them with the crates, and writes docs/benchmarks.md and its
# charts. `--to DIRECTORY`: writes them there. `--smoke`: small sizes in a second or two and half a
# minute of nginx, written to build/peers/docs, to see that all of it works.
set -eu
cd "$(dirname "$0")/.."
built=$PWD/build/peers
here=benches/peers
PATH=$PATH:/usr/local/go/bin

# A directory of its own: the library would be built there with other flags than for benches, under
# one name.
run() { cargo run --quiet --release --package tollbar-peers --target-dir target/peers -- "$@"; }

go_peers() { (cd "$here/go" && GOWORK=off GOFLAGS=-mod=readonly go build -o "$built/go-peers" .); }

# Fetched once for each version that the file names.
java_peers() {
    if ! cmp -s "$here/java/pom.xml" "$built/pom.xml"; then
        rm -rf "$built/jars"
        mvn -q -B -f "$here/java/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$built/jars"
        cp "$here/java/pom.xml" "$built/pom.xml"
    fi
    javac -Xlint:all -Werror -cp "$built/jars/*" -d "$built/java" "$here/java/Peers.java"
}

python_peers() {
    cmp -s "$here/python/requirements.txt" "$built/requirements.txt" && return
    rm -rf "$built/python"
    "${PYTHON:-python3}" -m venv "$built/python"
    "$built/python/bin/python" -m pip --quiet --disable-pip-version-check install --no-deps -r "$here/python/requirements.txt"
    cp "$here/python/requirements.txt" "$built/requirements.txt"
}

tools/setup.sh peers
mkdir -p "$built"
make --silent lib nginx
go_peers
java_peers
python_peers
TOLLBAR_LIBRARY=$PWD/build/libtollbar.so
export TOLLBAR_LIBRARY
cost=$built/nginx-cost.txt
throughput=$built/nginx-throughput.txt
docs=docs
case "${1:-}" in
--smoke) docs=$built/docs ;;
--to) docs=${2:?--to: a directory} ;;
esac
mkdir -p "$docs"
if [ "${1:-}" = --smoke ]; then
    python3 nginx/bench/throughput.py 1 1 >"$throughput"
    rm -rf "$docs/benchmarks"
    run --smoke --all "$built" --document "$docs" --nginx "$throughput"
    python3 "$here/check.py" "$docs"
    run --smoke --hashers
    run --smoke --cores --json "$built/cores.json"
    run --page "$built/cores.json" "$docs/benchmarks"
    grep -q "a mutex and a hash map" "$docs"/benchmarks/*-processors.md
    echo "3 passed, 0 failed"
else
    python3 nginx/bench/cost.py 200 >"$cost"
    python3 nginx/bench/throughput.py 7 1 >"$throughput"
    run --all "$built" --document "$docs" --nginx "$cost" "$throughput"
    python3 "$here/check.py" "$docs"
fi
