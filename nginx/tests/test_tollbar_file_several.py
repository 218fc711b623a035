"""Zones with different policies that name one new file: whichever nginx reads first, the file has
all their policies."""

import pytest

from harness import config, faces, places
from harness.client import count
from harness.config import CONTENT
from harness.server import check
from harness.streams import Streams, echo  # noqa: F401
from harness.tollbar import MODULE, Tollbar, launcher

launch = launcher(Tollbar)

HOUR = 'policy="6/h"'
DAY = 'policy="9/day"'


@pytest.fixture
def path(tmp_path):
    (tmp_path / "run").mkdir(mode=0o700)
    return tmp_path / "run" / "table"


def parts(path, *zones):
    """Zones a, b, c, … of the file, each with a location of its name."""
    names = "abcdef"[: len(zones)]
    return {
        "http": "".join(f"tollbar_zone $arg_k zone={name} file={path} {zone};" for name, zone in zip(names, zones)),
        "server": "".join(f"location /{name} {{ tollbar zone={name}; {CONTENT} }}" for name in names),
    }


def policies(table):
    return [str(table.policy(number)) for number in range(table.stats().policies)]


@pytest.mark.parametrize("zones", [(HOUR, DAY), (DAY, HOUR), (HOUR, DAY, HOUR)])
def test_the_file_has_the_policies_of_all_its_zones(launch, path, zones):
    nginx = launch(**parts(path, *(f"{zone} capacity=1000" for zone in zones)), workers=2)
    texts = {HOUR: "6/h", DAY: "9/day"}
    with faces.tollbar().Table.open(path, list(dict.fromkeys(texts[zone] for zone in zones)), 1000) as table:
        for name, zone in zip("ab", zones):
            assert count(nginx.volley(f"/{name}?k=x", 12)) == int(texts[zone].split("/")[0])
            assert not table.allow("x", policy="ab".index(name))
    # The same policy is the same limit.
    assert len(zones) == 2 or count(nginx.volley("/c?k=x", 3)) == 0
    assert nginx.reload() and count(nginx.volley("/a?k=x", 3)) == 0
    nginx.stop()
    nginx.start()
    assert count(nginx.volley("/b?k=x", 3)) == 0


def test_one_zone_says_how_the_file_is_made(launch, path):
    """Also if nginx reads it last."""
    nginx = launch(**parts(path, HOUR, f"{DAY} capacity=500 on_full=deny mode=0640 room=20"))
    assert path.stat().st_mode & 0o777 == 0o640
    with faces.tollbar().Table.open(path, ["6/h", "9/day"], 500, on_full="deny", room=20, mode=0o640):
        assert count(nginx.volley("/a?k=x", 12)) == 6 and count(nginx.volley("/b?k=x", 12)) == 9


def test_a_reload_changes_the_policy_of_one_zone(launch, path):
    nginx = launch(**parts(path, f"{HOUR} capacity=1000", f"{DAY} capacity=1000"))
    assert count(nginx.volley("/a?k=x", 4)) == 4 and count(nginx.volley("/b?k=x", 4)) == 4
    assert nginx.reload(**parts(path, f"{HOUR} capacity=1000", 'policy="20/day" capacity=1000'))
    assert count(nginx.volley("/a?k=x", 9)) == 2 and count(nginx.volley("/b?k=x", 9)) == 5
    with faces.tollbar().Table.open(path, ["6/h", "20/day"], 1000) as table:
        assert policies(table) == ["6/h", "20/day"]


class Both(Streams):
    """nginx with http and stream, of which nginx reads stream first if `stream_first`."""

    def write(self, modules=(), stream_first=False, **parts):
        super().write(**parts)
        self.parts = {**parts, "stream_first": stream_first}
        conf = self.home / "nginx.conf"
        before, http, after = conf.read_text().partition("\nhttp {")
        http, stream, after = (http + after).partition("\nstream {")
        blocks = [stream + after, http] if stream_first else [http, stream + after]
        conf.write_text(f"load_module {places.module(MODULE)}; {before}" + "".join(blocks))


launch_both = launcher(Both)


@pytest.mark.parametrize("stream_first", [False, True])
def test_zones_of_http_and_stream_make_one_file(launch_both, echo, path, stream_first):
    http = f"tollbar_zone $tollbar_client zone=h file={path} {HOUR} capacity=1000; tollbar zone=h;"
    stream = (
        f"tollbar_zone $tollbar_client zone=s file={path} rate=1r/h capacity=1000;"
        f"server {{ listen 127.0.0.1:@PORT1@; tollbar zone=s burst=2 nodelay; proxy_pass 127.0.0.1:{echo.port}; }}"
    )
    nginx = launch_both(http=http, stream=stream, stream_first=stream_first)
    wanted = ["1/h burst 3", "6/h"] if stream_first else ["6/h", "1/h burst 3"]
    with faces.tollbar().Table.open(path, wanted, 1000) as table:
        assert policies(table) == wanted
    assert count(nginx.volley("/", 9)) == 6
    found = []
    for _ in range(5):
        one = nginx.open()
        found.append(one.passed())
        one.close()
    assert found == [True] * 3 + [False] * 2


@pytest.mark.parametrize("zones, said", [
    ((f"{HOUR} capacity=1000", f"{DAY} capacity=999"), "found a table for 1000 keys"),
    ((f"{HOUR} capacity=1000", f"{DAY} capacity=1000 on_full=deny"), "found a table with other options"),
    ((f"{HOUR} capacity=1000", 'policy="9/day algo sliding-log" capacity=1000'),
     'zone "a" and others cannot have their policies in one file'),
    ((HOUR, DAY), 'zone "a" has no file'),
])
def test_zones_that_cannot_have_one_file(launch, tmp_path, path, zones, said):
    one = Tollbar(tmp_path / "refused", modules=[MODULE], **parts(path, *zones))
    with pytest.raises(AssertionError, match="nginx did not start") as refused:
        one.start()
    assert said in str(refused.value)


def test_a_test_of_the_configuration_makes_no_file(tmp_path, path):
    text = config.text(modules=[MODULE], ports=[8080], **parts(path, HOUR, f"{DAY} capacity=9"))
    text = text.replace("error.log", "stderr")
    code, output = check(tmp_path / "nginx", text)
    assert code == 0 and not path.exists(), output
