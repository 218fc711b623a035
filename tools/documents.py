#!/usr/bin/env python3
"""Checks the documents beside the files: every relative link leads to a file and a heading, and
every name in docs/internals/verification.md and docs/change-it-safely.md that looks like a test or
a function stands in a source. The table of proofs goes from those for all inputs to examples, says
where each proof is, and names each module of loom models. The first page of each face fits one screen, begins with how to
install it, and has a program. Ends with `N passed, N failed`."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

top = Path(__file__).resolve().parent.parent
tracked = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=top, capture_output=True, text=True, check=True).stdout.split("\n")
# The benchmarks' template has the links of the page that it becomes.
documents = [top / name for name in tracked if name.endswith(".md") and not name.startswith("benches/") and (top / name).exists()]
sources = [top / name for name in tracked if re.search(r"\.(rs|c|h|hpp|cpp|py|go|lua|sh|toml|html|js|pyi)$|/abi/|config$", name)]
passed = failed = 0


def prose(path: Path) -> str:
    """The text without its programs."""
    return re.sub(r"(?ms)^ *```.*?^ *```", "", path.read_text())


def headings(path: Path) -> set[str]:
    """The anchors as GitHub makes them: lower case, without punctuation, a repeated one with a
    number."""
    found: dict[str, int] = {}
    for heading in re.findall(r"(?m)^#{1,6} (.*)$", prose(path)):
        anchor = re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
        number = found.get(anchor, 0)
        found[anchor] = number + 1
        if number:
            found[f"{anchor}-{number}"] = 1
    return set(found)


def check(path: Path, what: str, fault: str | None) -> None:
    global passed, failed
    passed, failed = passed + (fault is None), failed + (fault is not None)
    if fault is not None:
        print(f"FAIL {path.relative_to(top)}: {what}: {fault}")


for document in documents:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(document)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (document.parent / name).resolve() if name else document
        fault = None if file.exists() else "no such file; expected: a path beside the document"
        if fault is None and anchor and file.suffix == ".md" and anchor not in headings(file):
            fault = f"no such heading; expected one of: {', '.join(sorted(headings(file)))[:300]}"
        check(document, target, fault)

words = set()
for source in sources:
    if source.is_file():
        words.update(re.findall(r"\w+", source.read_text(errors="replace")))
words.update(word for name in tracked for word in re.findall(r"\w+", name))
for name in ("internals/verification.md", "change-it-safely.md"):
    document = top / "docs" / name
    for symbol in sorted(set(re.findall(r"`([A-Za-z_]\w*(?:::\w+)*|\w+_\w+)`", document.read_text()))):
        missing = [part for part in symbol.split("::") if part not in words]
        check(document, symbol, f"no source has {missing[0]}; expected: the name that the test or function has" if missing else None)

    # A path: it stands in the tree. Capitals stand for a name.
    for place in sorted(set(re.findall(r"`([a-z][\w.-]*/[\w./-]*)`", document.read_text()))):
        if place.startswith("build/") or re.search(r"\b[A-Z]+\b", place):
            continue
        check(document, place, None if (top / place).exists() else "no such file; expected: a path from the top")

# What is proved, and how: the ways from the strongest to the weakest, and where each proof is.
WAYS = ["for all inputs", "exhaustively, within bounds", "by search", "by example"]
verification = top / "docs" / "internals" / "verification.md"
table = verification.read_text().split("| Proved |", 1)[1].split("\n\n", 1)[0].split("\n")[2:]
rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table]
ways = [way for way in dict.fromkeys(re.sub(r"\*\*(.*?)\*\*.*", r"\1", row[0]) for row in rows if row[0])]
check(verification, "ways of a proof", None if ways == WAYS else f"found {ways}; expected: {WAYS}")
for row in rows:
    proof = re.findall(r"`([\w./-]+)`", row[-1])
    fault = None if proof and all((top / path).exists() for path in proof) or "](" in row[-1] else "expected: a path or a link, where the proof is"
    check(verification, f"where {row[1][:50]!r} is proved", fault)

# Each module of models, of which the page of bounds has one heading, stands in the tables.
bounds = (top / "docs" / "internals" / "model-bounds.md").read_text()
for module in re.findall(r"(?m)^## `(?:\w+::)*?(\w+)::models", bounds):
    named = {f"`{module}::models`", f"`{module}/models.rs`"} if module not in ("line", "live", "ring") else {"crates/tollbar-redis/src/lease"}
    text = verification.read_text()
    fault = None if any(name in text or name.strip("`") + "`" in text for name in named) else "no row names it; expected: what its models prove"
    check(verification, f"{module}::models", fault)

# Mutations: at most 2 % survive, and each survivor has its reason.
survived = 0
for row in re.findall(r"(?m)^\|(?: [^|]+ \|)(?: [\d,]+ \|){5}$", verification.read_text().split("## Mutations", 1)[1]):
    caught, lives = (int(row.split("|")[column].strip().replace(",", "")) for column in (3, 6))
    survived += lives
    check(verification, row, None if lives <= 0.02 * (caught + lives) else "expected: at most 2 % survive")
explained = len(tomllib.loads((top / "tools" / "mutants.toml").read_text()).get("survivor", []))
check(verification, "survivors", None if survived == explained else f"{survived} survivors; tools/mutants.toml explains {explained}")

# The first page of each face: what installs it, and the language of its program. The face's tests
# run it, or compile it if it needs a Redis.
faces = {
    "src/README.md": ("cargo add tollbar", "rust"),
    "crates/tollbar-tower/README.md": ("cargo add tollbar", "rust"),
    "crates/tollbar-redis/README.md": ("cargo add tollbar", "rust"),
    "crates/tollbar-rules/README.md": ("cargo add tollbar", "rust"),
    "bindings/python/README.md": ("pip install", "python"),
    "bindings/go/README.md": ("go get", "go"),
    "bindings/lua/README.md": ("apt install", "lua"),
    "bindings/php/README.md": ("apt install", "php"),
    "bindings/node/README.md": ("npm install", "js"),
    "bindings/java/README.md": ("apt install", "java"),
    "nginx/README.md": ("make nginx", "nginx"),
    "docs/cpp.md": ("apt install", "cpp"),
}
# A screen of 60 lines, and some for a longer program.
SCREEN = 70
for name, (install, language) in faces.items():
    lines = (top / name).read_text().split("\n")
    begins = " ".join([line for line in lines[1:] if line and not line.startswith("```")][:1])
    check(top / name, "length", None if len(lines) <= SCREEN else f"{len(lines)} lines; expected: at most {SCREEN}")
    check(top / name, "first line", None if install in begins else f"found {begins!r}; expected: how to install it ({install})")
    program = any(re.match(rf"```{language}\b", line) for line in lines)
    check(top / name, "program", None if program else f"no program in {language}; expected: one")

print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
