#!/usr/bin/env python3
"""Finds the loom model that notices each atomic ordering of the core, and each planted fault.

A *site* is one ordering stronger than Relaxed in src/. The tool weakens one site after the other to
Relaxed, or leaves out the fence, and runs the models of the site's module until one fails. It
compiles the models once: in the copy in build/orderings each ordering asks at run time whether it
is the weakened one.

    tools/orderings.py                        all sites, as `make soak ONLY=orderings`
    ORDERINGS=src/queue tools/orderings.py    the sites of one file or folder, or of several
    tools/orderings.py --check                whether tools/orderings.txt and tools/faults.toml fit the sources

tools/faults.toml has faults of the protocols: a line of a file, an expression in it, another one in
its place, and the model that fails then. A run plants those of the chosen files, too.

A run goes on where the last one stopped (build/orderings/state.json). It tries a site again if a
file of the site's module has changed. tools/orderings.txt has the result: file, function, ordering
and model. A site that no model notices has a comment that begins with "No model notices" and says
why. The comment is the last one above the site in its function, or in the file's first comment for
all sites of the file.

`--check` fails on a site that has neither a line nor a comment, on one that has both, and on a line
without a site. A line may say that the site has not been tried; new code gets no such line. Loom
treats SeqCst accesses as AcqRel, so a model that notices a SeqCst shows that AcqRel is needed. Compiler
fences order nothing between threads, and are no sites."""

import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

top = Path(__file__).resolve().parent.parent
work = top / "build" / "orderings"
listed = top / "tools" / "orderings.txt"
planted = top / "tools" / "faults.toml"
phrase = "No model notices"
# The longest that a model may take, in seconds of the processor. A model that takes longer has
# noticed the change.
LONGEST = 600
# In place of a model: no run has tried this site yet.
UNTRIED = "not tried"

# The models that can notice the sites below a path: the beginnings of their names in the library,
# and after `loom ` those in tests/loom. The longest path counts. Code without models is not
# compiled under loom.
MODELS = {
    "src/clock/bell.rs": ["limiter::waiting::"],
    "src/clock/record": ["clock::record::"],
    "src/hierarchy": ["hierarchy::"],
    "src/in_flight": ["in_flight::", "take_many::"],
    "src/limiter": ["limiter::", "take_many::", "loom "],
    "src/limiter/cell": ["loom cell_", "loom a_", "loom refusals_", "loom waiters_", "loom watch_"],
    "src/limiter/change.rs": ["loom set_policy_"],
    "src/limiter/gaps.rs": ["loom a_gap_", "limiter::waiting::"],
    "src/limiter/log.rs": ["loom log::", "loom ring::ring_and_log_", "limiter::state_word::", "limiter::unfolding::"],
    "src/limiter/ring.rs": ["loom ring::", "loom log::ring_and_log_", "limiter::state_word::", "limiter::unfolding::"],
    "src/limiter/state_word": ["limiter::state_word::", "limiter::unfolding::", "loom ring::", "loom log::"],
    "src/limiter/striped": ["limiter::striped::"],
    "src/limiter/tally": ["limiter::tally::"],
    "src/limiter/unfolding": ["limiter::unfolding::"],
    "src/limiter/waiting": ["limiter::waiting::"],
    "src/meter": ["meter::"],
    "src/queue": ["queue::"],
    "src/sync": ["limiter::", "queue::", "loom "],
    "src/table/memory/counters": ["table::memory::counters::"],
    "src/table/memory/refusals.rs": ["table::memory::refusals::"],
    "src/table/memory/receipts.rs": ["table::slots::"],
    "src/table/memory/returns.rs": ["table::slots::"],
    "src/table/memory/slot.rs": ["table::slots::"],
    "src/table/memory/special.rs": ["table::slots::", "table::policies::"],
    "src/table/policies": ["table::policies::"],
    "src/table/slots": ["table::slots::"],
    "src/take_many": ["take_many::"],
}
ORDERING = re.compile(r"(\bfence\()?(?:\bcore::sync::atomic::)?\bOrdering::(Acquire|Release|AcqRel|SeqCst)\b(?(1)\))")
FUNCTION = re.compile(r"^\s*(?:pub(?:\([a-z ]+\))? )?(?:const )?(?:unsafe )?fn (\w+)")


