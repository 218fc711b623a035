"""Rust functions as the proofs restate them: a proof compares its copy of a body with the source."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def body(path, function, after=""):
    """The body of a function, without comments, its blanks as single ones. `after` is a line of
    the source before the function, where several functions of the file have its name."""
    text = (ROOT / path).read_text()
    text = text[text.index(after) :]
    begin = re.search(rf"\bfn {function}\b", text)
    if begin is None:
        raise SystemExit(f"{path}: no function {function}")
    at = text.index("{", text.index(")", begin.end()))
    depth, end = 0, at
    for end in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if depth == 0:
            break
    return plain(text[at + 1 : end])


def plain(text):
    """Without comments and line ends: a chain of methods is one line."""
    return re.sub(r" \.", ".", " ".join(re.sub(r"//[^\n]*", "", text).split()))


def restates(path, function, copy, after=""):
    """Stops unless the function's body is `copy`: then the proof is about the code that is there."""
    found = body(path, function, after)
    if found != plain(copy):
        raise SystemExit(
            f"{path}: fn {function} is not what the proof restates. Restate it, then change the copy.\n"
            f"found:    {found}\nexpected: {plain(copy)}"
        )


def states(path, function, *statements):
    """Stops unless the function's body has each of the statements: a proof assumes what they
    compute.
    """
    found = body(path, function)
    for statement in statements:
        if plain(statement) not in found:
            raise SystemExit(f"{path}: fn {function} does not state: {plain(statement)}")
