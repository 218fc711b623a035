#!/usr/bin/env python3
"""Finds the small changes of the sources that no test notices: `make soak ONLY=mutants`.

    tools/mutants.py                              the pure layer, the slots' protocol, the policies' versions
    MUTANTS="src/units.rs src/limiter" ...        other files or folders of src
    MUTANTS_SECONDS=3600 tools/mutants.py         ends after an hour; the next run goes on there
    MUTANTS_PROGRAMS=algorithm tools/mutants.py   with fewer programs of tests than all four, beside the library's own
    tools/mutants.py --list                       what has been found so far, by layer

cargo-mutants lists the changes. `cargo xtask mutants` puts all of them into one copy of the sources,
in build/mutants/tree, where each place asks at run time whether its change is the chosen one
($TOLLBAR_MUTANT). So they are compiled once. A change that does not compile is left out, and the
rest is compiled again.

The tool then runs each test alone and notes which changes it executes. A change is tried with those
tests alone, the short ones first, until one fails or takes ten times as long. Tests that fail or
take more than LONGEST seconds without a change are left out.

A run goes on where the last one stopped (build/mutants/state.json). It tries a change again if its
file has changed, and always what has survived. build/mutants/survivors lists what no test noticed:
file:line:column: change. tools/mutants.toml has the reason for each. The tool fails on a survivor
without a reason, on a reason without a survivor, and if more than 2 % survive. A run of all layers
writes the sums into docs/internals/verification.md."""

import hashlib
import json
import math
import os
import re
import resource
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

top = Path(__file__).resolve().parent.parent
work = top / "build" / "mutants"
tree = work / "tree"
reasons = top / "tools" / "mutants.toml"
LAYERS = {
    "the pure layer": ["src/algorithm", "src/policy", "src/units.rs", "src/decision.rs"],
    "the slots' protocol": ["src/table/slots"],
    "the policies' versions": ["src/table/policies"],
}
MOST = 0.02
document = top / "docs" / "internals" / "verification.md"
HEAD = """| Layer | Changes | Caught | Do not compile | Not tried | Survived |
|---|---|---|---|---|---|
"""
PROGRAMS = ["--lib", *(word for name in os.environ.get("MUTANTS_PROGRAMS", "algorithm policy limiter table").split() for word in ("--test", name))]
# The longest that a test may take without a change, in seconds of the processor.
LONGEST = float(os.environ.get("MUTANTS_TEST_SECONDS", "20"))
# How far the tests step back behind what else the machine does.
PRIORITY = int(os.environ.get("MUTANTS_NICE", "19"))
ASLEEP = 60
# Programs and modules whose tests use no clock, no threads and no other process.
PURE = re.compile(r"algorithm |lib (algorithm|policy|units|decision)::")
# Tests whose result depends on how busy the machine is.
NEVER = re.compile(r"on_the_real_clock|real_clock|under_load|latency")
CHOICE = """
/// Whether the change is the one that TOLLBAR_MUTANT chooses. Constants have none.
#[doc(hidden)]
#[inline]
pub const fn is(change: u32) -> bool {
    core::intrinsics::const_eval_select((change,), never, chosen)
}
const fn never(_: u32) -> bool {
    false
}
fn chosen(change: u32) -> bool {
    let now = CHOSEN.load(Relaxed);
    now == change || now >= NOTES && noted(change)
}
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
const UNKNOWN: u32 = u32::MAX;
const NOTES: u32 = UNKNOWN - 1;
static CHOSEN: AtomicU32 = AtomicU32::new(UNKNOWN);
static SEEN: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];
/// Writes the change's number into the file TOLLBAR_MUTANT_NOTES, the first time.
#[cold]
fn noted(change: u32) -> bool {
    use std::io::Write as _;
    let file = std::env::var_os("TOLLBAR_MUTANT_NOTES");
    let now = match (&file, std::env::var("TOLLBAR_MUTANT")) {
        (Some(_), _) => NOTES,
        (None, Ok(number)) => number.parse().unwrap_or(0),
        (None, Err(_)) => 0,
    };
    CHOSEN.store(now, Relaxed);
    if let Some(file) = file {
        if !SEEN[change as usize].swap(true, Relaxed) {
            let mut file = std::fs::OpenOptions::new().append(true).create(true).open(file).unwrap();
            let _ = file.write_all(std::format!("{change}\\n").as_bytes());
        }
    }
    now == change
}
"""