class Site:
    """One ordering. `line` counts from 1; `start` and `end` are its place in that line."""

    def __init__(self, path: str, function: str, line: int, match: re.Match, reason: bool):
        self.path, self.function, self.line, self.reason = path, function, line, reason
        self.start, self.end, self.is_fence = match.start(), match.end(), match[1] is not None
        self.ordering = match[2]
        self.key = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.function} {self.ordering}"


class Fault:
    """A planted fault: in the line `line` of a function, `by` is in place of `replace`."""

    def __init__(self, path: str, function: str, line: str, replace: str, by: str, model: str):
        self.path, self.function, self.replace, self.by, self.model = path, function, replace, by, model
        file, inside, found = top / path, "", []
        for number, text in enumerate(file.read_text().split("\n") if file.exists() else [], 1):
            if match := FUNCTION.match(text):
                inside = match[1]
            if inside == function and text.strip() == line:
                found.append((number, text.find(replace)))
        self.line, self.start = found[0] if len(found) == 1 and line.count(replace) == 1 else (0, 0)

    def __str__(self) -> str:
        return f"{self.path} {self.function}: {self.by} for {self.replace}"


def faults() -> list[Fault]:
    return [Fault(**fault) for fault in tomllib.loads(planted.read_text())["fault"]]


def is_shipped(path: Path) -> bool:
    """Whether the file is part of the crate: no test, and no stand-in of loom's."""
    names = path.relative_to(top).parts
    stem = path.stem
    return not ({"models", "tests"} & set(names)) and stem not in ("models", "model", "tests",
        "fake") and not stem.endswith("_tests")


def without_loom(lines: list[str]) -> list[str]:
    """The lines, with an empty one in place of each of an item that only loom has."""
    kept, until = [], ""
    for number, line in enumerate(lines):
        if not until and line.strip() == "#[cfg(loom)]":
            blanks = line[: len(line) - len(line.lstrip())]
            item = next(other for other in lines[number + 1 :] if not other.strip().startswith(("#", "//")))
            until = ";" if item.endswith((";", ",")) else blanks + "}"
        kept.append("" if until else line)
        if (until == ";" and line.endswith((";", ","))) or (until and until != ";" and line == until):
            until = ""
    return kept


def sites_of(path: Path) -> list[Site]:
    name = str(path.relative_to(top))
    found: list[Site] = []
    function, comment, in_comment, for_loom = "", "", False, False
    lines = without_loom(path.read_text().split("\n"))
    whole = any(line.startswith("//!") and phrase in line for line in lines)
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith("//"):
            comment = comment + " " + text.lstrip("/! ") if in_comment else text.lstrip("/! ")
            in_comment = True
            continue
        in_comment = False
        if text.startswith("#[cfg(test)]") and number < len(lines) and re.match(r"\s*mod \w+ \{", lines[number]):
            break
        if match := FUNCTION.match(line):
            function, comment = match[1], comment if lines[number - 2].strip().startswith(("//", "#")) else ""
        if text == "}" and line.startswith(("}", "    }")):
            comment = ""
        if "compiler_fence(" not in line and "loom::sync" not in line:
            found += [Site(name, function, number, match, whole or phrase in comment)
                for match in ORDERING.finditer(line)]
    # Several sites of one function with one ordering are numbered.
    seen: dict[str, int] = {}
    for site in found:
        key = f"{site.path} {site.function} {site.ordering}"
        seen[key] = seen.get(key, 0) + 1
        site.key = key if seen[key] == 1 else f"{key} {seen[key]}"
    return found


