#!/usr/bin/env python3
"""search.py SITE: searches the site that was built there, opened as a file, in headless Chromium.
It fails if a search finds nothing or not the expected page first, on script errors, and on network
requests."""
import pathlib
import re
import shutil
import sys

from playwright.sync_api import sync_playwright

site = pathlib.Path(sys.argv[1]).resolve()
chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# What people look for, and the pages of which one must be found first.
WANTED = {
    "whitelist": ("table.html", "nginx.html", "rules.html"),
    "kubernetes": ("install.html", "table.html", "distributed.html"),
    "reset a key": ("table.html", "command.html", "rules.html"),
    "burst": ("algorithms.html", "nginx.html", "replay.html", "rules.html"),
}
passed, failed = 0, 0


def search(page, words):
    """The addresses of the pages found. A search finds nothing until the page has loaded its
    index, so the text is typed again until it finds something."""
    page.locator(".md-search__input").click()
    results = page.locator(".md-search-result__item")
    for _ in range(20):
        page.locator(".md-search__input").fill("")
        page.keyboard.type(words, delay=20)
        page.wait_for_timeout(500)
        if results.count():
            break
    links = page.locator("a.md-search-result__link").all()
    return [re.split("[?#]", link.get_attribute("href"))[0] for link in links]


with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    # In two folders, since the frame's addresses are relative to the page.
    for name in ("index.html", "guide/rust.html"):
        page = browser.new_page()
        faults = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: faults.append(request.url) if not request.url.startswith(("file:", "data:")) else None)
        page.goto((site / name).as_uri())
        found = search(page, "sliding window")
        if found and not faults:
            passed += 1
        else:
            failed += 1
            print(f"FAILED: {name}: {found}, {faults}")
        for words, pages in WANTED.items() if name == "index.html" else ():
            found = search(page, words)
            if found and found[0].endswith(pages):
                passed += 1
            else:
                failed += 1
                print(f"FAILED: {words}: found {found[:5]}, expected one of {pages} first")
        page.close()
    browser.close()
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
