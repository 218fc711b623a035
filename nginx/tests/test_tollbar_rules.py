"""tollbar_rules: which requests a rules file refuses, and what they are answered."""

import os
import signal

import pytest

from harness import config, places, rules
from harness.client import count, statuses
from harness.config import CONTENT
from harness.edges import again_if_late, away_from_edges
from harness.rules import Ruled
from harness.server import check, end_all
from harness.tollbar import MODULE, raw_headers

SHOW = 'add_header X-Decision "$tollbar_rules_status $tollbar_rule" always; add_header X-Why "$tollbar_rules_reason" always;'
REALIP = "set_real_ip_from 127.0.0.1; real_ip_header X-Real-IP;"


@pytest.fixture
def launch(tmp_path):
    running = []

    def start(text, http="", server=f"location / {{ {SHOW} {CONTENT} }}", directive="tollbar_rules rules.toml;", **parts):
        one = Ruled(tmp_path / f"nginx{len(running)}", modules=[MODULE], http=f"{directive} {http}", server=server, **parts)
        running.append(one)
        one.rules(text)
        return one.start()

    yield start
    end_all(running)


def decisions(answers):
    return [(answer.status, answer.headers.get("x-decision", "").strip()) for answer in answers]


def test_a_refusal_has_the_status_the_body_and_the_headers_of_its_rule(launch):
    nginx = launch("[group.a]\nlimit = '2/h'\nstatus = 420\nbody = 'slow \u00fc'\n", http="tollbar_headers both;")
    assert decisions(nginx.each("/", "/")) == [(200, "PASSED a")] * 2
    answer = nginx.get("/")
    assert (answer.status, answer.body.decode(), answer.headers["x-decision"]) == (420, "slow \u00fc", "REJECTED a")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    after = int(answer.headers["retry-after"])
    assert 1700 < after <= 1800
    assert answer.headers["x-ratelimit-limit"] == "2" and answer.headers["x-ratelimit-remaining"] == "0"
    assert answer.headers["ratelimit-policy"] == '"a";q=2;w=3600'
    assert answer.headers["ratelimit"] == f'"a";r=0;t={after}'
    [_, *head] = raw_headers(nginx, "/", method="HEAD")
    assert any(line.startswith(b"Retry-After: ") for line in head)
    assert answer.headers["x-why"] == "over the rate"
    assert nginx.said('limiting requests, over the rate, by rule "a", 2 per 3600s')


def test_the_log_names_the_limit_that_refused(launch):
    nginx = launch("""
        [route.several]
        path = '/several'
        limit = ['100/h', '1/90000000ms', '50/day']
        [route.once]
        path = '/once'
        limit = '1/forever'
    """)
    nginx.each("/several", "/several", "/once", "/once")
    assert nginx.said('by rule "several", 1 per 90000s')
    assert nginx.said('by rule "once", 1 for ever')


def test_an_admission_has_headers_and_a_policy_of_its_key(launch):
    nginx = launch("[group.a]\nkey = 'header X-Plan'\nlimit = '2/h'\nkeys = { gold = '7/min burst 9' }\n", http="tollbar_headers draft;")
    gold = nginx.get("/", headers=["X-Plan: gold"])
    assert (gold.headers["ratelimit-policy"], gold.headers["ratelimit"]) == ('"a";q=7;w=60', '"a";r=8')
    tin = nginx.get("/", headers=["X-Plan: tin"])
    assert (tin.headers["ratelimit-policy"], tin.headers["ratelimit"]) == ('"a";q=2;w=3600', '"a";r=1')


def test_a_calendar_is_one_count_of_all_workers_over_a_reload(launch):
    text = "[group.a]\nlimit = ['4/year zone Asia/Tokyo', '50/s']\n"
    away_from_edges()
    nginx = launch(text, workers=2)
    assert count(nginx.volley("/", 12)) == 4
    nginx.reload()
    refused = nginx.get("/")
    assert (refused.status, refused.headers["x-decision"]) == (429, "REJECTED a")
    assert 0 < int(refused.headers["retry-after"]) <= 366 * 86_400


def test_a_class_is_a_word_of_the_server(launch):
    text = "[group.a]\nkey = 'all'\nclass = 'field plan'\nlimit = '6/h reserve low 4 high 0'\n"
    nginx = launch(text, http="map $http_x_token $plan { secret high; default low; } tollbar_rules_field plan $plan;")
    # A header is no word of the server.
    assert count(nginx.volley("/", 9, headers=["plan: high"])) == 2
    assert count(nginx.volley("/", 9, headers=["X-Token: secret"])) == 4


def test_no_body_leaves_the_page_to_nginx(launch):
    nginx = launch("[group.a]\nlimit = '1/h'\n", server=f"error_page 429 /busy; location / {{ {CONTENT} }} location /busy {{ {SHOW} {CONTENT} }}")
    assert nginx.get("/").status == 200
    answer = nginx.get("/")
    # The redirect to /busy is the same request, so it is decided once.
    assert answer.status == 429 and answer.body[:3] == b"GIF" and answer.headers["x-decision"] == "REJECTED a"