def module_of(path: str) -> str:
    """The longest path of MODELS that the file is below, or the file."""
    return max((place for place in MODELS if path.startswith(place)), key=len, default=path)


def models_of(path: str) -> list[str]:
    return MODELS.get(module_of(path), [])


def read_list() -> dict[str, str]:
    if not listed.exists():
        return {}
    lines = (line for line in listed.read_text().split("\n") if line and not line.startswith("#"))
    return dict(line.split(": ", 1) for line in lines)


def check(sites: list[Site]) -> int:
    passed = failed = 0
    known = read_list()
    for site in sites:
        model = known.pop(site.key, None)
        fault = None
        if model is None and not site.reason:
            fault = ("no model and no comment; expected: a line in tools/orderings.txt, "
                     f'or a comment "{phrase} …" that says why')
        elif model is not None and site.reason:
            fault = f'{model} notices it; expected: no comment "{phrase} …"'
        passed, failed = passed + (fault is None), failed + (fault is not None)
        if fault:
            print(f"FAIL {site}: {fault}")
    for key in known:
        failed += 1
        print(f"FAIL tools/orderings.txt: {key}: no such ordering; "
              "expected: a line for each ordering that a model notices")
    for fault in faults():
        passed, failed = passed + (fault.line != 0), failed + (fault.line == 0)
        if fault.line == 0:
            print(f"FAIL tools/faults.toml: {fault}; expected: one such line in that function, with one such expression")
    untried = list(read_list().values()).count(UNTRIED)
    if untried:
        print(f"{untried} orderings have not been tried: make soak ONLY=orderings")
    print(f"{passed} passed, {failed} failed")
    return failed


def instrument(sites: list[Site], planted: list[Fault]) -> None:
    """The sources in build/orderings/tree, in which TOLLBAR_WEAKENED chooses a site or a fault.
    Files that do not change keep their times, so that cargo compiles no more than it must."""
    tree = work / "tree"
    # What is put in place of what: file, line, beginning, end, text.
    edits: list[tuple[str, int, int, int, str]] = []
    for number, site in enumerate(sites):
        call = f"crate::sync::fence_unless({number}, " if site.is_fence else f"crate::sync::weakened({number}, "
        edits.append((site.path, site.line, site.start, site.end, f"{call}core::sync::atomic::Ordering::{site.ordering})"))
    for number, fault in enumerate(planted, len(sites)):
        end = fault.start + len(fault.replace)
        edits.append((fault.path, fault.line, fault.start, fault.start,
            f"(if crate::sync::is_planted({number}) {{ {fault.by} }} else {{ "))
        edits.append((fault.path, fault.line, end, end, " })"))
    wanted: dict[Path, str] = {}
    for path in [*(top / "src").rglob("*"), *(top / "tests").rglob("*.rs"), top / "Cargo.lock"]:
        if not path.is_file():
            continue
        name = path.relative_to(top)
        lines = path.read_text().split("\n")
        for _, number, start, end, new in sorted((edit for edit in edits if edit[0] == str(name) and edit[1]), reverse=True):
            line = lines[number - 1]
            lines[number - 1] = line[:start] + new + line[end:]
        text = "\n".join(lines)
        if str(name) == "src/sync.rs":
            text += CHOICE
        wanted[tree / name] = text
    manifest = (top / "Cargo.toml").read_text()
    manifest = re.sub(r"(?ms)^members = \[.*?^\]", 'members = ["."]', manifest)
    manifest = re.sub(r"(?m)^default-members.*$", "", manifest)
    manifest = re.sub(r"(?ms)^\[\[(bench|example)\]\]\n.*?\n\n", "", manifest)
    manifest = re.sub(r'(?m)^(tollbar[-\w]* = ).*path = "crates.*$', "", manifest)
    wanted[tree / "Cargo.toml"] = manifest
    for path in tree.rglob("*") if tree.exists() else []:
        if path.is_file() and path not in wanted:
            path.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


