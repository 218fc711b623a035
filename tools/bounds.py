#!/usr/bin/env python3
"""Measures how far each loom model goes, and writes docs/internals/model-bounds.md.

    tools/bounds.py                  all models, as `make soak ONLY=bounds`
    tools/bounds.py queue:: loom     the models whose names begin so
    tools/bounds.py --check          whether the page has a row for each model in the sources

A model is a test in a file or folder `models`, or in tests/loom. The tool runs each model as
`make test` does, as `make soak ONLY=loom` does, and with one preemption after the other more until
the number of executions stays. Then there is no interleaving with more preemptions: if there were
one, a part of it would end an execution with exactly one more. A run that takes longer than
BOUNDS_SECONDS (30) of the processor's time ends the search, except in the form of make soak.

A run goes on where the last one stopped (build/bounds/state.json), and measures a model again if a
file of its module has changed. The page keeps the rows of models that a run does not choose."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

top = Path(__file__).resolve().parent.parent
work = top / "build" / "bounds"
page = top / "docs" / "internals" / "model-bounds.md"
redis = top / "crates" / "tollbar-redis"
# A model that should panic ends at its fault, and has no end to measure.
TEST = re.compile(r"#\[test\](?:\s*#\[(?!should_panic)[^\n]*\])*\s*fn (\w+)")
EXPLORED = re.compile(r"explored: (\d+) executions, (\d+) preemptions")
SECONDS = int(os.environ.get("BOUNDS_SECONDS", "30"))
# What no model comes near, in the form of make soak.
LONGEST = 3600
# The most preemptions that are tried.
MOST = 12

BEGIN = """# How far the models go