KEYED = """
[route.key]
path = '/key'
key = 'header X-Api-Key'
limit = '1/h'
missing = { status = 401, body = 'no key' }
[route.open]
path = '/open'
key = 'header X-Api-Key'
limit = '1/h'
missing = 'allow'
[route.cookie]
path = '/cookie'
key = 'cookie session'
limit = '1/h'
[route.item]
path = '/item/:id'
key = 'path id'
limit = '1/h'
[route.account]
path = '/account'
method = 'POST'
key = 'field account'
limit = '1/h'
[route.heavy]
path = '/heavy'
limit = '5/h'
cost = 3
[shadow.strict]
of = 'heavy'
limit = '3/h'
"""


def test_keys_costs_and_shadows(launch):
    nginx = launch(KEYED, http="tollbar_rules_field account $http_x_account;")
    for path, headers, expected in [
        ("/key", [], (401, "REJECTED key")),
        ("/key", ["X-Api-Key: a"], (200, "PASSED key")),
        ("/key", ["x-api-key: a"], (429, "REJECTED key")),
        ("/key", ["X-Api-Key: b"], (200, "PASSED key")),
        ("/open", [], (200, "PASSED open")),
        ("/open", [], (200, "PASSED open")),
        ("/cookie", ["Cookie: x=y; session=1"], (200, "PASSED cookie")),
        ("/cookie", ["Cookie: x=y", "Cookie: session=1"], (429, "REJECTED cookie")),
        ("/item/7?x", [], (200, "PASSED item")),
        ("//item/./7/", [], (429, "REJECTED item")),
        ("/item/8", [], (200, "PASSED item")),
        # A body of this method is not allowed for a picture, and the rules decide before that.
        ("/account", ["X-Account: ann"], (200, "PASSED")),
        ("/heavy", [], (200, "PASSED heavy")),
        ("/heavy", [], (429, "REJECTED heavy")),
        ("/none", [], (200, "PASSED")),
    ]:
        assert decisions([nginx.get(path, headers=headers)]) == [expected], (path, headers)
    post = [nginx.get("/account", method="POST", headers=["X-Account: ann", "Content-Length: 0"]) for _ in range(2)]
    assert decisions(post) == [(405, "PASSED account"), (429, "REJECTED account")]
    assert nginx.get("/key").body == b"no key"


def test_a_client_cannot_send_a_word_of_the_server(launch):
    """nginx before 1.21.1 accepts a header whose name begins with a colon, if
    `ignore_invalid_headers` is off. Later versions answer 400."""
    nginx = launch("[group.a]\nkey = 'field account'\nlimit = '1/h'\n[group.b]\nlimit = '9/h'\n", http="ignore_invalid_headers off;",
                   directive="tollbar_rules rules.toml; tollbar_rules_field account $arg_account;")
    assert [nginx.get("/", headers=[line]).status in (400, 403) for line in (":account: ann", ":address: 192.0.2.1", ":path: /x")] == [True] * 3
    assert decisions(nginx.each("/?account=a", "/?account=a")) == [(200, "PASSED a"), (429, "REJECTED a")]


def test_the_client_behind_proxies(launch):
    text = "trusted-proxies = ['127.0.0.0/8', '10.0.0.0/8']\n[group.a]\nlimit = '1/h'\nexempt-networks = ['192.0.2.0/24']\n"
    nginx = launch(text)

    def ask(forwarded):
        return nginx.get("/", headers=[f"X-Forwarded-For: {forwarded}"]).status

    assert [ask("198.51.100.1"), ask("7.7.7.7, 198.51.100.1"), ask("198.51.100.1, 10.1.1.1"), ask("198.51.100.2")] == [200, 429, 429, 200]
    assert [ask("192.0.2.1")] * 2 == [200] * 2


def test_the_client_that_realip_finds(launch):
    nginx = launch("[group.a]\nlimit = '1/h'\n", http=REALIP)
    asked = [nginx.get("/", headers=[f"X-Real-IP: {address}"]) for address in ("198.51.100.1", "198.51.100.1", "2001:db8::1", "2001:db8::2")]
    assert statuses(asked) == [200, 429, 200, 429]


def test_levels(launch):
    nginx = launch("[group.a]\nlimit = '1/h'\n", server=f"""
        location / {{ {SHOW} {CONTENT} }}
        location /off {{ tollbar_rules off; {SHOW} {CONTENT} }}
        location /dry {{ tollbar_dry_run on; {SHOW} {CONTENT} }}
        location /same {{ tollbar_rules rules.toml; {SHOW} {CONTENT} }}
        location /internal {{ {SHOW} try_files /none /off; }}""")
    # Two directives with one file have one set of rules.
    assert decisions(nginx.each("/", "/same", "/off", "/dry", "/internal")) == [
        (200, "PASSED a"), (429, "REJECTED a"), (200, ""), (200, "REJECTED_DRY_RUN a"), (429, "REJECTED a")]
    assert nginx.said('limiting requests, dry run, over the rate, by rule "a"')


