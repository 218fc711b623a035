"""Checks that deny.toml allows the licenses of the crates that are delivered, and no others: what
`cargo deny check licenses` says in the workflow, from the metadata of the lock file. Counts its
checks."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

top = Path(__file__).resolve().parent.parent.parent
deny = tomllib.loads((top / "deny.toml").read_text())
allowed = set(deny["licenses"]["allow"])
excluded = set(deny["graph"]["exclude"])
command = ["cargo", "metadata", "--format-version", "1", "--locked"]
for target in deny["graph"]["targets"]:
    command += ["--filter-platform", target]
data = json.loads(subprocess.run(command, cwd=top, capture_output=True, text=True, check=True).stdout)
packages = {package["id"]: package for package in data["packages"]}
nodes = {node["id"]: node for node in data["resolve"]["nodes"]}


def delivered() -> set[str]:
    """The crates that the workspace's delivered crates are built with, without the dependencies of
    their tests."""
    todo = [one for one in data["workspace_members"] if packages[one]["name"] not in excluded]
    found: set[str] = set()
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo += [dep["pkg"] for dep in nodes[one]["deps"] if any(kind["kind"] != "dev" for kind in dep["dep_kinds"])]
    return found


def is_allowed(license: str) -> bool:
    """Whether an expression of SPDX is true of the allowed licenses. An exception only adds
    permissions."""
    plain = re.sub(r" WITH [\w.-]+", "", license.replace("/", " OR "))
    python = {"AND": "and", "OR": "or", "(": "(", ")": ")"}
    text = " ".join(python.get(word, str(word in allowed)) for word in re.findall(r"[()]|[\w.+-]+", plain))
    return bool(eval(text))  # noqa: S307: the words are True, False, and, or and brackets


faults = [f"{packages[one]['name']} {packages[one]['version']}: {packages[one]['license']}" for one in delivered() if not is_allowed(packages[one]["license"] or "NONE")]
for fault in sorted(faults):
    print(f"FAIL  {fault}; expected: licenses that deny.toml allows")
words = {word for one in delivered() for word in re.findall(r"[\w.+-]+", (packages[one]["license"] or "").replace("/", " "))}
for unused in sorted(allowed - words):
    faults.append(unused)
    print(f"FAIL  deny.toml allows {unused}, which no crate has")
print(f"{0 if faults else len(delivered())} passed, {len(faults)} failed")
sys.exit(1 if faults else 0)