def run(command: list[str], where: Path, **more) -> str:
    done = subprocess.run(command, cwd=where, stdout=subprocess.PIPE, text=True, **more)
    if done.returncode:
        sys.exit(f"tools/mutants.py: {' '.join(command[:4])} … failed with status {done.returncode}")
    return done.stdout


def listed(places: list[str]) -> list[dict]:
    """The changes of the files below the places, as cargo-mutants has them."""
    command = ["cargo", "mutants", "--list", "--json", "--no-config", "--package", "tollbar"]
    for place in places:
        command += ["--file", place if place.endswith(".rs") else f"{place}/**/*.rs"]
        if not place.endswith(".rs") and (top / f"{place}.rs").exists():
            command += ["--file", f"{place}.rs"]
    for pattern in tomllib.loads(reasons.read_text())["exclude_re"]:
        command += ["--exclude-re", pattern]
    found = json.loads(run(command, top))
    # A test's or a model's file is no part of the program.
    found = [change for change in found if not re.search(r"(^|/)(tests?|models?|\w+_tests)(/|\.rs)", change["file"])]
    for number, change in enumerate(found, 1):
        change["number"] = number
    return found


def named(change: dict) -> str:
    """The change's name without line and column, as a reason in tools/mutants.toml has it."""
    return re.sub(r":\d+:\d+", "", change["name"], count=1)


xtask = ["cargo", "run", "--quiet", "--offline", "--package", "xtask", "--"]


def instrument(changes: list[dict]) -> set[int]:
    """Writes the copy of the sources; the changes that are not in it, because a match would have no
    arm for some value. Files that do not change keep their times, so that cargo
    compiles no more than it must."""
    new = work / "new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    for name in ("src", "tests", "ffi-tests", "examples", "docs", "include"):
        shutil.copytree(top / name, new / name, ignore=shutil.ignore_patterns("build", "target", "node_modules"))
    for name in ("Cargo.lock", "README.md"):
        shutil.copy(top / name, new / name)
    manifest = (top / "Cargo.toml").read_text()
    manifest = re.sub(r"(?ms)^members = \[.*?^\]", 'members = ["."]', manifest)
    manifest = re.sub(r"(?m)^default-members.*$", "", manifest)
    manifest = re.sub(r"(?ms)^\[\[(bench|example)\]\]\n.*?\n\n", "", manifest)
    manifest = re.sub(r'(?m)^(tollbar[-\w]* = ).*path = "crates.*$', "", manifest)
    manifest = re.sub(r"(?ms)^\[profile\.test\.package\.(stateright|dashmap|hashbrown|ahash|tollbar-redis-model)\]\n.*?\n(?=\[|\n)", "", manifest)
    (new / "Cargo.toml").write_text(manifest)
    library = new / "src" / "lib.rs"
    text = library.read_text().replace("\n#![no_std]\n", "\n")
    library.write_text("#![feature(const_eval_select, core_intrinsics)] #![allow(internal_features)]\n" + text + "\n#[doc(hidden)]\npub mod mutants;\n")
    (new / "src" / "mutants.rs").write_text(f"//! Chooses the change.\n#![allow(missing_docs)]\n{CHOICE}const COUNT: usize = {max((change['number'] for change in changes), default=0) + 1};\n")
    lines = []
    for change in changes:
        start, end = change["span"]["start"], change["span"]["end"]
        fields = [change["number"], change["file"], change["genre"], start["line"], start["column"], end["line"], end["column"],
            re.sub(r"\s+", " ", change["replacement"])]
        lines.append("\t".join(map(str, fields)))
    (work / "list").write_text("\n".join(lines) + "\n")
    said = run([*xtask, "mutants", str(work / "list"), str(new)], top)
    for path in new.rglob("*"):
        name = path.relative_to(new)
        if path.is_file() and (not (tree / name).exists() or (tree / name).read_bytes() != path.read_bytes()):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, tree / name)
    for path in tree.rglob("*"):
        if path.is_file() and not (new / path.relative_to(tree)).exists():
            path.unlink()
    return {int(number) for number in re.findall(r"(?m)^without (\d+)$", said)}