CHOICE = """
/// The weaker ordering if TOLLBAR_WEAKENED chooses this site.
#[doc(hidden)]
#[allow(missing_docs, dead_code)]
#[inline]
pub fn weakened(site: usize, order: Ordering) -> Ordering {
    if site == chosen() { Ordering::Relaxed } else { order }
}
#[doc(hidden)]
#[allow(missing_docs, dead_code)]
#[inline]
pub fn fence_unless(site: usize, order: Ordering) {
    if site != chosen() {
        fence(order);
    }
}
#[doc(hidden)]
#[allow(missing_docs, dead_code)]
pub fn is_planted(fault: usize) -> bool {
    fault == chosen()
}
fn chosen() -> usize {
    static CHOSEN: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(|| {
        std::env::var("TOLLBAR_WEAKENED").ok().and_then(|n| n.parse().ok()).unwrap_or(usize::MAX)
    })
}
"""


def programs(targets: list[str]) -> dict[str, str]:
    """Compiles the models; the paths of the programs: `lib` and, if a site needs it, `loom`."""
    environment = dict(os.environ, RUSTFLAGS="--cfg loom",
        CARGO_TARGET_DIR=os.environ.get("CARGO_TARGET_DIR", str(top / "target" / "loom")))
    command = ["cargo", "test", "--offline", "--profile", "models", *targets, "--no-run", "--message-format", "json"]
    built = subprocess.run(command, cwd=work / "tree", env=environment, stdout=subprocess.PIPE, text=True)
    if built.returncode:
        for line in built.stdout.split("\n"):
            if line.startswith("{") and json.loads(line).get("reason") == "compiler-message":
                print(json.loads(line)["message"]["rendered"])
        sys.exit("tools/orderings.py: the models do not compile")
    found = {}
    for line in built.stdout.split("\n"):
        artefact = json.loads(line) if line.startswith("{") else {}
        if artefact.get("executable"):
            found["loom" if artefact["target"]["name"] == "loom" else "lib"] = artefact["executable"]
    # cargo may write another program under the same name meanwhile.
    (work / "programs").mkdir(exist_ok=True)
    return {name: shutil.copy(path, work / "programs" / f"{name}-{os.getpid()}") for name, path in found.items()}


def tests_of(program: str) -> list[str]:
    output = subprocess.run([program, "--list", "--format", "terse"], stdout=subprocess.PIPE, text=True,
        check=True).stdout
    return [line.removesuffix(": test") for line in output.split("\n") if line.endswith(": test")]


def fails(program: str, test: str, site: int) -> bool:
    environment = dict(os.environ, TOLLBAR_WEAKENED=str(site))
    done = subprocess.run([program, "--exact", test, "--test-threads", "1"], env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST + 1)))
    return done.returncode != 0


def digest_of(path: str) -> str:
    """Changes with every file that may change the site's result: those of its module."""
    begins = [module_of(path)] + [begin.split(" ")[0].strip(":").replace("::", "/") for begin in models_of(path)]
    whole = hashlib.sha256()
    for file in sorted([*(top / "src").rglob("*.rs"), *(top / "tests" / "loom").rglob("*.rs")]):
        name = str(file.relative_to(top))
        if any(name.startswith((begin, f"src/{begin}", f"tests/{begin}")) for begin in begins):
            lines = file.read_text().split("\n")
            whole.update("\n".join(line for line in lines if not line.strip().startswith("//")).encode())
    return whole.hexdigest()[:16]


