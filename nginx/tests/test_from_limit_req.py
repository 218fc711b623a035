"""docs/from-limit-req.md: the configuration before and the one after answer alike, and every directive
and variable of the table is one of the modules."""

import re
import time

import pytest

from harness import places
from harness.client import statuses
from harness.config import CONTENT
from harness.server import Nginx, end_all
from harness.tollbar import MODULE

PAGE = (places.ROOT / "docs" / "from-limit-req.md").read_text()
BEFORE, AFTER = re.findall(r"(?ms)^```nginx\n(.*?)^```$", PAGE)


def parts(block):
    """The limits of a configuration of the page, for the harness."""
    http = re.search(r"(?ms)^http \{\n(.*?)^    server \{", block)[1]
    location = re.search(r"(?ms)location / \{\n(.*?)\}", block)[1]
    return {"http": http, "server": f"location / {{ {location} {CONTENT} }}"}


def test_before_and_after_answer_alike(tmp_path):
    running = []
    found = {}
    try:
        for name, block, modules in (("before", BEFORE, []), ("after", AFTER, [MODULE])):
            assert bool(modules) == (MODULE in block)
            nginx = Nginx(tmp_path / name, modules=modules, **parts(block))
            running.append(nginx)
            nginx.start()
            began = time.monotonic()
            found[name] = statuses(nginx.volley("/", 40)), int(10 * (time.monotonic() - began)) + 1
    finally:
        end_all(running)
    for name, (codes, more) in found.items():
        assert set(codes) == {200, 429} and 21 <= codes.count(200) <= 21 + more, (name, codes, more)


@pytest.mark.parametrize("part, column", [("limit_req", 0), ("http", 1)])
def test_the_tables_words_are_the_modules(part, column):
    sources = "".join(path.read_text() for folder in (part, "common") for path in sorted((places.ROOT / "nginx" / folder).glob("*.[ch]")))
    rows = [line.split(" | ") for line in PAGE.splitlines() if re.match(r"\| `", line)]
    words = {word for row in rows for word in re.findall(r"(?<![\w-])\$?((?:limit_req|tollbar)\w*)", row[column])}
    assert len(words) >= 5
    for word in words:
        assert f'"{word}"' in sources, word
