"""What the parameters beside `sync` accept, and what nginx says where they do not: word for
word."""

import pytest

from harness import config, memory, places
from harness.config import CONTENT
from harness.server import check
from harness.tollbar import MODULE

STORE = "sync=redis://127.0.0.1:6379"
SECURE = "sync=rediss://127.0.0.1:6380"
ZONE = "tollbar_zone $arg_k zone=z:1m rate=100r/s burst=20 "
SHARED = f"{ZONE}{STORE} nodes=2;"
SMALL = ('the burst of zone "z" is too small for "sync": the "overdraft" of 2 "nodes" takes up all of it')
NAME = 'of zone "z", it must be 1 to 64 visible ASCII characters without braces'
TCP = "expected redis://[user[:password]@]host[:port][/db]"
UNIX = "expected unix:/path[?db=N&user=NAME&password=SECRET]"


def url(text):
    return f"{ZONE}'sync={text}' nodes=2;"


def wrong_url(column, why):
    return f'invalid "sync" of zone "z", column {column}: {why}'


# A name, the lines of http, the lines of the location, and nginx's message; None if nginx accepts
# the configuration.
CASES = [
    ("the usual", SHARED, "tollbar zone=z nodelay;", None),
    ("all parameters", f"{ZONE}{STORE}/3 nodes=2 fallback=deny lease=20ms overdraft=1 name=logins sync_wait=1m;", "tollbar zone=z nodelay;", None),
    ("no overdraft", f"{ZONE}{STORE} nodes=2 overdraft=0;", "", None),
    ("a policy", f'tollbar_zone $arg_k zone=z:1m policy="100/s burst 20" {STORE} nodes=2;', "tollbar zone=z;", None),
    ("no nodes", f"{ZONE}{STORE};", "", '"sync" must have "nodes" parameter beside it, such as nodes=4, in zone "z"'),
    *[(f"{word} alone", f"{ZONE}{word};", "", f'"{word}" must have "sync" beside it')
      for word in ("nodes=2", "fallback=deny", "lease=1s", "overdraft=3", "name=x", "sync_wait=1s")],
    *[(word, f"{ZONE}{STORE} {word};", "", f'invalid value "{word}", it must be a whole number from 1 to 65535')
      for word in ("nodes=0", "nodes=65536", "nodes=two", "nodes=")],
    *[(word, f"{ZONE}{STORE} nodes=2 {word};", "", f'invalid value "{word}", it must be a time from 1ms to 10m')
      for word in ("lease=0ms", "lease=601s", "lease=long", "lease=")],
    *[(word, f"{ZONE}{STORE} nodes=2 {word};", "", f'invalid value "{word}", it must be a time from 250ms to 1m')
      for word in ("sync_wait=249ms", "sync_wait=61s", "sync_wait=on", "sync_wait=")],
    *[(word, f"{ZONE}{STORE} nodes=2 {word};", "", f'invalid value "{word}", it must be a whole number, 0 or more')
      for word in ("overdraft=-1", "overdraft=some")],
    ("fallback unknown", f"{ZONE}{STORE} nodes=2 fallback=pray;", "", 'invalid value "fallback=pray", it must be share, deny or allow'),
    # The name in the store
    *[(f"the name '{name}'", f"{ZONE}{STORE} nodes=2 'name={name}';", "", f'invalid "name" "{name}" {NAME}')
      for name in ("", "a b", "a{b}", "n" * 65, "\u00e9")],
    ("a zone whose name is none", f"{SHARED.replace('zone=z:', 'zone=a{b:').replace('zone=a{b:1m', chr(34) + 'zone=a{b:1m' + chr(34))}",
     "", 'invalid "name" "a{b" of zone "a{b", it must be'),
    ("the same name twice", SHARED + SHARED.replace("=z:", "=y:").replace(";", " name=z;"), "",
     'zone "y" must have another "name" in the store than zone "z"'),
    ("the same name in two databases", SHARED + SHARED.replace("=z:", "=y:").replace(":6379", ":6379/1").replace(";", " name=z;"), "",
     None),
    ("the same zone twice", SHARED + SHARED, "", 'tollbar_zone "z" is already bound to key "$arg_k"'),
    # The URL
    ("a host's name", url("redis://localhost"), "", None),
    ("an IPv6 address", url("redis://user:secr%40t@[::1]:1/3"), "", None),
    ("options without a database", url("redis://user@localhost?password=secr%40t&timeout=500ms"), "", None),
    ("a password in a file", url("redis://localhost:6380/1?user=u&password_file=/run/secret"), "", None),
    ("valkey", url("valkey://127.0.0.1"), "", None),
    ("a socket", url("unix:/run/redis.sock?db=1&user=u&password=p"), "", None),
    ("a host nobody knows", url("redis://u:secret@no-such-host.invalid:1/3"), "",
     'host not found in "sync" of zone "z": "no-such-host.invalid:1"'),
    ("a host that looks like a socket", url("redis://unix:1"), "", 'in "sync" of zone "z": "unix:1"'),
    ("no URL", url(""), "", wrong_url(1, "expected redis://, rediss:// or unix:")),
    ("another scheme", url("http://127.0.0.1"), "", wrong_url(1, "expected redis://, rediss:// or unix:")),
    ("TLS", url("rediss://user:secret@localhost:6380/1"), "", None),
    ("TLS of valkey", url("valkeys://127.0.0.1"), "", None),
    ("TLS, a host nobody knows", url("rediss://u:secret@no-such-host.invalid:1/3"), "",
     'host not found in "sync" of zone "z": "no-such-host.invalid:1"'),
    ("TLS, a port that is none", url("rediss://127.0.0.1:x/0"), "", wrong_url(20, TCP.replace("redis:", "rediss:"))),
    *[(f"{word} without TLS", f"{ZONE}{STORE} nodes=2 {word}=a.pem;", "",
       '"ssl_trusted_certificate", "ssl_certificate" and "ssl_certificate_key" must have sync=rediss:// beside them, in zone "z"')
      for word in ("ssl_trusted_certificate", "ssl_certificate", "ssl_certificate_key")],
    *[(f"{word} alone", f"{ZONE}{SECURE} nodes=2 {word}=a.pem;", "",
       '"ssl_certificate" and "ssl_certificate_key" must be together, in zone "z"')
      for word in ("ssl_certificate", "ssl_certificate_key")],
    ("authorities that are missing", f"{ZONE}{SECURE} nodes=2 ssl_trusted_certificate=/none.pem;", "",
     'zone "z" cannot use "ssl_trusted_certificate" "/none.pem", it must be a PEM file '),
    ("a certificate that is missing", f"{ZONE}{SECURE} nodes=2 ssl_certificate=/none.pem ssl_certificate_key=/none.pem;", "",
     'zone "z" cannot use "ssl_certificate" "/none.pem", it must be a PEM file '),
    ("a file without a path", f"{ZONE}{SECURE} nodes=2 ssl_certificate=;", "", 'invalid value "ssl_certificate=", it must be the path of a file'),
    ("a word that begins like a file", f"{ZONE}{SECURE} nodes=2 ssl_verify=off;", "", 'invalid parameter "ssl_verify=off", it must be '),
    ("Sentinel", url("redis-sentinel://127.0.0.1"), "", wrong_url(1, "Sentinel is not supported, give the address of the master")),
    ("Cluster", url("redis-cluster://127.0.0.1"), "", wrong_url(1, "Cluster is not supported, give the address of one server")),
    ("a port that is none", url("redis://127.0.0.1:x/0"), "", wrong_url(19, TCP)),
    ("a database that is none", url("redis://127.0.0.1/x"), "", wrong_url(19, TCP)),
    ("no host", url("redis://user:secret@:1"), "", wrong_url(21, TCP)),
    ("a path that is none", url("unix:run"), "", wrong_url(6, UNIX)),
    ("an option that is none", url("unix:/run?dib=1"), "", wrong_url(11, UNIX)),
    # The policy
    ("a burst too small", f"tollbar_zone $arg_k zone=z:1m rate=100r/s {STORE} nodes=2 overdraft=1;", "", SMALL),
    ("an overdraft too large", f"{ZONE}{STORE} nodes=2 overdraft=11;", "", SMALL),
    ("a long lease", f"{ZONE}{STORE} nodes=2 lease=1s;", "", None),
    ("a window", f'tollbar_zone $arg_k zone=z:1m policy="9/s algo fixed-window" {STORE} nodes=2;', "",
     'zone "z" cannot have "sync": only a single gcra can be leased, without borrow, ban, init and reserve'),
    ("a rate that lets nobody through", f'tollbar_zone $arg_k zone=z:1m policy="0/s burst 9" {STORE} nodes=2;', "",
     'zone "z" cannot have "sync": only a single gcra can be leased'),
    ("numbers too large", f'tollbar_zone $arg_k zone=z:1m policy="100/day burst 900000000" {STORE} nodes=2;', "",
     'zone "z" cannot have "sync": burst and period are too large to be counted exactly in the store'),
    ("a rate with variables", f"tollbar_zone $arg_k zone=z:1m rate=$arg_r {STORE} nodes=2;", "",
     '"rate" and "burst" must not hold variables beside "sync" in zone "z"'),
    ("a burst with variables", f"tollbar_zone $arg_k zone=z:1m rate=1r/s burst=$arg_b {STORE} nodes=2;", "",
     '"rate" and "burst" must not hold variables beside "sync" in zone "z"'),
    ("hot_keys", f"{ZONE}{STORE} nodes=2 hot_keys=64;", "", '"hot_keys" must not be beside "sync" in zone "z"'),
    ("on_full", f"{ZONE}{STORE} nodes=2 on_full=deny;", "", '"on_full" must not be beside "sync" in zone "z"'),
    ("the least size", SHARED.replace(":1m", ":364k"), "", None),
    ("a size too small", SHARED.replace(":1m", ":363k"), "", 'zone "z" is too small, with "sync" it must have at least 364k'),
    # Limits
    ("no nodelay", SHARED, "tollbar zone=z;", 'with "sync" no request is delayed, so "nodelay" must be in a limit of zone "z" in '),
    ("a burst of a limit", SHARED, "tollbar zone=z burst=5 nodelay;", 'with "sync", "burst" must be in the "tollbar_zone" of zone "z" in '),
    ("a burst of a limit of a policy", f'tollbar_zone $arg_k zone=z:1m policy="100/s burst 20" {STORE} nodes=2;',
     "tollbar zone=z burst=5;", 'with "sync", "burst" must be in the "tollbar_zone" of zone "z" in '),
    ("a delay", SHARED, "tollbar zone=z delay=5;", '"nodelay" must replace "delay" in a limit of zone "z" in '),
    ("the largest cost", SHARED, "tollbar zone=z nodelay cost=17;", None),
    ("a cost no lease can have", SHARED, "tollbar zone=z nodelay cost=18;",
     'invalid cost 18 in "tollbar" directive, it must be at most 17, '),
]


@pytest.mark.parametrize("http, location, expected", [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_configuration(tmp_path, http, location, expected):
    code, words = check(tmp_path, text(http, location))
    complaints = [line for line in words.splitlines() if "[" in line and "test is" not in line]
    assert "secr" not in words
    if expected is None:
        assert (code, complaints) == (0, []), words
    else:
        assert code == 1 and len(complaints) == 1, words
        assert complaints[0].startswith("[emerg] ") and expected in complaints[0]


def text(http, location):
    return config.text(modules=[MODULE], ports=[8080], http=http, server=f"location / {{ {location} {CONTENT} }}")


def test_configurations_under_valgrind(tmp_path):
    cases = [(name, text(http, location), 0 if expected is None else 1) for name, http, location, expected in
             memory.chosen(CASES)]
    assert memory.faults_of_configurations(tmp_path, cases) == []
