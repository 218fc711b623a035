"""Several nginx that share a limit through one store, each for a machine of its own."""

import json
import os

import pytest

from .config import CONTENT
from .server import wait_until
from .store import Store
from .tollbar import MODULE, Tollbar

PAGES = "location /json { tollbar_status_page json; } location /metrics { tollbar_status_page prometheus; }"


class Machines:
    """`zone` is what stands in tollbar_zone behind its name and size, but for the store and the
    number of machines."""

    def __init__(self, home):
        self.home = home
        self.store = None
        self.nginxes = []

    def begin_store(self, *options):
        # Stored before it starts, so that the fixture also ends a store that fails to start.
        self.store = Store(*options)
        return self.store.start()

    def parts(self, zone, nodes, size="1m", workers=2, more="", **parts):
        url = parts.pop("url", None) or self.store.url
        zone = f"tollbar_zone $arg_k zone=z:{size} {zone} sync={url} nodes={nodes};"
        return {"workers": workers, "http": zone + more, "server": f"location / {{ tollbar zone=z nodelay; {CONTENT} }} {PAGES}",
                **parts}

    def begin(self, zone, count=2, nodes=None, **parts):
        if self.store is None:
            self.begin_store()
        for _ in range(count):
            self.add(**self.parts(zone, nodes or count, **parts))
        for nginx in self.nginxes:
            wait_for_circuit(nginx, "closed")
        return self.nginxes

    def add(self, kind=Tollbar, **parts):
        nginx = kind(self.home / f"nginx{len(self.nginxes)}", modules=[MODULE], **parts)
        self.nginxes.append(nginx)
        return nginx.start()

    def end(self):
        for nginx in self.nginxes:
            nginx.stop()
        if self.store:
            self.store.end()
        for nginx in self.nginxes:
            nginx.check_log()


@pytest.fixture
def machines(tmp_path):
    these = Machines(tmp_path)
    yield these
    these.end()


def zone_of(nginx, name="z"):
    """What the status page says of a zone."""
    return next(zone for zone in json.loads(nginx.get("/json").body)["zones"] if zone["name"] == name)


def wait_for_circuit(nginx, circuit):
    wait_until(lambda: zone_of(nginx)["circuit"] == circuit, f"the circuit is {circuit}")


def leader(nginx, store):
    """The worker that has a connection to the store, if there is one now."""
    port = f":{store.port:04X}"
    found = set()
    with open("/proc/net/tcp") as table:
        for line in table.readlines()[1:]:
            fields = line.split()
            if fields[2].endswith(port) and fields[3] == "01":
                found.add(f"socket:[{fields[9]}]")
    return next((pid for pid in nginx.workers() if found & descriptors(pid)), None)


def descriptors(pid):
    try:
        return {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    except OSError:
        return set()
