"""Reloads of nginx with a rules file: keys keep their states, and a bad file changes nothing."""

import itertools
import threading

import pytest

from harness.client import statuses
from harness.config import CONTENT
from harness.rules import Ruled
from harness.server import end_all
from harness.tollbar import MODULE

RULES = "tollbar_rules rules.toml;"


@pytest.fixture
def launch(tmp_path):
    running = []

    def start(text, http=RULES, **parts):
        one = Ruled(tmp_path / f"nginx{len(running)}", modules=[MODULE], http=http,
                    server=parts.pop("server", f"location / {{ {CONTENT} }}"), **parts)
        running.append(one)
        one.rules(text)
        return one.start()

    yield start
    end_all(running)


@pytest.mark.parametrize("parts", [{}, {"daemon": True}, {"workers": 3}])
def test_keys_of_a_rule_whose_name_stays_keep_their_states(launch, parts):
    nginx = launch("[group.a]\nlimit = '5/h'\n", **parts)
    assert statuses(nginx.volley("/", 3)) == [200] * 3
    # Another limit, a rule before it, and a change of nothing: two were left of five.
    for text in ("[group.b]\nlimit = '9/h'\n[group.a]\nlimit = '6/h'\n", "[group.a]\nlimit = '5/h'\n", "[group.a]\nlimit = '5/h'\n"):
        nginx.rules(text)
        assert nginx.reload()
    assert statuses(nginx.each(*["/"] * 3)) == [200, 200, 429]
    nginx.rules("[group.other]\nlimit = '1/h'\n")
    assert nginx.reload()
    assert statuses(nginx.each("/", "/")) == [200, 429]


def test_a9_a_rule_with_another_word_begins_anew(launch):
    nginx = launch("[group.a]\nlimit = '2/h'\n", workers=3)
    assert statuses(nginx.each(*["/"] * 3)) == [200, 200, 429]
    # A raised rate alone gives a key that has none left its next permit in 72 seconds.
    nginx.rules("[group.a]\nlimit = '50/h'\n")
    assert nginx.reload() and nginx.get("/").status == 429
    nginx.rules("[group.a]\nlimit = '50/h'\nreset = 'incident 12'\n")
    assert nginx.reload()
    assert statuses(nginx.volley("/", 51)).count(200) == 50


def test_a_sliding_log_keeps_its_state_too(launch):
    nginx = launch("[group.a]\nlimit = '3/h algo sliding-log'\n")
    assert statuses(nginx.each("/", "/")) == [200] * 2
    nginx.rules("body = 'x'\n[group.a]\nlimit = '3/h algo sliding-log'\n")
    assert nginx.reload()
    assert statuses(nginx.each("/", "/")) == [200, 429] and nginx.get("/").body == b"x"


@pytest.mark.parametrize("http", ["tollbar_rules rules.toml room=30;", "tollbar_rules rules.toml keys=1000 room=30;"])
def test_with_room_any_algorithm_becomes_any_other(launch, http):
    """A key with two permits left has two under the next policy, and a fresh key all of it."""
    limits = {"5/h": 5, "8/h algo sliding-window segments 4": 8, "6/h algo sliding-log": 6, "9/h algo fixed-window anchor first": 9}
    order = ["5/h", "8/h algo sliding-window segments 4", "6/h algo sliding-log", "9/h algo fixed-window anchor first",
             "6/h algo sliding-log", "8/h algo sliding-window segments 4", "5/h"]  # fmt: skip

    def rule(limit):
        return f"[group.a]\nkey = 'header x-user'\nlimit = '{limit}'\n"

    def ask(nginx, user, times):
        return [nginx.get("/", headers=[f"X-User: {user}"]).status for _ in range(times)]

    nginx = launch(rule(order[0]), http=http, workers=2)
    for number, (now, then) in enumerate(itertools.pairwise(order)):
        most = limits[now] - 2
        assert ask(nginx, f"u{number}", most) == [200] * most, (now, then)
        nginx.rules(rule(then))
        assert nginx.reload()
        assert ask(nginx, f"u{number}", 4) == [200, 200, 429, 429], (now, then)
        assert ask(nginx, f"fresh{number}", limits[then] + 1).count(200) == limits[then], (now, then)


