#!/usr/bin/env python3
"""Starts the shop by run.sh, as a reader does, and checks what each of its limits does. The last
line is `N passed, N failed`."""

import collections
import concurrent.futures
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
# Far more than a busy machine needs.
PATIENCE = 60


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


PORTS = []


def ask(path, method="GET", port=None, **headers):
    """The status, the header fields and the body of an answer, by default of the first instance. A
    header's name has `_` for `-`."""
    connection = http.client.HTTPConnection("127.0.0.1", port or PORTS[0], timeout=PATIENCE)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


def statuses(*args, times, **named):
    return dict(collections.Counter(ask(*args, **named)[0] for _ in range(times)))


def status(port=None):
    return json.loads(ask("/status", port=port)[2])


def wait_until(true, what):
    end = time.monotonic() + PATIENCE
    while True:
        try:
            if true():
                return
        except OSError:
            pass
        assert time.monotonic() < end, f"not within {PATIENCE} s: {what}"
        time.sleep(0.05)


def processes(directory):
    return subprocess.run(["pgrep", "-af", directory], capture_output=True, text=True, check=False).stdout.splitlines()


def refill():
    """Waits until the limit of all reports is full again, which takes two seconds."""
    time.sleep(3)


def a_rule_limits_each_client(_):
    # A busy machine may refill a few of the 20 permits a second meanwhile.
    began = time.monotonic()
    found = statuses("/shop/", times=80, X_Client="ann")
    refilled = 20 * (time.monotonic() - began) + 1
    assert 40 <= found[200] <= 40 + refilled and found[200] + found[429] == 80, found
    assert ask("/shop/", X_Client="bob")[0] == 200
    code, headers, body = ask("/shop/reports", X_Client="carol")
    assert (code, json.loads(body)) == (403, {"code": "no-key"})
    assert statuses("/shop/reports", times=7, X_Client="carol", X_Api_Key="k") == {200: 5, 429: 2}
    code, headers, _ = ask("/shop/reports", X_Client="carol", X_Api_Key="k")
    assert code == 429 and 1 <= int(headers["Retry-After"]) <= 12


def the_page_counts_for_no_limit(_):
    assert statuses("/", times=100) == {200: 100}


def wrong_passwords_ban_a_client_in_both_instances(_):
    wrong = statuses("/shop/login", "POST", times=5, X_Client="guesser")
    assert wrong == {401: 5}, wrong
    code, headers, body = ask("/shop/login", "POST", port=PORTS[1], X_Client="guesser")
    assert (code, body) == (429, "banned\n") and 3000 < int(headers["Retry-After"]) <= 3600
    assert ask("/shop/", port=PORTS[1], X_Client="dora")[0] == 200


def orders_wait_and_are_delivered(_):
    # On a busy machine 60 requests may take the three seconds in which all orders leave. Then they
    # come again.
    for _ in range(10):
        before, began = status(), time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            codes = collections.Counter(code for code, *_ in pool.map(lambda n: ask("/shop/orders", "POST", X_Client=f"buyer{n}"), range(60)))
        # The queue has 30 places and one order is on its way. Ten more leave each second.
        left = 10 * (time.monotonic() - began) + 1
        assert 31 <= codes[202] <= 31 + left and codes[202] + codes[429] == 60, codes
        wait_until(lambda: status()["orders_delivered"] == before["orders_delivered"] + codes[202], "all orders are delivered")
        if codes[429]:
            break
    assert codes[429], codes


