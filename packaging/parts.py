#!/usr/bin/env python3
"""parts.py FILE.crate: prints, for each part of a crate's package, by how many bytes the package
shrinks without that part. Compression shares words among the parts, so the figures do not add up to
the whole."""

import io
import re
import sys
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

with tarfile.open(sys.argv[1]) as archive:
    files = [(entry.name, archive.extractfile(entry).read()) for entry in archive if entry.isfile()]
Kept = Callable[[str, str], bool]


def size(of: list[tuple[str, bytes]]) -> int:
    """The bytes of a package of these files, compressed as cargo does it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in of:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    packed = zlib.compressobj(9, zlib.DEFLATED, 31)
    return len(packed.compress(out.getvalue()) + packed.flush())


def stripped(drop: Kept) -> list[tuple[str, bytes]]:
    """The files without the comments for which `drop(kind, line of the item)` holds."""
    result = []
    for name, content in files:
        if name.endswith(".rs"):
            lines, kept = content.decode().split("\n"), []
            for n, line in enumerate(lines):
                text = line.strip()
                kind = next((kind for kind in ("///", "//!", "//") if text.startswith(kind)), "")
                item = next((one.strip() for one in lines[n:] if not re.match(r"\s*(///|#\[)", one)), "") if kind == "///" else ""
                if not kind or not drop(kind, item):
                    kept.append(line)
            content = "\n".join(kept).encode()
        result.append((name, content))
    return result


whole = size(files)
print(f"{Path(sys.argv[1]).stat().st_size:9,} bytes: the package, {len(files)} files of {sum(len(content) for _, content in files):,} bytes")
for what, drop in (
    ("all comments", lambda kind, item: True),
    ("  of public items (///)", lambda kind, item: kind == "///" and item.startswith("pub ")),
    ("  of other items, fields and variants (///)", lambda kind, item: kind == "///" and not item.startswith("pub ")),
    ("  of modules (//!)", lambda kind, item: kind == "//!"),
    ("  in functions (//)", lambda kind, item: kind == "//"),
):
    print(f"{whole - size(stripped(drop)):9,} {what}")
outside = [one for one in files if re.search(r"/src/.*\.rs$", one[0])]
print(f"{whole - size(outside):9,} Cargo.lock, licences, README, manifests")
bare = [one for one in stripped(lambda kind, item: True) if re.search(r"/src/.*\.rs$", one[0])]
print(f"{size(bare):9,} code alone")
modules = sorted({match[1] for name, _ in files if (match := re.search(r"/src/(\w+)/", name))})
for module in modules:
    print(f"{whole - size([one for one in files if not re.search(rf'/src/{module}(/|.rs$)', one[0])]):9,} module {module}")