def test_a_request_of_many_headers(launch):
    nginx = launch("[group.a]\nkey = 'header X-Last'\nlimit = '1/h'\n")
    many = [f"X-{n}: {n}" for n in range(90)]
    assert statuses([nginx.get("/", headers=[*many, "X-Last: 1"]) for _ in range(2)]) == [200, 429]


@again_if_late(0.1)
def test_rules_beside_zones(launch):
    """Rules come first: what they refuse is not charged to a zone, and what a zone delays has
    passed the rules once."""
    nginx = launch("[group.a]\nlimit = '3/h'\n", http="tollbar_zone $arg_k zone=z:1m rate=10r/s;",
                   server=f"tollbar zone=z burst=5; location / {{ {SHOW} {CONTENT} }}")
    answers = nginx.volley("/?k=1", 5)
    assert sorted(statuses(answers)) == [200, 200, 200, 429, 429]
    assert len(nginx.said("delaying request")) == 2


def test_workers_share_the_rules_also_after_one_was_killed(launch):
    nginx = launch("[group.a]\nlimit = '40/h'\n", workers=2)
    before = statuses(nginx.volley("/", 20))
    for worker in nginx.workers():
        nginx.kill_worker(worker)
    assert before == [200] * 20 and statuses(nginx.volley("/", 30)).count(200) == 20


def test_one_process_alone(launch):
    nginx = launch("[group.a]\nlimit = '1/h'\n", main="master_process off;")
    assert statuses(nginx.each("/", "/")) == [200, 429]


def faults(tmp_path, text, directive="tollbar_rules rules.toml;"):
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "rules.toml").write_text(text)
    code, said = check(tmp_path, config.text(modules=[MODULE], ports=[8080], http=directive, server=f"location / {{ {CONTENT} }}"))
    assert code == 1
    return [line for line in said.splitlines() if "[emerg]" in line and not line.startswith("nginx: ")]


def test_the_test_of_a_configuration_names_every_fault_of_the_file(tmp_path):
    said = faults(tmp_path, "version = 1\n[group.a]\nlimit = '5/y'\n[group.b]\nlimits = '5/h'\n")
    where = tmp_path / "rules.toml"
    # The unknown field, and the limit that is missing because of it.
    assert len(said) == 3 and all(" in " in line and "nginx.conf:" in line for line in said)
    assert said[0].startswith(f'[emerg] {where}:3:') and "5/y" in said[0] and "expected" in said[0]
    assert any(f"{where}:5:1" in line and "limits" in line for line in said)


def test_a_file_that_is_not_there(tmp_path):
    [said] = faults(tmp_path, "", "tollbar_rules none.toml;")
    assert said.startswith(f"[emerg] {tmp_path}/none.toml: No such file")


@pytest.mark.parametrize("library, said", [
    ("/nowhere/libtollbar-rules.so", "cannot load libtollbar-rules: /nowhere/libtollbar-rules.so: cannot open shared object file"),
    ("libm.so.6", "cannot use libm.so.6: it has no tollbar_rules_check, it must be libtollbar-rules of the module's version"),
])
def test_a_library_that_is_not_there(tmp_path, monkeypatch, library, said):
    monkeypatch.setenv("TOLLBAR_RULES_LIBRARY", library)
    [line] = faults(tmp_path, "version = 1\n[group.a]\nlimit = '5/h'\n")
    assert said in line and "nginx.conf:" in line


def test_without_the_directive_the_library_is_not_needed(launch, monkeypatch):
    monkeypatch.setenv("TOLLBAR_RULES_LIBRARY", "/nowhere/libtollbar-rules.so")
    nginx = launch("", directive="")
    assert nginx.get("/").status == 200
    maps = "".join((places.Path(f"/proc/{pid}/maps").read_text() for pid in nginx.workers()))
    assert "ngx_http_tollbar_module" in maps and "tollbar-rules" not in maps


def test_the_examples_file_is_a_valid_configuration(tmp_path):
    code, said = check(tmp_path, config.text(modules=[MODULE], ports=[8080], http=f"tollbar_rules {rules.SITE}; tollbar_rules_field account $remote_user;",
                                             server=f"location / {{ {CONTENT} }}"))
    assert code == 0 and "[warn]" not in said, said


def test_the_master_stops(launch):
    nginx = launch("[group.a]\nlimit = '1/h'\n")
    os.kill(nginx.master(), signal.SIGQUIT)
    assert nginx.process.wait(60) == 0
