"""$tollbar_client: the key of an address, which a host cannot change within its /64 (B4)."""

import socket

import pytest
from harness.client import statuses
from harness.config import CONTENT
from harness.server import Nginx, end_all
from harness.streams import launch as launch_stream  # noqa: F401
from harness.tollbar import Tollbar, launcher

launch = launcher(Tollbar)

# A proxy on this machine names the client.
PROXY = "set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For;"
V4 = bytes([4, 32, 192, 0, 2, 1])
V6 = bytes([6, 64, 0x20, 1, 0xD, 0xB8, 0, 0, 0, 0])
KEYS = [
    ("192.0.2.1", V4), ("192.0.2.1:4711", V4), ("::ffff:192.0.2.1", V4), ("[::ffff:192.0.2.1]:80", V4), ("64:ff9b::192.0.2.1", V4),
    ("2001:db8::1", V6), ("2001:db8::ffff:2", V6), ("[2001:db8::3]:443", V6),
]


def of(nginx, address, path="/"):
    return nginx.get(path, headers=[f"X-Forwarded-For: {address}"])


def test_it_is_the_key_of_every_other_face(launch):
    nginx = launch(http=PROXY, server='location / { return 200 "$tollbar_client"; }')
    assert [(address, of(nginx, address).body) for address, _ in KEYS] == KEYS
    assert nginx.get("/").body == bytes([4, 32, 127, 0, 0, 1])


@pytest.mark.parametrize("key", ["$tollbar_client", "${tollbar_client}$arg_k"])
def test_hosts_of_one_64_are_one_key(launch, key):
    nginx = launch(http=f"{PROXY} tollbar_zone {key} zone=z:1m rate=2r/h burst=1;", server=f"location / {{ tollbar zone=z nodelay; {CONTENT} }}")
    assert statuses(of(nginx, f"2001:db8::{n}") for n in range(1, 7)) == [200, 200, 429, 429, 429, 429]
    assert statuses([of(nginx, "2001:db8:0:1::1"), of(nginx, "192.0.2.1"), of(nginx, "::ffff:192.0.2.1")]) == [200] * 3


def test_a_unix_socket_has_no_key(launch, tmp_path):
    path = tmp_path / "socket"
    nginx = launch(http="tollbar_zone $tollbar_client zone=z:1m rate=1r/h;",
                   server=f"listen unix:{path}; location / {{ tollbar zone=z; {CONTENT} }}")
    for _ in range(3):
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(str(path))
            one.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert one.recv(100).startswith(b"HTTP/1.1 200")
    assert statuses(nginx.each("/", "/")) == [200, 429]


def test_the_drop_in_has_it_too(tmp_path):
    modules = ["ngx_http_tollbar_limit_req_module.so", "ngx_http_tollbar_module.so"]
    for number, loaded in enumerate((modules[:1], modules, modules[::-1])):
        nginx = Nginx(tmp_path / str(number), modules=loaded, http=f"{PROXY} limit_req_zone $tollbar_client zone=z:1m rate=1r/m;",
                      server=f"location / {{ limit_req zone=z; {CONTENT} }}").start()
        try:
            assert statuses(of(nginx, f"2001:db8::{n}") for n in range(1, 4)) == [200, 503, 503]
        finally:
            end_all([nginx])


def test_a_connection_has_it_in_stream(launch_stream):  # noqa: F811
    nginx = launch_stream('server { listen 127.0.0.1:@PORT1@; return "$tollbar_client"; }')
    with socket.create_connection(("127.0.0.1", nginx.ports[1]), timeout=60) as one:
        assert one.recv(100) == bytes([4, 32, 127, 0, 0, 1])
