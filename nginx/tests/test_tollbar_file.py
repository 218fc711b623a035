"""Zones with `file`: one table for nginx and for other programs. The other program is Python, in
this process. test_tollbar_file_faults.py has what nginx refuses, and test_tollbar_file_storm.py
programs that are killed."""

import json
import os
import signal

import pytest

from harness import config, faces
from harness.client import count, statuses
from harness.config import CONTENT
from harness.server import alive, check, complaints, wait_until
from harness.streams import echo, launch as launch_stream  # noqa: F401
from harness.tollbar import MODULE, Tollbar, launcher

launch = launcher(Tollbar)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "run").mkdir(mode=0o700)
    return tmp_path / "run" / "table"


def opened(path, policies="6/day", capacity=1000, **options):
    return faces.tollbar().Table.open(path, policies, capacity, **options)


def zone(path, limit='policy="6/day"', key="$arg_k", more="capacity=1000"):
    return f"tollbar_zone {key} zone=z file={path} {limit} {more};"


def parts(*zone_parts, limit="", **more):
    return {
        "http": zone(*zone_parts, **more),
        "server": f"location / {{ tollbar zone=z {limit}; {CONTENT} }}",
    }


def allowed(table, key="a", tries=9, **how):
    """How many of so many requests the other program admits."""
    return sum(table.allow(key, **how) for _ in range(tries))


def test_nginx_makes_the_file_and_another_program_opens_it(launch, path):
    nginx = launch(**parts(path), workers=2)
    assert path.stat().st_mode & 0o777 == 0o600
    assert count(nginx.volley("/?k=a", 4)) == 4
    with opened(path) as table:
        assert allowed(table) == 2 and count(nginx.volley("/?k=a", 3)) == 0
        assert allowed(table, "b", 5) == 5 and count(nginx.volley("/?k=b", 3)) == 1
        assert (table.stats().keys, table.stats().allowed) == (2, 12)
        # A reset of the other program holds in nginx at once.
        assert table.reset("a") and count(nginx.volley("/?k=a", 9)) == 6


def test_another_program_makes_the_file_and_nginx_opens_it(launch, path):
    """Of its policies nginx uses the one that equals the zone's, and needs no capacity."""
    with opened(path, ["100/day", "6/day"], 500, on_full="deny") as table:
        assert allowed(table, tries=4, policy=1) == 4
        pages = (
            "location /json { tollbar_status_page json; }"
            "location /metrics { tollbar_status_page prometheus; }"
        )
        own = parts(path, more="")
        nginx = launch(http=own["http"] + "tollbar_headers legacy;", server=own["server"] + pages)
        answers = nginx.volley("/?k=a", 5)
        assert count(answers) == 2 and table.peek("a", policy=0).remaining == 100
        assert {a.headers["x-ratelimit-limit"] for a in answers} == {"6"}

        page = json.loads(nginx.get("/json").body)["zones"][0]
        assert (page["capacity"], page["policies"], page["keys"], page["policy"]) == (
            500,
            2,
            1,
            "6/day",
        )
        assert [(one["policy"], one["allowed"], one["denied"]) for one in page["decisions"]] == [
            ("100/day", 0, 0),
            ("6/day", 6, 3),
        ]
        metrics = nginx.get("/metrics").body.decode()
        assert 'tollbar_decisions_total{limit="z",policy="1",verdict="allowed"} 6' in metrics
        assert 'tollbar_decisions_total{limit="z",policy="1",verdict="denied"} 3' in metrics


@pytest.mark.parametrize(
    "limit, more",
    [('policy="6/day"', ""), ("rate=6r/d burst=5", "nodelay"), ('policy="6/day" hot_keys=64', "")],
)
def test_several_nginx_share_a_file(launch, path, limit, more):
    first, second = (launch(**parts(path, limit, limit=more)) for _ in range(2))
    assert count(first.volley("/?k=a", 4)) == 4
    assert count(second.volley("/?k=a", 9)) == 2
    assert count(first.volley("/?k=a", 9)) == 0


@pytest.mark.parametrize(
    "limit",
    [
        'policy="6/day"',
        'policy="6/day algo fixed-window anchor first"',
        'policy="6/day algo sliding-log"',
        'policy="6/month"',
    ],
)
def test_states_outlive_reloads_and_nginx(launch, path, limit):
    nginx = launch(**parts(path, limit))
    assert count(nginx.volley("/?k=a", 2)) == 2
    assert nginx.reload() and count(nginx.volley("/?k=a", 2)) == 2
    nginx.stop()
    nginx.start()
    assert count(nginx.volley("/?k=a", 9)) == 2
    assert count(nginx.volley("/?k=b", 9)) == 6


