"""A store behind TLS: certificates, names, and what nginx says where they are wrong."""

import subprocess

import pytest

from harness.client import connect, count, request, statuses
from harness.config import CONTENT
from harness.machines import PAGES, machines, wait_for_circuit, zone_of  # noqa: F401
from harness.server import alive, free_ports, wait_until
from test_sync_wait import undisturbed

ZONE = 'policy="5/min burst 5" overdraft=0 sync_wait=10s'
SIGNED = ["-CA", "ca.crt", "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:FALSE"]


def certificate(home, name, *more):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-days", "2", "-keyout", f"{name}.key",
         "-out", f"{name}.crt", "-subj", f"/CN={name}", *(more if "-passout" in more else ["-nodes", *more])],
        cwd=home, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    home = tmp_path_factory.mktemp("tls")
    certificate(home, "ca")
    certificate(home, "other")
    certificate(home, "server", *SIGNED, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    certificate(home, "elsewhere", *SIGNED, "-addext", "subjectAltName=DNS:elsewhere.example")
    certificate(home, "client", *SIGNED)
    certificate(home, "locked", "-passout", "pass:secret")
    subprocess.run(["openssl", "genrsa", "-out", "rsa.key", "2048"], cwd=home, check=True, stderr=subprocess.DEVNULL)
    return home


def words(files, authority="ca", client="client", key=None):
    shown = f"ssl_certificate={files}/{client}.crt ssl_certificate_key={files}/{key or client}.key" if client else ""
    return f"ssl_trusted_certificate={files}/{authority}.crt {shown}"


class Secure:
    """A store that answers on a port with TLS only, and asks for a certificate."""

    def __init__(self, machines, files, name="server"):
        [self.port] = free_ports(1)
        self.machines = machines
        machines.begin_store(
            "--tls-port", str(self.port), "--tls-cert-file", f"{files}/{name}.crt", "--tls-key-file", f"{files}/{name}.key",
            "--tls-ca-cert-file", f"{files}/ca.crt")

    def parts(self, tls, host="localhost", more="", nodes=2, **parts):
        url = f"rediss://{host}:{self.port}"
        return self.machines.parts(f"{ZONE} {more} {tls}", nodes, url=url, **parts)

    def add(self, *args, expected=(), **more):
        nginx = self.machines.add(**self.parts(*args, **more))
        nginx.expected += expected
        return nginx


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_machines_share_a_limit_by_tls(machines, files, host):
    """Of eight requests by turns five pass, as one store would have it, before a restart of the
    store and after it."""
    store = Secure(machines, files)
    both = [store.add(words(files), host=host, expected=["the store does not answer"]) for _ in range(2)]
    for turn in range(2):
        for n in range(6):
            answers = undisturbed(both, lambda run, key=f"{turn}-{n}": [both[i % 2].get(f"/?k={run}-{key}") for i in range(8)])
            assert statuses(answers) == [200] * 5 + [429] * 3
        if turn == 0:
            machines.store.kill()
            for nginx in both:
                wait_for_circuit(nginx, "open")
            machines.store.start()


def test_zones_with_the_same_files_have_one_connection(machines, files):
    """A zone with other files has another one, by which the store cannot be trusted."""
    store = Secure(machines, files)
    url = f"rediss://localhost:{store.port}"
    all_words = [words(files), words(files), words(files, authority="other")]
    zones = "".join(f"tollbar_zone $arg_k zone=z{n}:512k {ZONE} fallback=deny sync={url} nodes=1 {tls};" for n, tls in enumerate(all_words))
    places = "".join(f"location /{n}/ {{ tollbar zone=z{n} nodelay; {CONTENT} }}" for n in range(3))
    nginx = machines.add(workers=1, http=zones, server=places + PAGES)
    nginx.expected += ["the store does not answer"]
    wait_until(lambda: [zone_of(nginx, f"z{n}")["circuit"] for n in range(3)] == ["closed", "closed", "open"], "the circuits")
    assert machines.store.connections() == 1
    wait_until(lambda: nginx.get("/0/?k=a").status == 200, "a lease")
    wait_until(lambda: nginx.get("/1/?k=a").status == 200, "a lease")
    assert nginx.get("/2/?k=a").status == 429


@pytest.mark.parametrize("tls, server, host, said", [
    ({"authority": "other"}, "server", "localhost", "certificate"),
    ({}, "elsewhere", "localhost", "hostname mismatch"),
    ({}, "elsewhere", "127.0.0.1", "IP address mismatch"),
    ({"client": None}, "server", "localhost", ""),
], ids=["another authority", "another name", "another address", "no certificate"])
def test_a_store_that_is_not_the_right_one(machines, files, tls, server, host, said):
    """No request reaches it, and the error log says why. A reload mends it."""
    store = Secure(machines, files, server)
    nginx = store.add(words(files, **tls), host=host, more="fallback=deny", nodes=1, expected=["the store does not answer"])
    wait_for_circuit(nginx, "open")
    wait_until(lambda: nginx.said("the store does not answer", said), "the reason")
    assert count(nginx.volley("/?k=a", 5)) == 0 and machines.store.keys() == 0
    if server == "server":
        assert nginx.reload(**store.parts(words(files), more="fallback=deny", nodes=1))
        wait_for_circuit(nginx, "closed")
        wait_until(lambda: nginx.get("/?k=a").status == 200, "a lease")


def test_a_reload_mends_it_while_an_old_worker_serves_a_download(machines, files):
    """The old worker has the wrong certificate and asks first. It leaves the store to the new one."""
    store = Secure(machines, files)
    more = {"more": "fallback=deny", "nodes": 1, "workers": 1}
    slow = "location /slow { limit_rate 20; root html; }"

    def parts(tls):
        of = store.parts(tls, **more)
        return {**of, "server": of["server"] + slow}

    nginx = machines.add(**parts(words(files, client=None)))
    nginx.expected.append("the store does not answer")
    (nginx.home / "html").mkdir(exist_ok=True)
    (nginx.home / "html" / "slow").write_text("x" * 6000)
    wait_for_circuit(nginx, "open")
    with connect(nginx.port) as download:
        download.sendall(request("/slow"))
        assert download.recv(1) == b"H"
        [old] = nginx.workers()
        assert nginx.reload(**parts(words(files)))
        wait_for_circuit(nginx, "closed")
        wait_until(lambda: nginx.get("/?k=a").status == 200, "the store's permits")
        assert alive(old)


@pytest.mark.parametrize("tls, said", [
    ({"client": "locked"}, '"ssl_certificate_key"'),
    ({"key": "other"}, '"ssl_certificate_key"'),
    ({"client": "server", "key": "missing"}, '"ssl_certificate_key"'),
    ({"key": "rsa"}, '"ssl_certificate_key"'),
    ({"authority": "missing"}, 'missing.crt", it must be a PEM file that nginx can read, a key without a password and of its certificate: No such file'),
], ids=["a key with a password", "another certificate's key", "no key", "a key of another kind", "no authorities"])
def test_files_that_are_wrong(machines, files, tls, said):
    """A reload is refused, and the old configuration goes on."""
    store = Secure(machines, files)
    nginx = store.add(words(files), nodes=1, expected=["cannot use"])
    wait_for_circuit(nginx, "closed")
    assert not nginx.reload(**store.parts(words(files, **tls), nodes=1))
    assert [level for level, _ in nginx.said("cannot use", said)] == ["emerg"]
    wait_for_circuit(nginx, "closed")