def environment(**more: str) -> dict[str, str]:
    return dict(os.environ, RUSTC_BOOTSTRAP="1", RUSTFLAGS="--cap-lints allow", CARGO_TARGET_DIR=str(work / "target"),
        CARGO_INCREMENTAL="1", PROPTEST_MAX_SHRINK_ITERS="0", TOLLBAR_TRACES="30", **more)


def cargo(arguments: list[str]) -> tuple[list[dict], bool]:
    command = ["cargo", *arguments, "--offline", "--message-format", "json"]
    built = subprocess.run(command, cwd=tree, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in built.stdout.split("\n") if line.startswith("{")]
    if built.returncode and not messages:
        sys.exit(built.stderr)
    return messages, built.returncode == 0


def spans_of(message: dict) -> list[dict]:
    spans = sorted(message["spans"], key=lambda span: not span["is_primary"])
    return spans + [span for child in message["children"] for span in spans_of(child)]


def refused(messages: list[dict]) -> set[int]:
    """The changes that the compiler's errors are about."""
    found, texts = set(), {}
    for message in (entry["message"] for entry in messages if entry.get("reason") == "compiler-message"):
        if message["level"] != "error" or not message["spans"]:
            continue
        for span in spans_of(message):
            path = tree / span["file_name"]
            if not path.is_file():
                continue
            text = texts.setdefault(path, path.read_bytes())
            inside = [(begin.end(), int(begin[1])) for begin in re.finditer(rb"/\*<(\d+)\*/", text[: span["byte_start"] + 1])
                if text.find(b"/*%s>*/" % begin[1]) >= span["byte_start"]]
            if inside:
                found.add(max(inside)[1])
                break
        else:
            print(message["rendered"])
    return found


def build(changes: list[dict], note: Callable[[set[str]], None]) -> tuple[list[dict], set[str], dict[str, str]]:
    """Compiles the copy; the changes in it, the names of those that do not compile, and the
    programs."""
    # One type has no two iterators.
    unviable = {change["name"] for change in changes if change["genre"] == "FnValue" and "impl " in change["function"]["return_type"]}
    kept = [change for change in changes if change["name"] not in unviable]
    while True:
        without = instrument(kept)
        messages, good = cargo(["check", "--lib"])
        if good:
            unviable |= {change["name"] for change in kept if change["number"] in without}
            kept = [change for change in kept if change["number"] not in without]
            # What only tests have is compiled here for the first time.
            messages, good = cargo(["test", "--no-run", *PROGRAMS])
            if good:
                break
        wrong = refused(messages) | without
        if not wrong:
            sys.exit("tools/mutants.py: the copy in build/mutants/tree does not compile")
        unviable |= {change["name"] for change in kept if change["number"] in wrong}
        note(unviable)
        kept = [change for change in kept if change["number"] not in wrong]
        print(f"{len(wrong)} changes do not compile", flush=True)
    programs = {}
    for entry in messages:
        if entry.get("executable"):
            programs[entry["target"]["name"] if entry["target"]["kind"] == ["test"] else "lib"] = entry["executable"]
    return kept, unviable, programs


def sleeps(pid: int) -> bool:
    """Whether no thread of the process could run."""
    try:
        states = [Path(task, "stat").read_text().rsplit(")", 1)[1].split()[0] for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return False
    return all(state == "S" for state in states)


def execute(program: str, tests: list[str], seconds: float, **more: str) -> tuple[bool, float]:
    """Whether the tests pass within the processor's seconds, and how many they took. They may wait
    for a busy processor as long as it takes, and sleep for ASLEEP seconds in all."""
    limit = max(1, int(seconds + 0.999))
    before = looked = time.monotonic()
    asleep = 0.0
    with subprocess.Popen([program, "--exact", *tests, "--test-threads", "1"], cwd=tree, env=environment(**more), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            preexec_fn=lambda: (os.nice(PRIORITY), resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1)))) as started:
        while True:
            pid, status, usage = os.wait4(started.pid, os.WNOHANG)
            if pid:
                started.returncode = os.waitstatus_to_exitcode(status)
                break
            now = time.monotonic()
            asleep += now - looked if sleeps(started.pid) else 0
            looked = now
            if asleep > ASLEEP:
                os.killpg(started.pid, 9)
            time.sleep(0.002 if now - before < 0.2 else 0.05)
    return started.returncode == 0, usage.ru_utime + usage.ru_stime


