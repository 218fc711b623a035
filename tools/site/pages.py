"""MkDocs' hook for the site: adds the pages that live beside the code, and makes every link lead to
a page or to a file of the repository.

A link of a page may name any file of the repository, relative to the page's own place there, as on
a forge. If that file is a page of the site, the link leads to the page. Otherwise it leads to the
file in the repository. A link to a file that is not there ends the build.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
FILES = "https://github.com/tollbar/tollbar/blob/main/"

# Pages of the site that are not in docs/, and their sources.
PAGES = {
    "index.md": "README.md",
    "guide/rust.md": "src/README.md",
    "guide/python.md": "bindings/python/README.md",
    "guide/go.md": "bindings/go/README.md",
    "guide/lua.md": "bindings/lua/README.md",
    "changes.md": "CHANGELOG.md",
}
# The report of `tollbar replay --html`, which tools/site/build.sh makes.
REPORT = ROOT / "build" / "site-report.html"
# A Markdown link whose target is neither a page's own heading nor an address.
LINK = re.compile(r"(\]\()(?!#|[a-z]+:)([^)\s]+)(\))")


# What the search shows last: whoever looks for "burst" wants a guide before a decision on it, and
# before the names that it has elsewhere.
BACKGROUND = (
    "internals/", "from-", "names.md", "benchmarks", "changes.md", "architecture.md",
    "dependencies.md", "change-it-safely.md",
)
# A Rust example: its fence with words for the test that runs it, and its lines.
EXAMPLE = re.compile(r"^```rust[^\n]*\n(.*?)^```$", re.M | re.S)
# A line of an example that only the test needs.
HIDDEN = re.compile(r"^#(?: .*)?\n", re.M)


def source_of(uri: str) -> str:
    """The file of the repository that a page was made from."""
    return PAGES.get(uri, f"docs/{uri}")


def on_files(files, config):
    for uri, source in PAGES.items():
        files.append(File.generated(config, uri, content=(ROOT / source).read_text()))
    files.append(File.generated(config, "report.html", abs_src_path=str(REPORT)))
    files.append(File.generated(config, "assets/iframe-worker.js", abs_src_path=str(ROOT / "tools" / "site" / "iframe-worker.js")))
    return files


def on_page_markdown(markdown, page, config, files):
    own = page.file.src_uri
    if own.startswith(BACKGROUND):
        page.meta["search"] = {"boost": 0.02}
    folder = posixpath.dirname(source_of(own))
    pages = {source_of(file.src_uri): file.src_uri for file in files}

    def lead(match):
        target, _, heading = match.group(2).partition("#")
        path = posixpath.normpath(posixpath.join(folder, target))
        if path in pages:
            path = posixpath.relpath(pages[path], posixpath.dirname(own) or ".")
        elif (ROOT / path).exists():
            path = FILES + path
        else:
            raise PluginError(f"{source_of(own)}: the link {match.group(2)} leads to {path}, which is not there")
        return match.group(1) + path + ("#" + heading if heading else "") + match.group(3)

    markdown = EXAMPLE.sub(lambda code: f"```rust\n{HIDDEN.sub('', code.group(1))}```", markdown)
    # Code is no place for links.
    parts = re.split(r"(^```.*?^```$|`[^`\n]*`)", markdown, flags=re.M | re.S)
    return "".join(part if n % 2 else LINK.sub(lead, part) for n, part in enumerate(parts))
