"""Leases from a redis-server behind TLS."""

import re
import socket
import ssl
import subprocess
import time

import pytest
from test_lease import dies_with_parent, taken, until
from tollbar import Lease, LeaseError


# OpenSSL's words for a certificate of an unknown authority.
FOREIGN = "local issuer certificate|self-signed certificate"


def openssl(directory, *words):
    subprocess.run(["openssl", *words], cwd=directory, check=True, capture_output=True)


def certificate(directory, name, *more):
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    openssl(
        directory, "req", "-x509", *new, "-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", f"/CN={name}", *more
    )


class TlsRedis:
    """A redis-server on a port of its own. It asks for client certificates, unless `is_open`."""

    def __init__(self, directory, name="server", is_open=False):
        self.directory, self.name, self.is_open = directory, name, is_open
        signed = ["-CA", "ca.crt", "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:FALSE"]
        certificate(directory, "ca")
        certificate(directory, "other")
        certificate(directory, "server", *signed, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        certificate(directory, "localhost", *signed)
        certificate(directory, "client", *signed)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"rediss://localhost:{self.port}"
        self.start()

    def start(self):
        files = [f"--tls-{key}-file" for key in ("cert", "key", "ca-cert")]
        pairs = zip(files, (f"{self.name}.crt", f"{self.name}.key", "ca.crt"), strict=True)
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--tls-port", str(self.port), "--save", "",
             "--bind", "127.0.0.1", "127.0.0.2",
             "--dir", str(self.directory), "--logfile", "log", "--tls-auth-clients", "no" if self.is_open else "yes",
             *(word for pair in pairs for word in pair)],
            preexec_fn=dies_with_parent,
        )  # fmt: skip
        until(self.answers)

    def answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 10).close()
        except OSError:
            assert self.process.poll() is None, (self.directory / "log").read_text()
            return False
        return True

    def kill(self):
        self.process.kill()
        self.process.wait()

    def context(self, authority="ca", client=True):
        context = ssl.create_default_context(cafile=self.directory / f"{authority}.crt")
        if client:
            context.load_cert_chain(self.directory / "client.crt", self.directory / "client.key")
        return context


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    server = TlsRedis(tmp_path_factory.mktemp("tls"))
    yield server
    server.kill()


def lease(url, tls=None, name="test", **options):
    return Lease("1000/day burst 400", name=name, nodes=1, url=url, tls=tls, **options)


def test_it_admits_what_the_store_has(redis):
    for number, url in enumerate([redis.url, f"rediss://127.0.0.1:{redis.port}"]):
        with lease(url, redis.context(), name=f"by{number}") as limit:
            until(lambda: limit.circuit == "closed")
            admitted = sum(limit.wait("ann", 10).allowed for _ in range(450))
            # Exactness keeps back 8 permits. A thread that gets no processor for the patience, 250 ms,
            # loses what the store has served it.
            assert 300 <= admitted <= 400


def refused(url, tls):
    """The error of a client that the TLS layer keeps out, the same for some attempts to connect."""
    with lease(url, tls, start=False) as limit:
        until(lambda: limit.tick() is not None and limit.error)
        errors, end = {limit.error}, time.monotonic() + 1
        while time.monotonic() < end:
            limit.tick()
            errors.add(limit.error)
            time.sleep(0.002)
        assert limit.circuit != "closed" and len(errors) == 1
        return errors.pop()


def test_who_is_not_who_he_says(redis):
    assert "IP address mismatch" in refused(f"rediss://127.0.0.2:{redis.port}", redis.context())
    assert re.search(FOREIGN, refused(redis.url, redis.context("other")))
    # By default the system's authorities count.
    assert re.search(FOREIGN, refused(redis.url, None))


def test_the_default_verifies_the_authority_and_the_name(tmp_path_factory, monkeypatch):
    """The certificate of `localhost` has its name in its subject only."""
    for name, word in (("server", ""), ("localhost", "certificate is not valid for 'localhost'")):
        server = TlsRedis(tmp_path_factory.mktemp("open"), name, is_open=True)
        monkeypatch.setenv("SSL_CERT_FILE", str(server.directory / "ca.crt"))
        try:
            if word:
                assert word in refused(server.url, None)
            else:
                with lease(server.url) as limit:
                    until(lambda: limit.circuit == "closed")
        finally:
            server.kill()


def test_a_lease_with_a_thread_says_why(redis):
    heard = []
    options = {"name": "thread", "on_change": lambda circuit: heard.append((circuit, limit.error))}
    with lease(redis.url, redis.context("other"), **options) as limit:
        until(lambda: limit.circuit == "open" and heard)
        assert re.search(FOREIGN, limit.error)
        assert [circuit for circuit, _ in heard] == ["open"] and heard[0][1] == limit.error


def test_a_client_without_the_certificate_that_the_server_wants(redis):
    # TLS 1.3's server says so after the handshake.
    with lease(redis.url, redis.context(client=False), start=False) as limit:
        until(lambda: limit.tick() is not None and ("certificate required" in limit.error or "closed" in limit.error))
        assert limit.circuit != "closed"


def test_a_server_that_comes_back(redis):
    with lease(redis.url, redis.context(), name="back") as limit:
        until(lambda: limit.circuit == "closed")
        assert taken(limit, "ann", 8) == 8
        redis.kill()
        until(lambda: limit.circuit == "open")
        redis.start()
        until(lambda: limit.circuit == "closed")
        assert limit.wait("bob", 10).allowed


def test_what_is_no_context_is_refused():
    for wrong in ("yes", True, 0, object()):
        with pytest.raises(TypeError, match="SSLContext"):
            lease("rediss://localhost", wrong)
    with pytest.raises(ValueError, match="for clients"):
        lease("rediss://localhost", ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    # Or the password would go in the clear.
    with pytest.raises(ValueError, match="rediss://"):
        lease("redis://:secret@localhost", ssl.create_default_context())


def test_a_wrong_url_is_refused_with_its_column():
    with pytest.raises(LeaseError, match="column 10"):
        lease("rediss://:99999")