def test_a_reload_with_another_policy_changes_the_tables(launch, path):
    nginx = launch(**parts(path))
    with opened(path) as table:
        assert count(nginx.volley("/?k=a", 4)) == 4
        assert nginx.reload(**parts(path, 'policy="24/day"'))
        assert [
            level
            for level, _ in nginx.said('zone "z" has changed policy 0 of the table', '"24/day"')
        ] == ["notice"]
        # A key keeps the permits that it has left.
        assert allowed(table) == 2 and count(nginx.volley("/?k=a", 3)) == 0
        assert count(nginx.volley("/?k=b", 20)) == 20 and allowed(table, "b") == 4
    # Other programs must now open the file with the policy that nginx has.
    with pytest.raises(faces.tollbar().TableError):
        opened(path)
    assert allowed(opened(path, "24/day"), "c", 30) == 24


def test_a_zone_has_the_room_of_the_file_that_it_finds(launch, path):
    """Any algorithm becomes any other, though the zone names neither capacity nor room."""
    texts = ["20/h", "30/h algo sliding-window segments 15", "25/h algo sliding-log", "20/h"]
    limits = [20, 30, 25, 20]
    with opened(path, texts[0], room=30) as table:
        nginx = launch(**parts(path, f'policy="{texts[0]}"', more=""))
        for n in range(3):
            most = limits[n] - 6
            assert count(nginx.volley(f"/?k={n}", most)) == most
            assert nginx.reload(**parts(path, f'policy="{texts[n + 1]}"', more=""))
            assert str(table.policy(0)) == texts[n + 1]
            assert count(nginx.volley(f"/?k={n}", 4)) == 4 and allowed(table, f"{n}") == 2
        nginx.expected.append("cannot change the policy")
        assert not nginx.reload(**parts(path, 'policy="31/h algo sliding-log"', more=""))
        said = nginx.said("cannot change the policy", "was made with room 30")
        assert [level for level, _ in said] == ["emerg"], said
        assert str(table.policy(0)) == texts[3]


def test_a_reload_with_another_burst_keeps_what_was_spent(launch, path):
    """As in a zone of nginx's own memory: four of six spent are four of eight."""
    nginx = launch(**parts(path, "rate=1r/h burst=5", limit="nodelay"))
    assert count(nginx.volley("/?k=a", 4)) == 4
    assert nginx.reload(**parts(path, "rate=1r/h burst=7", limit="nodelay"))
    assert count(nginx.volley("/?k=a", 9)) == 4


def test_a_reload_changes_only_the_policy_of_the_zone(launch, path):
    with opened(path, ["100/day", "6/day"]) as table:
        nginx = launch(**parts(path, more=""))
        assert nginx.reload(**parts(path, 'policy="8/day"', more=""))
        assert allowed(table, policy=1) == 8 and allowed(table, tries=101, policy=0) == 100
        # The table has this policy under another number. nginx uses it and changes no policy.
        assert nginx.reload(**parts(path, 'policy="100/day"', more=""))
        assert count(nginx.volley("/?k=a", 3)) == 0 and allowed(table, "b", policy=1) == 8


@pytest.mark.parametrize(
    "fault, said",
    [
        ("server { location / { tollbar zone=y; } }", "unknown zone"),
        # nginx binds its sockets after it has opened the zones' files.
        ("server { listen 192.0.2.1:1; }", "bind()"),
    ],
)
def test_a_reload_that_is_refused_changes_nothing(launch, path, fault, said):
    nginx = launch(**parts(path))
    nginx.expected.append(said)
    changed = parts(path, 'policy="24/day"')
    assert not nginx.reload(http=changed["http"] + fault, server=changed["server"])
    assert allowed(opened(path), "b") == 6 and count(nginx.volley("/?k=a", 9)) == 6


def test_a_reload_leaves_alone_what_another_program_has_changed(launch, path):
    nginx = launch(**parts(path))
    with opened(path) as table:
        table.set_policy(0, "3/day")
        assert nginx.reload()
        assert [
            level
            for level, _ in nginx.said(
                'zone "z" keeps to the table', "whose policy 0 another program has changed"
            )
        ] == ["warn"]
        assert count(nginx.volley("/?k=a", 9)) == 3


