"""The tests of `limits` and flask-limiter, which lie in their source distributions, run against
tollbar.limits. docs/from-limits.md lists the tests that fail, with the reason of each: the list must be
what fails."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[2] / "build" / "python-upstream"
SUITES = {"limits": "limits-5.8.0", "flask-limiter": "flask_limiter-4.1.1"}
# What the tests import. The servers of these clients are not asked for anything: their tests are
# left out.
NEEDED = """hiro==1.1.1 flaky==3.8.1 pytest==9.0.2 pytest-asyncio==1.3.0 pytest-check==2.6.2 pytest-lazy-fixtures==1.4.0 pytest-mock==3.15.1
    pymemcache==4.0.0 pymongo==4.15.5 redis==7.1.0 valkey==6.1.1 lovely-pytest-docker==1.0.0 flask-restful==0.3.10 asgiref==3.11.0 rich==14.2.0
    setuptools==80.9.0 packaging==25.0""".split()


def pip(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--python", BUILD / "bin" / "python", "--disable-pip-version-check", *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, f"pip {' '.join(map(str, arguments))} failed; expected: a package index that pip reaches\n{done.stderr}"


@pytest.fixture(scope="module")
def upstream():
    """A venv with what the tests import, and with the packages of this one."""
    installed = BUILD / "installed"
    if not installed.is_file() or installed.read_text() != " ".join(NEEDED):
        subprocess.run([sys.executable, "-m", "venv", "--clear", BUILD], check=True)
        pip("install", "--quiet", *NEEDED)
        installed.write_text(" ".join(NEEDED))
    site = sysconfig.get_path("purelib", vars={"base": str(BUILD)})
    (Path(site) / "tollbar.pth").write_text(sysconfig.get_path("purelib"))
    return BUILD / "bin" / "python"


def source(suite, where):
    """The unpacked source distribution."""
    name, _, version = SUITES[suite].rpartition("-")
    archive = BUILD / f"{SUITES[suite]}.tar.gz"
    if not archive.is_file():
        pip("download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", BUILD, f"{name}=={version}")
    with tarfile.open(archive) as opened:
        opened.extractall(where, filter="data")
    return where / SUITES[suite]


def listed(suite):
    """The failures of a suite in the page's table: | suite | `file::test` | reason |"""
    rows = re.findall(r"^\| ([a-z-]+) \| (`[^|]*`) \| [^|]{20,} \|$", (HERE.parent.parent.parent / "docs" / "from-limits.md").read_text(), re.MULTILINE)
    return {name for of, names in rows if of == suite for name in re.findall("`([^`]*)`", names)}


def failures(output):
    """The tests that failed, without their parameters."""
    return {line.split(" - ")[0].split("[")[0] for line in re.findall(r"^(?:FAILED|ERROR) tests/(\S.*)$", output, re.MULTILINE)}


@pytest.mark.parametrize(("suite", "least"), [("limits", 150), ("flask-limiter", 105)])
def test_the_tests_of(suite, least, upstream, tmp_path):
    root = source(suite, tmp_path)
    options = ["-q", "-p", "memory_is_tollbar", "-p", "no:cacheprovider", "-W", "ignore", "-c", os.devnull, "--rootdir", ".", "-o", "asyncio_mode=auto"]

    def run(*tests):
        return subprocess.run(
            [upstream, "-m", "pytest", *options, "-rfEp", "--tb=short", *tests],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(HERE / "upstream"), "COLUMNS": "300"},
            capture_output=True,
            text=True,
            timeout=900,
        )

    done = run("tests", "--ignore=tests/benchmarks")
    passed = re.findall(r"^PASSED tests/", done.stdout, re.MULTILINE)
    unexpected = failures(done.stdout) - listed(suite)
    # Some of their tests count seconds of the real clock. Those that fail are run again by
    # themselves, when the machine may be less busy.
    for _ in range(3):
        if not unexpected:
            break
        again = run(*(f"tests/{name}" for name in sorted(unexpected)))
        unexpected = failures(again.stdout) & unexpected if again.returncode in (0, 1) else unexpected
    assert not unexpected and listed(suite) <= failures(done.stdout), done.stdout[-20_000:]
    assert len(passed) >= least, done.stdout[-2_000:]
