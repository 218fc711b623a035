#!/usr/bin/env python3
"""look.py TOLLBAR WORK [SHOTS|- [LOG]]: opens reports in headless Chromium in both colour schemes,
375 and 1,440 pixels wide. It fails on script errors, on network requests, on faults that axe-core
calls serious or critical, on elements wider than the screen, and on numbers that differ from those
of --json. With SHOTS it writes screenshots into that directory. A LOG is one more log to report
on."""
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

tollbar, work = sys.argv[1], pathlib.Path(sys.argv[2])
shots = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 and sys.argv[3] != "-" else None
passed, failed = 0, 0


def check(name, found, expected):
    global passed, failed
    if found == expected:
        passed += 1
    else:
        failed += 1
        print(f"FAILED: {name}\n--- expected\n{expected}\n--- got\n{found}")


def write_log(path):
    """Writes a log of some hours of a small site: 5 robots that request often, 200 people who load
    pages, and lines up to 30 s late."""
    lines, seed = [], 20150517

    def random(below):
        nonlocal seed
        seed = seed * 16807 % 2147483647
        return seed % below

    for n in range(8000):
        second = n * 3 + random(3)
        robot = random(3) == 0
        client = f"198.51.100.{random(5)}" if robot else f"203.0.113.{random(200)}"
        for part in range(1 if robot else 1 + random(6)):
            at = max(0, second + part // 3 - (random(30) if random(10) == 0 else 0))
            lines.append((second, f'{client} - - [17/May/2015:{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02} +0000] "GET /page/{part}?n={n} HTTP/1.1" 200 9 "-" "{"a bot" if robot else "Mozilla"}"\n'))
    path.write_text("".join(line for _, line in lines))


def write_hourly(path):
    """Writes a log that has one minute of each hour of 30 hours, with 40 requests."""
    lines = []
    for n in range(1200):
        hour, second = divmod(n, 40)
        at = f"{17 + hour // 24}/May/2015:{hour % 24:02}:05:{second:02} +0000"
        lines.append(f'192.0.2.{n % 7} - - [{at}] "GET / HTTP/1.1" 200 9\n')
    path.write_text("".join(lines))


def write_hostile(path):
    at = b" - - [17/May/2015:10:05:03 +0000] "
    lines = [
        b"<script>window.bad=1</script>" + at + b'"GET /<img/src=x/onerror=window.bad=2> HTTP/1.1" 200 1 "-" "<b>bot"',
        b"'\\x22&<!--" + at + b'"GET /</script><script>window.bad=3</script> HTTP/1.1" 200 1',
        b"\xc2\x9b2J\xff" + at + b'"GET /\x1b]0;x\x07\x00 HTTP/1.1" 200 1',
        b"192.0.2.9" + at + b'"GET /' + b"y" * 1_000_000 + b' HTTP/1.1" 200 1',
        b"z" * 1_000_000 + at + b'"GET / HTTP/1.1" 200 1',
        "2001:db8::1\u202e".encode() + at + '"GET /é\u2028 HTTP/1.1" 200 1'.encode(),
    ]
    path.write_bytes(b"\n".join(lines) + b"\n")


def report(name, log, *policies):
    page = work / f"{name}.html"
    asked = [argument for policy in policies for argument in ("--policy", policy)]
    out = subprocess.run([tollbar, "replay", *asked, "--json", "--html", page, log], capture_output=True, check=True, text=True)
    return page, json.loads(out.stdout)


def whole(text):
    return int(text.replace(",", ""))


def shown(cells):
    """The counts of a row of outcomes: its name, clients refused, requests refused, the most."""
    counts = [whole(re.match(r"[\d,]+", cell).group()) for cell in cells[1:4]]
    return (cells[0].splitlines()[0], *counts)


def same_numbers(name, page, data):
    """Compares the numbers on the page with those of --json."""
    for where, key in (("tried", "policies"), ("bursts", "bursts"), ("algorithms", "algorithms")):
        rows = page.locator(f"#{where} tbody tr")
        check(f"{name}: rows of {where}", rows.count(), len(data[key]))
        for n, one in enumerate(data[key]):
            cells = rows.nth(n).locator("th, td").all_inner_texts()
            check(f"{name}: {where} {one['policy']}", shown(cells), (one["policy"], one["keys_denied"], one["denied"], one["most_in_period"]))
    first = data["policies"][0]
    clients = page.locator("#clients tbody tr")
    check(f"{name}: clients", clients.count(), len(data["clients"]))
    proposed = page.locator("#answer strong")
    limit = parts(data, proposed.inner_text()) if proposed.count() else None
    for n, client in enumerate(data["clients"]):
        key = clients.nth(n).locator("th").evaluate("th => th.firstChild.textContent")
        cells = clients.nth(n).locator("td").all_text_contents()
        paths = clients.nth(n).locator(".path").all_text_contents()
        check(f"{name}: client {n}", (key, whole(cells[0]), whole(cells[1].split(" ")[0]), [path.split(" × ", 1)[1] for path in paths]),
              (client["key"], client["requests"], client["denied"], [path["path"] for path in client["paths"]]))
        if limit:
            passes = client["bursts_needed"][limit[0]] <= data["limits"]["bursts"][limit[1]]
            check(f"{name}: client {n} with the proposal", cells[2], "all pass" if passes else "some refused")
        check(f"{name}: the strip of client {n}", clients.nth(n).locator("rect").count(), len(client["strip"]))
    total = page.locator("#time-help").inner_text()
    check(f"{name}: over time", [whole(n) for n in re.findall(r"([\d,]+) (?:admitted|refused)", total)], [first["allowed"], first["denied"]])


def parts(data, policy):
    """The places of a policy's rate and burst in the grid."""
    rate, burst = policy.split(" burst ")
    return [one["text"] for one in data["limits"]["rates"]].index(rate), data["limits"]["bursts"].index(int(burst))


# The shares of the slider, in percent.
SHARES = [0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10]


def smallest(data, of, most):
    """The limit that the page must propose, computed from --json."""
    limits, best = data["limits"], None
    for rate, row in zip(limits["rates"], limits[f"denied_{of}"]):
        fit = [burst for burst, denied in zip(limits["bursts"], row) if 100 * denied / limits[of] <= most]
        # A burst comes back within five minutes.
        if fit and fit[0] / rate["per_second"] <= 300:
            # The permits that come back before a minute is over.
            minute = fit[0] + max(0, math.ceil(60 * rate["per_second"] - 1e-9) - 1)
            refused = row[limits["bursts"].index(fit[0])]
            if best is None or (minute, refused) <= best[0]:
                best = ((minute, refused), f"{rate['text']} burst {fit[0]}")
    return best[1] if best else None


def sentence(data, policy):
    """What the page must say of a policy, from --json."""
    limits, (r, b) = data["limits"], parts(data, policy)
    clients, robots, requests = (limits[f"denied_{what}"][r][b] for what in ("clients", "robots", "requests"))
    # If the limit refuses clients and no robot, the sentence has the number of the log's robots. If it
    # refuses robots and others, it has the number of the refused robots.
    among = limits["robots"] if clients and not robots else robots if robots < clients else None
    return [n for n in (clients, limits["clients"], among, requests, limits["requests"]) if n not in (None, 0)]


def slider(name, page, data):
    """Moves the slider by keyboard, and compares what it proposes with --json."""
    for of in ("clients", "requests"):
        page.check(f"#wish input[value={of}]")
        page.focus("#most")
        page.keyboard.press("Home")
        before = None
        for most in SHARES:
            # The slider stops at shares that allow different numbers.
            allowed = math.floor(most * data["limits"][of] / 100 + 1e-9)
            if allowed == before:
                continue
            before = allowed
            expected = smallest(data, of, most)
            found = page.locator("#answer strong").inner_text() if page.locator("#answer strong").count() else None
            check(f"{name}: smallest limit for {most} % of the {of}", found, expected)
            if expected:
                text = page.locator("#answer").inner_text().removeprefix(expected)
                counts = [whole(n) for n in re.findall(r"[\d,]*\d(?![\d.]*\s%|\.)", re.sub(r"\([^)]*\)", "", text))]
                check(f"{name}: {expected}", counts, sentence(data, expected))
            page.keyboard.press("ArrowRight")


def is_truth(name, data, log):
    """Replays some limits of the grid one by one, and compares the denials with the grid's."""
    limits = data["limits"]
    tried = [(r, b) for r in (2, 6, 10, 13) for b in (0, 4, 9)]
    policies = [f"{limits['rates'][r]['text']} burst {limits['bursts'][b]}" for r, b in tried]
    asked = [argument for policy in policies for argument in ("--policy", policy)]
    out = subprocess.run([tollbar, "replay", *asked, "--json", log], capture_output=True, check=True, text=True)
    for (r, b), policy in zip(tried, json.loads(out.stdout)["policies"]):
        check(f"{name}: {policy['policy']} replayed", (limits["denied_requests"][r][b], limits["denied_clients"][r][b]), (policy["denied"], policy["keys_denied"]))


def says_what_to_know(name, page, data):
    """Compares the page's words about the log's order, and about the limit to set, with --json."""
    log, first = data["log"], data["policies"][0]
    notes = page.locator("#notes").inner_text()
    if log["out_of_order"]:
        # Somebody who reads only the first section learns of it, too.
        doubts = page.locator("#doubts").inner_text()
        check(f"{name}: the order beside the limit", "This log is out of order" in doubts, True)
        order = f"The log is out of order: {log['out_of_order']:,} of {log['lines']:,} lines are older than a line before them"
        check(f"{name}: the order of the log", order in notes, True)
        other = f"In the order of the file, {first['policy']} would refuse {log['denied_in_file_order']:,} requests instead of {first['denied']:,}"
        check(f"{name}: the effect of the order", other in notes, True)
    else:
        check(f"{name}: a log in order", "out of order" in notes, False)
    answer = page.locator("#answer").inner_text()
    if why := unsupported(log):
        # C4: a report of nothing recommends nothing.
        check(f"{name}: no limit", (answer, page.locator("#lines code").count()), (why, 0))
        return
    limit = page.locator("#answer strong").inner_text()
    lines = page.locator("#lines").inner_text()
    check(f"{name}: how to set the limit", f'limit = "{limit}"' in lines, True)
    # nginx counts the burst beyond the first request.
    rate, burst = limit.split(" burst ")
    rate = rate.replace("/min", "r/m") if "/min" in rate else rate.replace("/", "r/")
    check(f"{name}: the limit in nginx", f"rate={rate} burst={int(burst) - 1};" in lines, True)
    # The worst case is the sentence of the command.
    explained = subprocess.run([tollbar, "policy", "explain", limit], capture_output=True, check=True, text=True).stdout
    most = re.search(r"at most ([\d,]+) in any minute", page.locator("#means").inner_text()).group(1)
    check(f"{name}: the most in a minute, {most}", re.search(rf"\b{most}\b", explained) is not None, True)


def unsupported(log):
    """Why the page recommends no limit; None if it does."""
    if log["requests"] == 0:
        return "The log has no request that the replay could read, so it recommends no limit."
    if log["bad_lines"] > log["requests"]:
        return "More than half of the log's lines could not be read, so it recommends no limit."
    if log["first_ms"] == log["last_ms"]:
        return "All requests of the log have one time, so it recommends no limit."
    if log["requests"] < 100 or log["last_ms"] - log["first_ms"] < 600_000:
        return "The log is too short to recommend a limit: 30 requests within 29 seconds. Take at least 100 requests and ten minutes, better a week of ordinary days."
    return None


# For each chart the number of its shapes with a width and a height. A chart that was not drawn has
# none.
MARKS = """() => ["map", "time"].map((id) =>
  [...document.querySelectorAll(`#${id} svg :is(rect, circle, path)`)].filter((mark) => { const box = mark.getBoundingClientRect(); return box.width > 0 && box.height > 0; }).length)"""
# The width in pixels of the part of the clients' table that a reader sees only after scrolling to
# the right.
HIDDEN = """() => { const frame = document.querySelector("#clients").parentElement; return frame.scrollWidth - frame.clientWidth; }"""
WIDER = """() => [...document.querySelectorAll("body *")].filter((part) => !part.closest(".scroll, details, svg, thead") && part.getBoundingClientRect().right > innerWidth + 1).map((part) => part.outerHTML.slice(0, 90))"""


# The parts of the first section that end below the first screen of 900 pixels.
BELOW = """() => [...document.querySelectorAll("#answer, #wish, #lines .line")]
  .filter((part) => part.getBoundingClientRect().bottom > 900)
  .map((part) => part.innerText.slice(0, 40))"""
# The labels of the time axis: how many, and those that touch the next one.
LABELS = """() => {
  const all = [...document.querySelectorAll("#time svg text")]
    .filter((text) => /^\\d+(:\\d\\d)+$|^\\d+ \\w+$/.test(text.textContent))
    .map((text) => [text.textContent, text.getBoundingClientRect()])
    .sort((a, b) => a[1].left - b[1].left);
  const touches = ([_, box], n) => n + 1 < all.length && box.right + 3 > all[n + 1][1].left;
  return [all.length, all.filter(touches).map(([text]) => text)];
}"""
# The widths of the bars over time, rounded.
BARS = """() => {
  const bars = [...document.querySelectorAll("#time svg g rect")];
  return [...new Set(bars.map((bar) => Math.round(bar.getBoundingClientRect().width)))];
}"""
# The paths of the table of clients that are cut at the right, with their ends out of sight.
CUT = """() => [...document.querySelectorAll("#clients .path")]
  .filter((path) => path.scrollWidth > path.clientWidth + 1)
  .map((path) => path.textContent.slice(0, 60))"""
# The fields of the open table of the map that have two lines.
TALL = """() => [...document.querySelectorAll("#map-table tbody td")]
  .filter((cell) => cell.getBoundingClientRect().height > 42).map((cell) => cell.textContent)"""
# The words of the policy language that somebody who runs a site need not know, where no text of
# their own explains them.
WORDS = """() => {
  const copy = document.querySelector("main").cloneNode(true);
  copy.querySelectorAll("abbr[title]").forEach((part) => part.remove());
  return copy.textContent.match(/\\b(gcra|permits?|TAT|algorithms?)\\b/gi) ?? [];
}"""


def first_screen_and_time(view, name, page, data, width):
    """What a reader sees first, the axis and the bars of the time, and the words."""
    is_short = unsupported(data["log"]) is not None
    is_there = page.locator("#most").is_visible()
    check(f"{view}: the slider is there if it can move something", is_there, not is_short)
    check(f"{view}: below the first screen", page.evaluate(BELOW), [])
    labels, touching = page.evaluate(LABELS)
    check(f"{view}: labels of the time that touch", touching, [])
    if name in ("small", "given", "hourly"):
        check(f"{view}: {labels} labels of the time", 2 <= labels <= 12, True)
        legend = page.locator("#legend").inner_text()
        own = "✕" in legend and data["policies"][0]["policy"] in legend
        check(f"{view}: the own policy in the legend", own, True)
    if data["log"]["minutes_of_hour"] <= 5 and name in ("given", "hourly"):
        bars = page.evaluate(BARS)
        check(f"{view}: bars of one width, {bars}", max(bars) - min(bars) <= 1, True)
    check(f"{view}: paths that are cut", page.evaluate(CUT), [])
    check(f"{view}: words without an explanation", page.evaluate(WORDS), [])


def look(browser, name, page_path, data, log):
    for scheme in ("light", "dark"):
        for width in (1440, 375):
            view = f"{name}, {scheme}, {width}"
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce")
            page = context.new_page()
            errors, requests = [], []
            page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.on("request", lambda request: requests.append(request.url))
            page.goto(page_path.as_uri())
            check(f"{view}: errors", errors, [])
            check(f"{view}: requests", requests, [page_path.as_uri()])
            check(f"{view}: wider than the screen", page.evaluate(WIDER), [])
            if name in ("small", "given"):
                check(f"{view}: clients beside the frame", page.evaluate(HIDDEN), 0)
                marks = page.evaluate(MARKS)
                check(f"{view}: marks {marks}", [n >= least for n, least in zip(marks, (400, 20))], [True] * 2)
            first_screen_and_time(view, name, page, data, width)
            if shots:
                page.screenshot(path=shots / f"{name}-{scheme}-{width}.png", full_page=True)
            if width == 1440 and scheme == "light":
                same_numbers(name, page, data)
                says_what_to_know(name, page, data)
                if name in ("small", "given"):
                    slider(name, page, data)
            # The tables inside are hidden from axe-core until they are open.
            page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
            check(f"{view}: fields of two lines", page.evaluate(TALL), [])
            serious = [f"{one['id']}: {one['nodes'][0]['html'][:120]}" for one in Axe().run(page).response["violations"] if one["impact"] in ("serious", "critical")]
            check(f"{view}: axe-core", serious, [])
            check(f"{view}: scripts of the log", page.evaluate("window.bad ?? null"), None)
            check(f"{view}: scripts and images", page.evaluate("[document.scripts.length, document.images.length]"), [3, 0])
            context.close()


logs = {"small": work / "small.log", "hostile": work / "hostile.log"}
write_log(logs["small"])
write_hostile(logs["hostile"])
logs["hourly"] = work / "hourly.log"
write_hourly(logs["hourly"])
logs["empty"] = work / "empty.log"
logs["empty"].write_text("")
logs["bad"] = work / "bad.log"
logs["short"] = work / "short.log"
logs["short"].write_text("".join(f'192.0.2.1 - - [17/May/2015:10:05:{n:02} +0000] "GET / HTTP/1.1" 200 9\n' for n in range(30)))
logs["bad"].write_text("".join(f"no request {n}\n" for n in range(60)))
reports = {name: report(name, logs[name], *policies) for name, *policies in (("small", "10/min", "2/s burst 10"), ("hourly", "10/min"), ("hostile", "0/s"), ("empty", "10/min"), ("bad", "10/min"), ("short", "10/min"))}
for path in sys.argv[4:]:
    logs["given"] = pathlib.Path(path)
    reports["given"] = report("given", logs["given"], "10/min")
with sync_playwright() as playwright:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    for name, (page, data) in reports.items():
        look(browser, name, page, data, logs[name])
    browser.close()
is_truth("small", reports["small"][1], logs["small"])
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