def refused_mails_are_sent_later_in_order_through_kills(home):
    """S51: 60 mails at once: some are sent, the others wait in the stream. The worker is killed four
    times meanwhile. Each mail is sent, those of the stream in order, and one may come twice for
    each kill."""
    def sent():
        return [line.split(" ") for line in (home / "outbox").read_text().splitlines()]

    answers = {n: ask(f"/shop/mails?text={n}", "POST", port=PORTS[n % 2], X_Client=f"writer{n}")[0] for n in range(60)}
    waiting = [n for n, code in answers.items() if code == 202]
    assert len(waiting) >= 20 and set(answers.values()) <= {200, 202}, collections.Counter(answers.values())
    for kill in range(1, 5):
        wait_until(lambda: len(sent()) >= 60 - len(waiting) * (5 - kill) // 5, "the worker goes on")
        os.kill(int((home / "worker.pid").read_text()), signal.SIGKILL)
    wait_until(lambda: {int(mail) for *_, mail in sent()} == set(answers), "all mails are sent")
    by_worker = [int(mail) for _, by, mail in sent() if by == "worker"]
    # A mail that was sent twice comes twice in a row.
    once = [mail for n, mail in enumerate(by_worker) if n == 0 or by_worker[n - 1] != mail]
    assert once == waiting and len(by_worker) - len(once) <= 4, by_worker
    # The limit holds for instances and workers together, dead ones too: 5 at once, and 10 a second.
    # A process may be held up between its permit and its mail, so a mail may be late by that.
    times = sorted(int(at) for at, *_ in sent())
    assert len(times) <= 5 + 10 * ((times[-1] - times[0]) / 1000 + 1), times
    print(f"  {len(waiting)} mails waited, 4 kills, {len(by_worker) - len(once)} sent twice")
    wait_until(lambda: waiting_in_redis(home) == "0", "the stream is empty")


def waiting_in_redis(home):
    return subprocess.run(["redis-cli", "-s", home / "redis.sock", "XLEN", "shop:mails"], capture_output=True, text=True, check=True).stdout.strip()


def the_instances_share_a_limit_through_redis(_):
    def hammer(thread):
        return collections.Counter(ask("/shop/reports", port=PORTS[thread % 2], X_Client=f"c{thread}-{n}", X_Api_Key=f"k{thread}-{n}")[0] for n in range(100))

    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        codes = sum(pool.map(hammer, range(8)), collections.Counter())
    bound = 100 + 50 * (time.monotonic() - began)
    print(f"  {codes[200]} admitted, at most {bound:.0f}; {codes[429]} refused")
    assert 10 <= codes[200] <= bound and codes[200] + codes[429] == 800
    refill()


def without_redis_the_shop_goes_on(home):
    os.kill(int((home / "redis.pid").read_text()), signal.SIGKILL)
    wait_until(lambda: status()["store"] == "open", "the circuit opens")
    wait_until(lambda: ask("/shop/reports", X_Api_Key=str(time.monotonic()))[0] == 200, "an instance gives reports by itself")
    assert status()["without_store"] > 0
    assert statuses("/shop/", times=3, X_Client="eve") == {200: 3}


def a_changed_file_is_in_force_and_a_fault_is_not(home):
    rules = home / "limits.toml"
    text = rules.read_text()
    began = time.monotonic()
    assert statuses("/shop/reports", times=5, X_Client="g", X_Api_Key="used up") == {200: 5}
    rules.write_text(text.replace('"5/min"', '"5/mni"'))
    wait_until(lambda: '"5/mni"' in status()["rules_fault"] or "mni" in status()["rules_fault"], "the fault is shown")
    assert statuses("/shop/reports", times=2, X_Client="f", X_Api_Key="fresh") == {200: 2}
    rules.write_text(text.replace('"5/min"', '"1/h"'))
    wait_until(lambda: status()["rules_fault"] == "", "the file is in force")
    assert statuses("/shop/reports", times=3, X_Client="f", X_Api_Key="another") == {200: 1, 429: 2}
    # The key has used its 5 permits under the former limit, and keeps that over both reloads. A
    # permit came back each twelve seconds.
    code = ask("/shop/reports", X_Client="g", X_Api_Key="used up")[0]
    assert code == 429 or time.monotonic() - began >= 12, code


def each_instance_shows_both(_):
    for port, other in (PORTS, PORTS[::-1]):
        found = json.loads(ask("/other", port=port)[2])
        assert found["address"] == f"127.0.0.1:{other}" and 0 <= found["reports_left"] <= found["reports_most"] == 100, found


def metrics_count(_):
    def banned():
        lines = ask("/metrics")[2].splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line and line[0] != "#"}

    found = banned()
    assert any("bans" in name for name in found) and any("orders" in name for name in found), list(found)[:9]
    assert all("guesser" not in name for name in found)