Loom runs a model under every interleaving within a bound of preemptions. The table has these
bounds, one row for each model, and what each costs. `make soak ONLY=bounds` measured it and wrote
this page (`tools/bounds.py`). What the models prove is in [verification](verification.md#loom-models).

- **Preemptions** is the most times that a thread is interrupted which could go on. A model that
  explores several situations may have several bounds.
- **Executions** is how many interleavings loom ran within the bound, of all situations together,
  and **s** the processor's seconds for them.
- **Ends** is the number of preemptions from which on no further execution exists: any bound that
  large is exhaustive. *over 4* means that four found more executions than three, and five took more
  than {seconds} seconds.
- **Exhaustive** says which of the two forms reaches that end.

Of {count} models {measured} have been measured. A row of dashes waits for its first run. {test} are
exhaustive in `make test`, {soak} in `make soak ONLY=loom`.
"""
HEAD = """
## `{module}`

| Model | Preemptions in `make test` | Executions | s | In `make soak` | Executions | s | Ends | Exhaustive |
|---|---|---|---|---|---|---|---|---|
"""


def models() -> dict[str, Path]:
    """The models by their names, and the files that they are in. Names of tests/loom begin with
    `loom::`, those of tollbar-redis with `tollbar_redis::`."""
    found = {}
    for root, prefix in [(top / "src", ""), (top / "tests" / "loom", "loom::"), (redis / "src", "tollbar_redis::")]:
        for file in sorted(root.rglob("*.rs")):
            text, names = file.read_text(), list(file.relative_to(root).with_suffix("").parts)
            if names[-1] in ("mod", "main"):
                names.pop()
            if root.name != "loom" and "models" not in names:
                # A module in the file itself.
                at = text.find("\nmod models {")
                if at < 0:
                    continue
                text, names = text[at:], [*names, "models"]
            for test in TEST.findall(text):
                found["::".join([prefix.removesuffix("::"), *names, test]).removeprefix("::")] = file
    return found


def programs() -> dict[str, str]:
    """Compiles the models; the programs by the beginnings of their models' names."""
    environment = dict(os.environ, RUSTFLAGS="--cfg loom")
    target = os.environ.get("CARGO_TARGET_DIR", str(top / "target" / "loom"))
    found = {}
    (work / "programs").mkdir(parents=True, exist_ok=True)
    for wanted in (["--package", "tollbar", "--test", "loom"], ["--package", "tollbar", "--package", "tollbar-redis", "--lib"]):
        command = ["cargo", "test", "--profile", "models", "--target-dir", target, *wanted, "--no-run", "--message-format", "json-render-diagnostics"]
        built = subprocess.run(command, cwd=top, env=environment, stdout=subprocess.PIPE, text=True)
        if built.returncode:
            sys.exit("tools/bounds.py: the models do not compile")
        for line in built.stdout.split("\n"):
            artefact = json.loads(line) if line.startswith("{") else {}
            if artefact.get("executable"):
                name = {"loom": "loom::", "tollbar_redis": "tollbar_redis::"}.get(artefact["target"]["name"], "")
                # cargo may write another program under the same name meanwhile.
                found[name] = shutil.copy(artefact["executable"], work / "programs" / f"{name.strip(':')}-{os.getpid()}")
    return found


def run(program: str, test: str, seconds: int, **environment: str) -> tuple[list[tuple[int, int]], float] | None:
    """The executions and bounds of a model's explorations, and the processor's seconds. `None` if
    it fails, or takes longer than `seconds`."""
    clean = {name: value for name, value in os.environ.items() if name not in ("TOLLBAR_SOAK", "LOOM_MAX_PREEMPTIONS")}
    limit = f"ulimit -t {seconds}; exec \"$@\""
    with subprocess.Popen(["sh", "-c", limit, "sh", program, "--exact", test, "--nocapture", "--test-threads", "1"],
            env={**clean, **environment}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as started:
        output = started.stdout.read() if started.stdout else ""
        _, status, usage = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
    explored = [(int(executions), int(bound)) for executions, bound in EXPLORED.findall(output)]
    if started.returncode or not explored:
        return None
    return explored, usage.ru_utime + usage.ru_stime


def measure(name: str, program: str, test: str) -> str:
    """The model's row, or what failed."""
    cells = []
    bounds: list[int] = []
    known: dict[int, list[int]] = {}
    for environment in ({}, {"TOLLBAR_SOAK": "1"}):
        result = run(program, test, LONGEST, **environment)
        if result is None:
            return f"{name} fails{' in the form of make soak' if environment else ''}"
        explored, seconds = result
        least, most = (choose(bound for _, bound in explored) for choose in (min, max))
        if least == most:
            known[most] = [executions for executions, _ in explored]
        bounds.append(most)
        cells += [str(most) if least == most else f"{least} to {most}",
            f"{sum(executions for executions, _ in explored):,}", f"{seconds:.1f}"]
    last = None
    for bound in range(0, MOST + 1):
        if bound not in known:
            result = run(program, test, SECONDS, TOLLBAR_BOUND=str(bound))
            if result is None:
                # A model whose fault needs more preemptions may fail with fewer.
                if bound < bounds[1]:
                    continue
                break
            known[bound] = [executions for executions, _ in result[0]]
        if last is not None and known[bound] == known.get(last):
            break
        last = bound
    else:
        last = MOST
    is_end = last is not None and known.get(last + 1) == known[last]
    reaches = "both" if is_end and last <= bounds[0] else "soak" if is_end and last <= bounds[1] else "no"
    cells += [str(last) if is_end else f"over {last}", reaches]
    return f"| {name.rsplit('::', 1)[1]} | " + " | ".join(cells) + " |"


def digest_of(file: Path) -> str:
    """Changes with every file that may change the model's row: those of its module."""
    name = str(file.relative_to(top))
    if name.startswith("tests/"):
        places = [top / "src" / "limiter", top / "src" / "algorithm", top / "tests" / "loom"]
    else:
        parts = file.parts[: file.parts.index("models")] if "models" in file.parts else (*file.parts[:-1], file.stem)
        module = Path(*parts) if file.stem != "models" else file.parent
        places = [module.parent if module.parent.name not in ("src", "lease") else module, file]
    whole = hashlib.sha256()
    for place in places:
        for source in sorted(place.rglob("*.rs")) if place.is_dir() else [place.with_suffix(".rs")]:
            lines = source.read_text().split("\n") if source.exists() else []
            whole.update("\n".join(line for line in lines if not line.strip().startswith("//")).encode())
    return whole.hexdigest()[:16]


def rows_of(text: str) -> dict[str, str]:
    """The page's rows, by the names of their models."""
    rows, module = {}, ""
    for line in text.split("\n"):
        if line.startswith("## `"):
            module = line[4:-1]
        elif line.startswith("| ") and not line.startswith("| Model"):
            rows[f"{module}::{line[2:].split(' |')[0]}"] = line
    return rows


def unmeasured(name: str) -> str:
    return f"| {name.rsplit('::', 1)[1]} |" + " – |" * 8


def write_page(measured: dict[str, str]) -> None:
    rows = {name: measured.get(name, unmeasured(name)) for name in models()}
    reached = [row.rstrip(" |").rsplit("| ", 1)[1] for row in rows.values()]
    measured_rows = sum(row != unmeasured(name) for name, row in rows.items())
    text = BEGIN.format(seconds=SECONDS, count=len(rows), measured=measured_rows, test=reached.count("both"), soak=reached.count("both") + reached.count("soak"))
    module = ""
    for name in sorted(rows, key=lambda name: (name.rsplit("::", 1)[0], list(rows).index(name))):
        if name.rsplit("::", 1)[0] != module:
            module = name.rsplit("::", 1)[0]
            text += HEAD.format(module=module)
        text += rows[name] + "\n"
    page.write_text(text)


def main() -> int:
    found = models()
    rows = rows_of(page.read_text()) if page.exists() else {}
    if "--check" in sys.argv[1:]:
        faults = [f"{found[name].relative_to(top)}: {name} has no row in {page.relative_to(top)}: make soak ONLY=bounds"
            for name in found if name not in rows]
        faults += [f"{page.relative_to(top)}: {name} is no model of the sources; expected: no row" for name in rows if name not in found]
        for fault in faults:
            print(f"FAIL {fault}")
        without = sum(rows.get(name) == unmeasured(name) for name in found)
        if without:
            print(f"{without} models have not been measured: make soak ONLY=bounds")
        print(f"{len(set(found) & set(rows))} passed, {len(faults)} failed")
        return bool(faults)
    work.mkdir(parents=True, exist_ok=True)
    file = work / "state.json"
    state = json.loads(file.read_text()) if file.exists() else {}
    chosen = [name for name in found if not sys.argv[1:] or name.startswith(tuple(sys.argv[1:]))]
    built = programs() if chosen else {}
    lock, faults = threading.Lock(), []

    def one(name: str) -> None:
        digest = digest_of(found[name])
        if state.get(name, {}).get("digest") != digest:
            prefix = next((prefix for prefix in built if prefix and name.startswith(prefix)), "")
            row = measure(name, built[prefix], name.removeprefix(prefix))
            with lock:
                if not row.startswith("|"):
                    faults.append(row)
                    print(f"FAIL {row}", flush=True)
                    return
                state[name] = {"digest": digest, "row": row}
                file.write_text(json.dumps(state, indent=1))
        with lock:
            print(f"{name.rsplit('::', 1)[0]} {state[name]['row']}", flush=True)
            rows[name] = state[name]["row"]
            write_page(rows)

    with ThreadPoolExecutor(int(os.environ.get("BOUNDS_JOBS", os.cpu_count() or 1))) as pool:
        list(pool.map(one, chosen))
    print(f"{len(chosen) - len(faults)} passed, {len(faults)} failed")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