def test_without_room_a_log_in_place_of_a_bucket_begins_anew(launch):
    nginx = launch("[group.a]\nlimit = '3/h'\n")
    assert statuses(nginx.each(*["/"] * 4)) == [200, 200, 200, 429]
    nginx.rules("[group.a]\nlimit = '3/h algo sliding-log'\n")
    assert nginx.reload()
    assert statuses(nginx.each(*["/"] * 4)) == [200, 200, 200, 429]


def test_a_bad_file_changes_nothing(launch):
    nginx = launch("[group.a]\nlimit = '3/h'\n")
    nginx.expected += ["rules.toml"]
    assert nginx.get("/").status == 200
    nginx.rules("[group.a]\nlimit = '9/y'\n")
    assert not nginx.reload()
    [(level, said)] = nginx.said("rules.toml:3:")
    assert level == "emerg" and "expected" in said
    assert statuses(nginx.each(*["/"] * 3)) == [200, 200, 429]
    nginx.rules("[group.a]\nlimit = '4/h'\n")
    assert nginx.reload()
    assert nginx.get("/").status == 429


def test_a_good_file_of_a_bad_configuration_is_not_in_force(launch):
    nginx = launch("[group.a]\nlimit = '3/h'\n")
    nginx.expected += ["unknown directive"]
    nginx.rules("[group.a]\nlimit = '1/h'\nstatus = 420\n")
    assert not nginx.reload(server=f"location / {{ nonsense; {CONTENT} }}")
    assert statuses(nginx.each(*["/"] * 4)) == [200, 200, 200, 429]


def test_rules_that_go_and_come_back_begin_anew(launch):
    nginx = launch("[group.a]\nlimit = '1/h'\n")
    assert statuses(nginx.each("/", "/")) == [200, 429]
    assert nginx.reload(http="") and nginx.get("/").status == 200
    assert nginx.reload(http=RULES)
    assert statuses(nginx.each("/", "/")) == [200, 429]
    # Room for another number of keys is other memory.
    assert nginx.reload(http="tollbar_rules rules.toml keys=500;")
    assert statuses(nginx.each("/", "/")) == [200, 429]


def test_reloads_under_load_refuse_nothing_and_lose_no_state(launch):
    """Reloads of good and bad files in turn, beside requests: one key's quota is given out exactly
    once, and an open rule refuses nothing."""
    def text(number):
        # Names and numbers of rules change around the two that stay.
        extra = f"[group.extra{number}]\npath = '/extra'\nlimit = '{number + 1}/h'\n"
        quota = f"[group.quota]\npath = '/quota'\nlimit = '{'300/forever' if number % 3 != 2 else '300/never'}'\n"
        return extra + quota + f"[group.open]\npath = '/open'\nlimit = '{1_000_000 + number}/s'\n"

    nginx = launch(text(0), workers=2)
    nginx.expected += ["rules.toml"]
    admitted, wrong, stop, lock = [0], [], threading.Event(), threading.Lock()

    def ask():
        while not stop.is_set():
            quota, is_open = statuses(nginx.each("/quota", "/open"))
            with lock:
                admitted[0] += quota == 200
                if quota not in (200, 429) or is_open != 200:
                    wrong.append((quota, is_open))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        taken = []
        for number in range(1, 25):
            nginx.rules(text(number))
            taken.append(nginx.reload())
        nginx.wait_until(lambda: admitted[0] >= 300, "the quota is used up")
        taken.append(nginx.reload())
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert taken == [number % 3 != 2 for number in range(1, 25)] + [True]
    assert wrong == []
    assert admitted[0] == 300