def test_a_test_of_the_configuration_changes_nothing(launch, path, tmp_path):
    def test(limit, more="capacity=1000"):
        return check(
            tmp_path / "test",
            config.text(modules=[MODULE], ports=[8080], **parts(path, limit, more=more)).replace(
                "error.log", "stderr"
            ),
        )

    # It makes no file.
    assert test('policy="6/day"')[0] == 0 and not path.exists()
    nginx = launch(**parts(path))
    assert count(nginx.volley("/?k=a", 4)) == 4
    before = faces.without_times(path)
    code, said = test('policy="6/day"')
    assert code == 0 and complaints(said) == [], said
    code, said = test('policy="8/day"')
    assert (
        code == 0
        and f'[warn] zone "z" has the policy "8/day", and the table in "{path}" has "6/day"' in said
    ), said
    assert test('policy="6/day"', "capacity=999")[0] == 1
    assert faces.without_times(path) == before
    assert count(nginx.volley("/?k=a", 9)) == 2


def test_a_zone_moves_between_nginx_own_memory_and_a_file(launch, path):
    own = {"http": 'tollbar_zone $arg_k zone=z:1m policy="6/day";', "server": parts(path)["server"]}
    nginx = launch(**own)
    assert count(nginx.volley("/?k=a", 4)) == 4
    assert nginx.reload(**parts(path)) and count(nginx.volley("/?k=a", 9)) == 6
    assert nginx.reload(**own) and count(nginx.volley("/?k=a", 2)) == 2
    assert nginx.reload(**parts(path)) and count(nginx.volley("/?k=a", 9)) == 0


def test_a_new_binary_shares_the_file_with_the_old_one(launch, path):
    nginx = launch(**parts(path), workers=2, daemon=True)
    assert count(nginx.volley("/?k=a", 4)) == 4
    old, new = nginx.exchange_binary()
    # Workers of both binaries answer.
    assert count(nginx.volley("/?k=b", 20)) == 6
    os.kill(old, signal.SIGQUIT)
    wait_until(lambda: not alive(old), "the old master is gone")
    assert nginx.master() == new
    assert count(nginx.volley("/?k=a", 9)) == 2 and allowed(opened(path), "b") == 0


def test_a_new_binary_with_another_policy_does_not_start(launch, path):
    nginx = launch(**parts(path), daemon=True)
    nginx.expected += ["one must be equal", "exited with code 1"]
    nginx.write(**{**nginx.parts, **parts(path, 'policy="8/day"')})
    os.kill(nginx.master(), signal.SIGUSR2)
    wait_until(
        lambda: nginx.said('zone "z" has the policy "8/day"', "one must be equal"),
        "the new binary refuses",
    )
    wait_until(lambda: nginx.said("exited with code 1"), "the new binary has ended")
    assert count(nginx.volley("/?k=a", 9)) == 6 and allowed(opened(path), "b") == 6


def test_a_killed_worker_takes_nothing_with_it(launch, path):
    nginx = launch(**parts(path), workers=2)
    assert count(nginx.volley("/?k=a", 4)) == 4
    for pid in nginx.workers():
        nginx.kill_worker(pid)
    assert count(nginx.volley("/?k=a", 9)) == 2


def test_reloads_map_the_file_no_more_than_once(launch, path):
    # A mapping of nginx's own new file has no name.
    opened(path).close()
    nginx = launch(**parts(path))

    def mapped():
        """The bytes of the file that the master has mapped."""
        with open(f"/proc/{nginx.master()}/maps") as maps:
            ranges = [line.split()[0].split("-") for line in maps if str(path) in line]
        return sum(int(end, 16) - int(start, 16) for start, end in ranges)

    before = mapped()
    assert path.stat().st_size <= before < 2 * path.stat().st_size
    for n in range(7, 12):
        assert nginx.reload(**parts(path, f'policy="{n}/day"'))
    assert mapped() == before


def test_one_address_is_one_key_in_nginx_and_in_other_programs(launch, path):
    proxy = "set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For;"
    own = parts(path, 'policy="1/day"', key="$tollbar_client")
    nginx = launch(http=proxy + own["http"], server=own["server"])
    key = faces.tollbar().address_key

    def ask(address):
        return nginx.get("/", headers=[f"X-Forwarded-For: {address}"]).status

    with opened(path, "1/day") as table:
        for mine, theirs in [
            ("192.0.2.1", "::ffff:192.0.2.1"),
            ("2001:db8:0:1::1", "2001:db8:0:1::2"),
            ("64:ff9b::192.0.2.9", "192.0.2.9"),
        ]:
            assert ask(mine) == 200 and not table.allow(key(theirs)), mine
        for mine, theirs in [
            ("198.51.100.1", "198.51.100.1"),
            ("2001:db8:0:2::1", "2001:db8:0:2:ffff::"),
        ]:
            assert table.allow(key(theirs)) and ask(mine) == 429, mine
        assert statuses([nginx.get("/")]) == [200] and not table.allow(key("127.0.0.1"))