def a_browser_sees_it(_):
    browser = shutil.which("chromium")
    assert browser, "chromium is missing; expected in PATH (Debian: chromium)"
    with tempfile.TemporaryDirectory() as profile:
        page = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--virtual-time-budget=3000", "--enable-logging=stderr",
             "--dump-dom", f"http://127.0.0.1:{PORTS[0]}/"], capture_output=True, text=True, timeout=PATIENCE, check=True)
    served = status()["served"]
    assert f'<span id="served">{served}</span>' in page.stdout, page.stdout[-1500:]
    assert '<span id="store">open</span>' in page.stdout
    # Each of the four limits has the picture of both instances, and Redis has been killed.
    assert page.stdout.count("<svg") == 8 and page.stdout.count(">Redis is away<") == 2, page.stdout[-3000:]
    assert "CONSOLE" not in page.stderr, page.stderr[-1500:]


CHECKS = [
    each_instance_shows_both, the_page_counts_for_no_limit, a_rule_limits_each_client, wrong_passwords_ban_a_client_in_both_instances, orders_wait_and_are_delivered,
    refused_mails_are_sent_later_in_order_through_kills,
    the_instances_share_a_limit_through_redis, a_changed_file_is_in_force_and_a_fault_is_not, without_redis_the_shop_goes_on, metrics_count,
    a_browser_sees_it,
]


def start(home):
    """Starts the shop on two ports that are free now, and on two others if another program takes
    one of them first."""
    def taken():
        return "address already in use" in (home / "log").read_text()

    for _ in range(5):
        PORTS[:] = [free_port(), free_port()]
        with open(home / "log", "w", encoding="utf-8") as log:
            run = subprocess.Popen([HERE / "run.sh", *map(str, PORTS)], env={**os.environ, "SHOP": str(home)}, stdout=log, stderr=log, start_new_session=True)
        try:
            wait_until(lambda: run.poll() is not None or taken() or all(ask("/", port=port)[0] == 200 for port in PORTS), "both instances answer")
        except AssertionError:
            os.killpg(run.pid, signal.SIGTERM)
            raise
        if not taken():
            return run
        run.terminate()
        run.wait(PATIENCE)
    raise AssertionError("other programs took the ports five times")


def main():
    failed = 0
    with tempfile.TemporaryDirectory(prefix="shop-") as directory:
        home = pathlib.Path(directory)
        run = start(home)
        try:
            wait_until(lambda: run.poll() is not None or all(status(port)["store"] == "closed" for port in PORTS), "Redis answers both")
            # A store that has just started may have forgotten permits, so its buckets begin empty.
            refill()
            assert run.poll() is None, (home / "log").read_text()
            for check in CHECKS:
                try:
                    check(home)
                except Exception as problem:  # A failed check must not hide the others.
                    failed += 1
                    line = problem.__traceback__.tb_next.tb_lineno
                    print(f"FAIL {check.__name__}, line {line}: {problem!r}"[:2000])
        finally:
            # As a service manager ends it: the script ends the processes that it has started.
            if run.poll() is None:
                run.terminate()
            run.wait(PATIENCE)
            try:
                wait_until(lambda: not processes(directory), "all processes of the shop have ended")
            except AssertionError as problem:
                failed += 1
                print("FAIL", problem, processes(directory))
                os.killpg(run.pid, signal.SIGKILL)
            if failed:
                print((home / "log").read_text()[-2000:])
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
