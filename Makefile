# tollbar: `make demo`, `make openssl`, `make rules`, `make static`, `make check`, `make test`, `make nginx`, `make valkey`, `make arm64`, `make soak`, `make bench`,
# `make bench-peers`, `make bench-cores`, `make docs`, `make install PREFIX=/usr/local`, `make packages`, `make packages-test`, `make macos`.
# The work of each target is in tools/*.sh or in a Makefile beside the tests it runs.

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DESTDIR ?=
CC ?= cc
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
ABI := 1

B := build
SOURCES := $(shell find src -name '*.rs'; find crates -name '*.rs' -path '*/src/*' -o -name '*.lua' -o -name Cargo.toml) Cargo.toml Cargo.lock
CFLAGS ?= -O2 -g
WARN := -std=c99 -Wall -Wextra -Wpedantic -Wundef -Wconversion -Werror

.PHONY: all lib openssl rules static demo check test nginx valkey arm64 soak bench bench-peers bench-cores docs install packages packages-test macos clean

all: lib

lib: $(B)/libtollbar.so $(B)/libtollbar.a $(B)/libtollbar-redis.so $(B)/libtollbar-redis.a

$(B)/libtollbar.so $(B)/libtollbar.a $(B)/libtollbar-redis.so $(B)/libtollbar-redis.a &: $(SOURCES) tools/lib.sh $(wildcard abi/*.symbols)
	tools/setup.sh lib
	tools/lib.sh $(B) $(ABI)

# TLS of clients in C, for those who have OpenSSL (libssl-dev).
openssl: $(B)/libtollbar-redis-openssl.so

$(B)/libtollbar-redis-openssl.so: crates/tollbar-redis-c/openssl/tollbar_openssl.c include/tollbar_openssl.h include/tollbar_redis.h
	tools/setup.sh openssl
	mkdir -p $(B)
	$(CC) $(WARN) $(CFLAGS) -fPIC -Iinclude -c -o $(B)/tollbar_openssl.o $<
	$(CC) -shared -Wl,-soname,libtollbar-redis-openssl.so.$(ABI) -o $@ $(B)/tollbar_openssl.o -lssl -lcrypto
	ln -sf libtollbar-redis-openssl.so $@.$(ABI)
	rm -f $(B)/libtollbar-redis-openssl.a
	$(AR) rcs $(B)/libtollbar-redis-openssl.a $(B)/tollbar_openssl.o
	rm $(B)/tollbar_openssl.o

# Rules in a file. It needs a newer Rust than the library.
rules: $(B)/libtollbar-rules.so

$(B)/libtollbar-rules.so: $(SOURCES) tools/lib-rules.sh abi/tollbar-rules.symbols
	tools/setup.sh lib
	tools/lib-rules.sh $(B) $(ABI)

# The command. It needs a newer Rust than the library, and is no part of it.
$(B)/tollbar: $(shell find crates/tollbar-cli -path '*/src/*' -o -path '*/page/*' -o -name Cargo.toml) $(SOURCES)
	tools/setup.sh lib
	tools/cli.sh $(B)

# The command as one file for any Linux, build/static/x86_64/tollbar and build/static/aarch64/tollbar.
static:
	tools/setup.sh lib
	tools/static.sh $(B) $(ARCHITECTURES)

# What is missing is installed first, so that `make demo` is all that a fresh machine needs.
demo:
	tools/setup.sh lib
	$(MAKE) --no-print-directory $(B)/tollbar
	tools/demo.sh $(B)

test:
	tools/test.sh

# The fast tests (two minutes when everything is built), beside each other, for a contributor to run after each change.
check:
	TOLLBAR_QUICK=1 ONLY="$(or $(ONLY),lint header rust loom c)" tools/test.sh

# The nginx modules, for the nginx that is installed, or for the source tree NGINX_SRC.
nginx:
	tools/setup.sh $(if $(NGINX_SRC),lib,nginx)
	$(MAKE) --no-print-directory lib
	nginx/build.sh $(B)/nginx $(NGINX_SRC)

# The tests of limits in Redis, with Valkey in its place; others that start a server, with ONLY="redis c go python nginx".
valkey:
	tools/setup.sh valkey
	mkdir -p $(B)/valkey
	ln -sf "$$(command -v valkey-server)" $(B)/valkey/redis-server
	$(B)/valkey/redis-server --version
	PATH="$(CURDIR)/$(B)/valkey:$$PATH" ONLY="$(or $(ONLY),redis)" tools/test.sh

# The library for 64-bit ARM, built here, and what its tests can show under an emulator.
arm64:
	tools/arm64.sh

# The long forms of tests, and mutations of the sources: `make soak ONLY="storm flood"`, `make soak ONLY=mutants MUTANTS=src/units.rs`,
# `make soak ONLY=orderings ORDERINGS=src/queue`, `make soak ONLY=bounds`.
soak:
	tools/soak.sh

bench:
	tools/bench.sh

# Beside all peers, in every language: writes docs/benchmarks.md and its charts. Some minutes, on a quiet machine.
bench-peers:
	tools/bench-peers.sh

# With one thread to as many as there are processors: some minutes. build/bench-cores is static and runs on other hosts.
bench-cores:
	tools/bench-cores.sh

# The documentation as a site, build/site/index.html, with the report of a log in it.
docs:
	tools/setup.sh docs
	$(MAKE) --no-print-directory $(B)/tollbar
	tools/site/build.sh $(B)

install: lib
	tools/install.sh "$(DESTDIR)" "$(PREFIX)" "$(LIBDIR)" "$(INCLUDEDIR)" $(B) $(VERSION) $(ABI)

# All that a release has, into build/packages. Some of it: make packages ONLY="debian python". SUITES are Debian's; REBUILD=2 makes the
# Debian packages again for a newer nginx.
packages:
	SUITES="$(SUITES)" REBUILD="$(REBUILD)" packaging/packages.sh $(ONLY)

# Installs what `make packages` has made in clean systems without Rust, as root; looks at the wheels that do not run there; builds by the
# recipes for Conan, Meson and vcpkg.
packages-test:
	packaging/test.sh $(SUITES)
	packaging/tests/wheels.sh
	packaging/tests/recipes.sh

# What can be seen of the library for macOS from Linux.
macos:
	ffi-tests/macos.sh

clean:
	rm -rf $(B)
	cargo clean
