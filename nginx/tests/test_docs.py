"""docs/nginx.md beside the sources: every directive with its contexts and its default, every
variable, and the examples."""

import re
import time

import pytest

from harness import places, rules, tollbar
from harness.client import statuses
from harness.config import CONTENT, TEMP_PATHS
from harness.server import check, complaints
from harness.streams import MODULE as STREAM
from harness.streams import stream_itself
from harness.tollbar import Tollbar, launcher

launch = launcher(Tollbar)

NGINX = places.ROOT / "nginx"
TEXT = (places.ROOT / "docs" / "nginx.md").read_text()
READMES = [(directory / "README.md").read_text() for directory in (places.ROOT, NGINX)]
PARTS = {"limit_req": "The drop-in", "http": "http: ", "stream": "stream"}
# Only root may make nginx's default temporary directories.
TEMP = "".join(f"{name}_temp_path {name};" for name in TEMP_PATHS)
CONTEXTS = {"MAIN": None, "SRV": "server", "LOC": "location"}


def told(part):
    """The directives of a part of the document: {name: contexts}."""
    found = {}
    for title, section in re.findall(r"(?ms)^## (.*?)\n(.*?)(?=^## |\Z)", TEXT):
        if title.startswith(PARTS[part]):
            for name, table in re.findall(r"(?ms)^### (\w+)(?: \(stream\))?\n(.*?)(?=^##|\Z)", section):
                if "| Syntax:" in table:
                    assert f"**`{name}`**" in table, name
                    assert re.search(rf"\| Default: \| (–|`{name} .*;`) \|", table), name
                    found[name] = re.search(r"\| Context: \| (.*) \|", table)[1]
            # Directives with a line each are rows of one table.
            for name, default, contexts in re.findall(r"(?m)^\| \*\*`(\w+)`\*\* .* \| (–|`.*?;`) \| ([a-z, ]+) \| .* \|$", section):
                assert default == "–" or default.startswith(f"`{name} "), name
                found[name] = contexts
    return found


def meant(part):
    """The same, of the sources."""
    found = {}
    for path in sorted((NGINX / part).glob("*.c")):
        text = path.read_text()
        everywhere = re.search(r"#define ANYWHERE \((.*)\)", text)
        for name, flags in re.findall(r'\{ ngx_string\("(\w+)"\), ((?:ANYWHERE|NGX_\w+_CONF)\S*),', text):
            flags = flags.replace("ANYWHERE", everywhere[1] if everywhere else "")
            kind = "stream" if part == "stream" else "http"
            contexts = [CONTEXTS[c] or kind for c in re.findall(rf"NGX_{kind.upper()}_(MAIN|SRV|LOC)_CONF", flags)]
            found[name] = ", ".join(contexts)
    return found


@pytest.mark.parametrize("part", PARTS)
def test_directives(part):
    assert len(meant(part)) > 4
    assert told(part) == meant(part)


@pytest.mark.parametrize("part, least", [("limit_req", 1), ("http", 6), ("stream", 2)])
def test_variables(part, least):
    # In the C files nothing but a semicolon or a function follows a variable's name. Flags follow a
    # directive's name.
    files = [*(NGINX / part).glob("*.c"), *(NGINX / "common").glob(f"ngx_{'stream' if part == 'stream' else 'http'}_*.c")]
    names = {name for path in files for name in
             re.findall(r'(?:\{ |= )ngx_string\("((?:tollbar|limit_req)\w*)"\)(?:;|, (?:absent|print) )', path.read_text())}
    section = "".join(body for title, body in re.findall(r"(?ms)^## (.*?)\n(.*?)(?=^## |\Z)", TEXT)
                      if title.startswith(PARTS[part]))
    listed = {name for line in re.findall(r"(?m)^- (`\$[^:]*):", section) for name in re.findall(r"`\$(\w+)`", line)}
    assert len(names) >= least
    assert listed == names