def measure(programs: dict[str, str], count: int) -> dict[str, dict]:
    """For each test, how long it takes, and which changes it executes. The result is kept for the
    same programs."""
    file = work / "tests.json"
    key = hashlib.sha256(b"".join(Path(path).read_bytes() for path in programs.values())).hexdigest()
    known = json.loads(file.read_text()) if file.exists() else {}
    if known.get("key") != key:
        known = {"key": key, "tests": {}}
    wanted = [(name, line.removesuffix(": test")) for name, path in programs.items()
        for line in run([path, "--list", "--format", "terse"], tree).split("\n") if line.endswith(": test")]
    wanted = [(name, test) for name, test in wanted if f"{name} {test}" not in known["tests"] and not NEVER.search(test)]

    def one(which: tuple[str, str]) -> None:
        name, test = which
        notes = work / f"notes-{name}-{re.sub(r'[^a-z0-9_]', '-', test)[-180:]}"
        notes.unlink(missing_ok=True)
        passed, spent = execute(programs[name], [test], LONGEST, TOLLBAR_MUTANT_NOTES=str(notes))
        executed = sorted({int(line) for line in notes.read_text().split() if int(line) <= count}) if notes.exists() else []
        notes.unlink(missing_ok=True)
        known["tests"][f"{name} {test}"] = {"passed": passed, "seconds": round(spent, 3), "changes": executed}

    with ThreadPoolExecutor(jobs()) as pool:
        for number, _ in enumerate(pool.map(one, wanted), 1):
            if number % 50 == 0 or number == len(wanted):
                file.write_text(json.dumps(known))
                print(f"{number} of {len(wanted)} tests measured", flush=True)
    return known["tests"]


def jobs() -> int:
    return int(os.environ.get("MUTANTS_JOBS", os.cpu_count() or 1))


def attempt(number: int, tests: list[tuple[str, str, float]], programs: dict[str, str]) -> str:
    """The test that notices the change, or nothing. Short tests share a process."""
    most, batch = 0.3, []
    for position, (name, test, seconds) in enumerate(tests):
        batch.append((test, seconds))
        following = tests[position + 1] if position + 1 < len(tests) else None
        if following and following[0] == name and sum(each[1] for each in batch) + following[2] < most:
            continue
        spent = sum(each[1] for each in batch)
        passed, _ = execute(programs[name], [each[0] for each in batch], 2 + 10 * spent, TOLLBAR_MUTANT=str(number))
        # A test that fails at times does not notice the change.
        if not passed and (PURE.match(f"{name} {batch[0][0]}") or execute(programs[name], [each[0] for each in batch], 2 + 10 * spent)[0]):
            return f"{name} {batch[0][0]}" + (f" and {len(batch) - 1} more" if len(batch) > 1 else "")
        batch, most = [], min(most * 2, 5)
    return ""


def digest_of(name: str) -> str:
    lines = (top / name).read_text().split("\n")
    return hashlib.sha256("\n".join(line for line in lines if not line.strip().startswith("//")).encode()).hexdigest()[:16]


def explained() -> dict[str, str]:
    """The reasons of survivors, by the changes' names without line and column."""
    return {entry["change"]: entry["reason"] for entry in tomllib.loads(reasons.read_text()).get("survivor", [])}