def test_a_file_that_was_removed_and_made_anew_is_taken_by_a_reload(launch, path):
    nginx = launch(**parts(path))
    assert count(nginx.volley("/?k=a", 4)) == 4
    path.unlink()
    with opened(path) as table:
        # Until then nginx has the removed one.
        assert allowed(table) == 6 and count(nginx.volley("/?k=a", 9)) == 2
        assert nginx.reload() and count(nginx.volley("/?k=a", 9)) == 0
        assert count(nginx.volley("/?k=b", 4)) == 4 and allowed(table, "b") == 2


def test_a_reload_changes_no_policy_of_a_file_that_was_made_anew(launch, path):
    """Another program has removed nginx's file and made another one: a start, not a change."""
    nginx = launch(**parts(path))
    nginx.expected.append("one must be equal")
    path.unlink()
    with opened(path, "9/h") as table:
        assert not nginx.reload(**parts(path, 'policy="24/day"'))
        assert allowed(table, tries=10) == 9 and count(nginx.volley("/?k=a", 9)) == 6


def test_the_group_may_write_a_file_of_that_mode(launch, path):
    own = parts(path, more="capacity=1000 mode=0660")
    nginx = launch(**own)
    assert path.stat().st_mode & 0o777 == 0o660
    assert count(nginx.volley("/?k=a", 4)) == 4
    assert nginx.reload(**parts(path, more="mode=0660")) and count(nginx.volley("/?k=a", 9)) == 2
    # Another policy, so nginx opens the file a second time, with any policies.
    assert nginx.reload(**parts(path, 'policy="8/day"', more="capacity=1000 mode=0660"))
    assert allowed(opened(path, "8/day", mode=0o660), "b") == 8


def test_connections_and_requests_share_a_file(launch_stream, echo, path, tmp_path):
    own = f"file={path} rate=1r/h capacity=1000"
    stream = (
        f"tollbar_zone $tollbar_client zone=s {own} on_full=deny hot_keys=64;"
        f"server {{ listen 127.0.0.1:@PORT1@; tollbar zone=s burst=5 nodelay; proxy_pass "
        f"127.0.0.1:{echo.port}; }}"
    )
    nginx = launch_stream(stream)
    with opened(path, "1/h burst 6", on_full="deny") as table:
        key = faces.tollbar().address_key("127.0.0.1")
        for wanted in (True, True):
            one = nginx.open()
            assert one.passed() == wanted
            one.close()
        assert allowed(table, key, 3) == 3
        for wanted in (True, False):
            one = nginx.open()
            assert one.passed() == wanted
            one.close()
        # A larger burst has three more.
        assert nginx.reload(stream=stream.replace("burst=5", "burst=8"))
        assert allowed(table, key) == 3


@pytest.mark.parametrize("burst, passes", [(5, 6), (2, 3)])
def test_connections_under_a_policy_that_is_not_the_first(launch_stream, echo, path, burst, passes):
    """The second limit has a smaller burst than the table's policy."""
    with opened(path, ["1/day", "1/h burst 6"]) as table:
        key = faces.tollbar().address_key("127.0.0.1")
        assert table.allow(key, policy=0)
        nginx = launch_stream(
            f"tollbar_zone $tollbar_client zone=s file={path} rate=1r/h;"
            f"tollbar_zone $tollbar_client zone=all:1m rate=1r/h;"
            f"server {{ listen unix:{path.parent}/socket; tollbar zone=s burst=5; return x; }}"
            f"server {{ listen 127.0.0.1:@PORT1@; tollbar zone=s burst={burst} nodelay;"
            f"tollbar zone=all burst=20 nodelay; proxy_pass 127.0.0.1:{echo.port}; }}"
        )
        found = []
        for _ in range(8):
            one = nginx.open()
            found.append(one.passed())
            one.close()
        assert found == [True] * passes + [False] * (8 - passes)
        assert table.peek(key, policy=0).remaining == 0
        assert table.peek(key, policy=1).remaining == 6 - passes