FROM_LIMIT_REQ = (places.ROOT / "docs" / "from-limit-req.md").read_text()
BLOCKS = [block for text in (TEXT, FROM_LIMIT_REQ, *READMES) for block in re.findall(r"(?ms)^```nginx\n(.*?)^```$", text)]


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_examples(tmp_path, number):
    block = re.sub(r"modules/(\w+\.so)", lambda m: str(places.module(m[1])), BLOCKS[number])
    block = block.replace("RULES;", f"{rules.SITE};").replace("/run/app/", f"{tmp_path}/")
    block = re.sub(r"proxy_pass http://\w+", "proxy_pass http://127.0.0.1:1", block)
    if STREAM in block:
        block = stream_itself() + block
    block = block.replace("http {", "http {" + TEMP)
    code, said = check(tmp_path, f"error_log stderr; pid nginx.pid; {block}\nevents {{ }}")
    assert code == 0 and not any("[warn]" in line for line in complaints(said)), said


def test_c10_the_first_example_refuses_what_the_page_says(launch):
    """The example once had no port of its own. On Debian the default site answered in its place,
    and refused none of the 30 requests."""
    block = re.search(r"(?ms)^```nginx\n(.*?)^```$", TEXT)[1]
    assert re.search(r"listen (\d+);", block)[1] != "80" and "127.0.0.1:8080/?[1-30]" in TEXT
    http = "\n".join(re.findall(r"(?m)^    (tollbar_.*)$", block))
    location = re.search(r"(?ms)location / \{\n(.*?)\}", block)[1]
    nginx = launch(http=http, server=f"location / {{ {location} {CONTENT} }}")
    began = time.monotonic()
    answers = nginx.volley("/", 30)
    found, more = statuses(answers), int(10 * (time.monotonic() - began)) + 1
    assert set(found) == {200, 429} and 21 <= found.count(200) <= 21 + more, (found, more)
    assert {a.headers["retry-after"] for a in answers if a.status == 429} == {"1"}
    told = re.search(r"(\d+) requests get 200: one by the rate, and (\d+) by the burst. The other nine get 429", TEXT)
    assert (told[1], told[2]) == ("21", "20")


@pytest.mark.parametrize("zone, said", [
    ("rate=10", None),
    ("rate=0.5r/h", None),
    ("rate=30r/10s", None),
    ("rate=1r/ms", None),
    ("rate=1r/min on_full=inherit", None),
    ("rate=5r/w", "invalid rate"),
])
def test_rates(tmp_path, zone, said):
    code, words = check(tmp_path, f"load_module {tollbar.module()}; events {{ }} error_log stderr; pid nginx.pid; "
                                  f"http {{ {TEMP} tollbar_zone $arg_k zone=z:344k {zone}; }}")
    assert code == (0 if said is None else 1) and (said or "") in words


@pytest.mark.parametrize("block, said", [
    ("http { tollbar_zone $arg_k zone=z:343k rate=1r/s; }", "it must have at least 344k"),
    ("http { tollbar_conn_zone $arg_k zone=z:32k; }", None),
    ("http { tollbar_conn_zone $arg_k zone=z:31k; }", "too small"),
    ("stream { tollbar_zone $remote_addr zone=z:32k rate=1r/s; }", None),
    ("stream { tollbar_zone $remote_addr zone=z:31k rate=1r/s; }", "too small"),
    ("stream { tollbar_zone $remote_addr zone=z:1m rate=$remote_addr; }", "invalid rate"),
    ("http { tollbar_zone $arg_k zone=z:1m rate=1r/s; } stream { tollbar_zone $remote_addr zone=z:1m rate=1r/s; }",
     "already declared for a different use"),
])
def test_sizes_and_names(tmp_path, block, said):
    modules = f"load_module {tollbar.module()}; {stream_itself()} load_module {places.module(STREAM)};"
    code, words = check(tmp_path, f"{modules} events {{ }} error_log stderr; pid nginx.pid; "
                                  + block.replace("http {", "http {" + TEMP))
    assert code == (0 if said is None else 1) and (said or "") in words
