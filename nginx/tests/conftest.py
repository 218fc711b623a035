"""Every test of limit_req runs on the drop-in, and in `make soak ONLY=nginx` also on the stock
module, which is the oracle.

Two processes may share the tests (run.sh): each has TOLLBAR_SHARED, one directory for both, and
TOLLBAR_FROM, the end of the list that it begins at. A process claims a test by making a file of its
number, and passes over a test that the other has claimed."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness import places  # noqa: E402
from harness.server import Nginx, end_all  # noqa: E402

outcome = {"passed": 0, "failed": 0}
SHARED = os.environ.get("TOLLBAR_SHARED")
FLAVOURS = [places.STOCK_FLAVOUR, places.DROPIN_FLAVOUR] if "TOLLBAR_SOAK" in os.environ else [places.DROPIN_FLAVOUR]


@pytest.fixture(params=FLAVOURS)
def flavour(request):
    return request.param


@pytest.fixture
def launch(tmp_path, flavour):
    """Starts nginx with limit_req of this flavour; afterwards looks for what must never stand in
    its log."""
    running = []

    def start(modules=(), **parts):
        one = Nginx(tmp_path / f"nginx{len(running)}", modules=[*places.modules_of(flavour), *modules], **parts)
        running.append(one)
        return one.start()

    yield start
    end_all(running)


def pytest_collection_finish(session):
    for number, item in enumerate(session.items):
        item.number = number
    outcome["collected"] = len(session.items)
    if SHARED and os.environ["TOLLBAR_FROM"] == "last":
        session.items.reverse()


def pytest_runtest_protocol(item):
    """Whether the test is done with, for which the other process sees to it."""
    if not SHARED:
        return None
    try:
        os.close(os.open(Path(SHARED) / str(item.number), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return True
    return None


def pytest_runtest_logreport(report):
    # A test has three parts (setup, call, teardown) and counts once: it fails if any part fails. A
    # skipped test counts as failed, because nobody reads the list of skipped tests.
    if report.when == "call" and report.passed:
        outcome["passed"] += 1
    elif not report.passed:
        outcome["failed"] += 1
        # A test whose end failed has been counted as passed before.
        outcome["passed"] -= report.when == "teardown" and report.nodeid in seen_passed
    if report.when == "call" and report.passed:
        seen_passed.add(report.nodeid)


seen_passed = set()


def pytest_collectreport(report):
    if report.failed:
        outcome["failed"] += 1


def pytest_unconfigure():
    if SHARED:
        sums = "{passed} {failed} {collected}".format(**{"collected": 0, **outcome})
        (Path(SHARED) / f"sum-{os.environ['TOLLBAR_FROM']}").write_text(sums + "\n")
        return
    # The very last line, after all of pytest's own.
    print(f"\n{outcome['passed']} passed, {outcome['failed']} failed", flush=True)