def write_list(sites: list[Site], results: dict[str, str]) -> None:
    tried = {site.key for site in sites}
    known = {key: model for key, model in read_list().items() if key not in tried}
    known.update({key: model for key, model in results.items() if model})
    every = {site.key for site in all_sites()}
    known.update({site.key: UNTRIED for site in all_sites() if not site.reason and site.key not in known
        and site.key not in tried})
    text = "# The model that notices each ordering: written by tools/orderings.py (make soak ONLY=orderings).\n"
    text += "".join(f"{key}: {known[key]}\n" for key in sorted(known) if key in every)
    listed.write_text(text)


def all_sites() -> list[Site]:
    return [site for path in sorted((top / "src").rglob("*.rs")) if is_shipped(path) for site in sites_of(path)]


def main() -> int:
    sites = all_sites()
    if "--check" in sys.argv[1:]:
        return check(sites) != 0
    places = os.environ.get("ORDERINGS", "src").split()
    unknown = [place for place in places if not (top / place).exists()]
    if unknown:
        sys.exit(f"ORDERINGS: no such path: {unknown[0]}; expected: files or folders of src, with a blank between them")
    work.mkdir(parents=True, exist_ok=True)
    file = work / "state.json"
    state = json.loads(file.read_text()) if file.exists() else {}
    chosen = [(n, site) for n, site in enumerate(sites) if any(site.path.startswith(place) for place in places)
        and models_of(site.path)]
    digests = {path: digest_of(path) for path in {site.path for _, site in chosen}}
    todo = [(n, site) for n, site in chosen if state.get(site.key, {}).get("digest") != digests[site.path]]
    every_fault = faults()
    todo_faults = [(n, fault) for n, fault in enumerate(every_fault, len(sites))
        if any(fault.path.startswith(place) for place in places)]
    spent: dict[str, float] = {}
    if todo or todo_faults:
        instrument(sites, every_fault)
        needs_loom = any(begin.startswith("loom ") for _, site in todo for begin in models_of(site.path)) or any(
            fault.model.startswith("loom ") for _, fault in todo_faults)
        built = programs(["--lib", "--test", "loom"] if needs_loom else ["--lib"])
        tests = [(program, test) for program in built for test in tests_of(built[program])]
    # A model that has noticed one site of a file, and a short model, comes first.
    wins: dict[tuple[str, str], int] = {}
    for n, site in todo:
        begins = models_of(site.path)
        fitting = [(program, test) for program, test in tests
            if any((test if program == "lib" else f"loom {test}").startswith(begin) for begin in begins)]
        for program, test in fitting:
            if test not in spent:
                start = time.monotonic()
                if fails(built[program], test, len(sites) + len(every_fault)):
                    sys.exit(f"tools/orderings.py: {test} fails without a change")
                spent[test] = time.monotonic() - start
        fitting.sort(key=lambda test: (-wins.get((site.path, test[1]), 0), spent[test[1]]))
        noticed = ""
        for program, test in fitting:
            if fails(built[program], test, n):
                noticed = test if program == "lib" else f"loom {test}"
                wins[site.path, test] = wins.get((site.path, test), 0) + 1
                break
        state[site.key] = {"digest": digests[site.path], "model": noticed}
        file.write_text(json.dumps(state, indent=1))
        print(f"{site}: {noticed or 'no model notices it'}", flush=True)
    results = {site.key: state[site.key]["model"] for _, site in chosen}
    write_list([site for _, site in chosen], results)
    failed = 0
    for n, fault in todo_faults:
        program, test = ("loom", fault.model[5:]) if fault.model.startswith("loom ") else ("lib", fault.model)
        if (program, test) not in tests or not fails(built[program], test, n):
            failed += 1
            print(f"FAIL {fault}: {fault.model} does not notice it; expected: a model that fails with this fault")
        else:
            print(f"{fault}: {fault.model}", flush=True)
    for _, site in chosen:
        if not results[site.key] and not site.reason:
            failed += 1
            print(f"FAIL {site}: no model notices it; "
                  f'expected: a model that does, or a comment "{phrase} …" that says why')
    print(f"{len(chosen) + len(todo_faults) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
