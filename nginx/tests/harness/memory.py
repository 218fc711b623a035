"""What valgrind has to say about a module."""

import os
import subprocess
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor

from . import places
from .server import PATIENCE, prepare

# A module may be unloaded before the report is made; its frames then have their files' names and no
# object's.
OURS = "tollbar"


def wrapper(report):
    return [
        places.program("valgrind"), "--quiet", "--leak-check=full", "--show-leak-kinds=definite",
        "--errors-for-leak-kinds=definite", "--keep-debuginfo=yes", "--num-callers=40", "--child-silent-after-fork=yes",
        "--xml=yes", f"--xml-file={report}",
    ]


def faults(report):
    """The errors and definite losses that have a frame of ours: nginx has a few of its own, which
    are not for here."""
    tree = ElementTree.parse(report).getroot()
    # A report that breaks off would have no faults either.
    states = [status.findtext("state") for status in tree.findall("status")]
    assert "FINISHED" in states, f"{report} is not complete"
    found = []
    for error in tree.findall("error"):
        frames = [[frame.findtext(part, "") for part in ("fn", "file", "obj")] for frame in error.iter("frame")]
        if any(OURS in part.rpartition("/")[2] for frame in frames for part in frame):
            what = error.findtext("what") or error.findtext("xwhat/text")
            found.append(f"{error.findtext('kind')}: {what}: " + " < ".join(fn for fn, _, _ in frames[:8]))
    return found


def chosen(cases):
    """Every eighth of the cases, or all in `make soak ONLY=nginx`: each takes valgrind a second or
    two."""
    return cases if "TOLLBAR_SOAK" in os.environ else cases[::8]


def faults_of_configurations(home, cases):
    """The faults of `nginx -t` on each of (name, configuration, the exit code it must have). There
    are as many at once as cores: nothing here depends on the time."""
    def faults_of(numbered):
        number, (name, text, code) = numbered
        own, report = home / str(number), home / f"valgrind{number}.xml"
        prepare(own)
        (own / "nginx.conf").write_text(text)
        done = subprocess.run(
            [*wrapper(report), places.program("nginx"), "-t", "-p", str(own), "-c", "nginx.conf", "-e", "stderr"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE, check=False)
        assert done.returncode == code, name
        return [f"{name}: {fault}" for fault in faults(report)]

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return [fault for found in pool.map(faults_of, enumerate(cases)) for fault in found]
