"""nginx with tollbar's own directives."""

import re

import pytest

from . import config, places
from .client import connect, request
from .server import Nginx, end_all

MODULE = "ngx_http_tollbar_module.so"

WORDS = {
    "limit_req_zone": "tollbar_zone",
    "limit_req_status": "tollbar_status",
    "limit_req_log_level": "tollbar_log_level",
    "limit_req_dry_run": "tollbar_dry_run",
    "limit_req": "tollbar",
}


class Tollbar(Nginx):
    """An nginx whose access log has $tollbar_status."""

    def write(self, **parts):
        self.parts = parts
        text = config.text(ports=self.ports, **parts).replace("$limit_req_status", "$tollbar_status")
        (self.home / "nginx.conf").write_text(text)


class Familiar(Tollbar):
    """One that is configured in the words of limit_req, which are put into tollbar's."""

    def write(self, **parts):
        super().write(**parts)
        text = (self.home / "nginx.conf").read_text()
        text = re.sub(r"(?<![\w$])limit_req\w*", lambda m: WORDS[m[0]], text)
        # Unlike limit_req, tollbar answers 429 by default, and does not enlarge a small zone.
        if "limit_req_status" not in parts.get("http", ""):
            text = text.replace("root html;", "root html; tollbar_status 503;", 1)
        (self.home / "nginx.conf").write_text(text.replace(":32k", ":344k"))


def launcher(kind):
    @pytest.fixture
    def launch(tmp_path):
        running = []

        def start(modules=(), **parts):
            one = kind(tmp_path / f"nginx{len(running)}", modules=[MODULE, *modules], **parts)
            running.append(one)
            return one.start()

        yield start
        end_all(running)

    return launch


def module():
    return places.module(MODULE)


def raw_headers(nginx, path, **how):
    """The lines of an answer's head as they came, without those that nginx itself adds to every
    answer."""
    with connect(nginx.port) as s:
        s.sendall(request(path, **how))
        data = b""
        while True:
            piece = s.recv(65536)
            if not piece:
                break
            data += piece
    lines = data.partition(b"\r\n\r\n")[0].split(b"\r\n")
    usual = (b"Server:", b"Date:", b"Content-", b"Connection:", b"Last-Modified:", b"ETag:", b"Accept-Ranges:", b"Location:")
    return [line for line in lines if not line.startswith(usual)]