def sum_up(changes: list[dict], state: dict[str, dict]) -> int:
    """Prints a line for each layer, and writes the survivors."""
    failed, survivors, rows = 0, [], []
    known = explained()
    layers = dict(LAYERS) if not os.environ.get("MUTANTS") else {place: [place] for place in os.environ["MUTANTS"].split()}
    for layer, places in layers.items():
        mine = [change for change in changes if change["file"].startswith(tuple(places))]
        results = Counter(state[change["name"]]["result"] if change["name"] in state else "left" for change in mine)
        tried = results["caught"] + results["survived"]
        share = results["survived"] / tried if tried else 0
        print(f"{layer}: {len(mine)} changes, {results['caught']} caught, {results['survived']} survived ({100 * share:.1f} %), "
            f"{results['unviable']} do not compile, {results['left']} left")
        rows.append(f"| {layer}: {', '.join(f'`{place}`' for place in places)} | {len(mine):,} | {results['caught']:,} | {results['unviable']:,} | "
            f"{results['left']:,} | {results['survived']:,} |")
        survivors += [change for change in mine if state.get(change["name"], {}).get("result") == "survived"]
        if share > MOST:
            failed += 1
            print(f"FAIL {layer}: {100 * share:.1f} % survive; expected: at most {100 * MOST:.0f} %")
    if layers == LAYERS:
        text = document.read_text()
        begin = text.index("|", text.index("## Mutations"))
        document.write_text(text[:begin] + HEAD + "".join(f"{row}\n" for row in rows) + text[text.index("\n\n", begin) + 1 :])
    (work / "survivors").write_text("".join(f"{change['name']}\n" for change in survivors))
    for change in survivors:
        if named(change) not in known:
            failed += 1
            print(f"FAIL {change['name']}: no test notices it; expected: a test that does, or its reason in tools/mutants.toml")
    done = {named(change) for change in changes if change["name"] in state}
    for name in set(known) & done - {named(change) for change in survivors}:
        failed += 1
        print(f"FAIL tools/mutants.toml: {name}: a test notices it; expected: no reason")
    for name in set(known) - {named(change) for change in changes} if layers == LAYERS else ():
        failed += 1
        print(f"FAIL tools/mutants.toml: {name}: no such change; expected: one that cargo-mutants lists")
    print(f"{sum(change['name'] in state for change in changes)} passed, {failed} failed")
    return failed != 0


def main() -> int:
    work.mkdir(parents=True, exist_ok=True)
    places = os.environ.get("MUTANTS", "").split() or [place for places in LAYERS.values() for place in places]
    changes = listed(places)
    file = work / "state.json"
    state = json.loads(file.read_text()) if file.exists() else {}
    digests = {name: digest_of(name) for name in {change["file"] for change in changes}}
    # Results of other places stay. Those of a text that has changed do not.
    here = {change["name"]: digests[change["file"]] for change in changes}
    state = {name: entry for name, entry in state.items() if here.get(name, os.environ.get("MUTANTS") and entry["digest"]) == entry["digest"]}
    if "--list" in sys.argv[1:]:
        return sum_up(changes, state)
    end = time.monotonic() + float(os.environ.get("MUTANTS_SECONDS", "1e9"))
    todo = [change for change in changes if state.get(change["name"], {}).get("result") in (None, "survived")]

    def note(unviable: set[str]) -> None:
        for change in changes:
            if change["name"] in unviable:
                state[change["name"]] = {"digest": digests[change["file"]], "result": "unviable"}
        file.write_text(json.dumps(state, indent=1))

    kept, unviable, programs = build([change for change in changes if state.get(change["name"], {}).get("result") != "unviable"], note)
    note(unviable)
    tests = measure(programs, len(changes))
    by_change: dict[int, list[tuple[str, str, float]]] = {}
    for key, test in tests.items():
        if test["passed"]:
            name, path = key.split(" ", 1)
            for number in test["changes"]:
                by_change.setdefault(number, []).append((name, path, test["seconds"]))
    print(f"{sum(test['passed'] for test in tests.values())} of {len(tests)} tests, {len(kept)} changes, of which {len(by_change)} are executed", flush=True)

    def one(change: dict) -> None:
        if change["name"] in unviable or time.monotonic() > end:
            return
        # Those of one program that take about as long stand together, and share processes.
        mine = sorted(by_change.get(change["number"], []), key=lambda test: (max(0, math.frexp(test[2] * 10)[1]), test[0], test[2]))
        by = attempt(change["number"], mine, programs)
        state[change["name"]] = {"digest": digests[change["file"]], "result": "caught" if by else "survived", "by": by}
        if not by:
            print(f"survived: {change['name']} ({len(mine)} tests)", flush=True)

    with ThreadPoolExecutor(jobs()) as pool:
        for number, _ in enumerate(pool.map(one, todo), 1):
            if number % 20 == 0 or number == len(todo):
                file.write_text(json.dumps(dict(state), indent=1))
    file.write_text(json.dumps(state, indent=1))
    return sum_up(changes, state)


if __name__ == "__main__":
    sys.exit(main())
