#!/usr/bin/env python3
"""search.py SITE: C13: searches the site that was built there, opened as a file, in headless
Chromium. It fails if a search finds nothing, on script errors, and on network requests."""
import pathlib
import shutil
import sys

from playwright.sync_api import sync_playwright

site = pathlib.Path(sys.argv[1]).resolve()
chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
failed = 0
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    # In two folders, since the frame's addresses are relative to the page.
    for name in ("index.html", "guide/rust.html"):
        page = browser.new_page()
        faults = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: faults.append(request.url) if not request.url.startswith(("file:", "data:")) else None)
        page.goto((site / name).as_uri())
        page.locator(".md-search__input").click()
        results = page.locator(".md-search-result__item")
        # A search finds nothing until the page has loaded its index, so the text is typed again
        # until it finds something.
        for _ in range(20):
            page.locator(".md-search__input").fill("")
            page.keyboard.type("sliding window", delay=20)
            page.wait_for_timeout(500)
            if results.count():
                break
        if not results.count() or faults:
            failed += 1
            print(f"FAILED: {name}: {results.count()} results, {faults}")
        page.close()
    browser.close()
print(f"{2 - failed} passed, {failed} failed")
sys.exit(failed != 0)
