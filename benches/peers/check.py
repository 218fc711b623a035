"""Checks that a benchmarks.md is complete: every peer, every target, and charts that a browser can
read. check.py DIRECTORY"""

import sys
import xml.etree.ElementTree
from pathlib import Path

PEERS = [
    "governor", "ratelimit", "leaky-bucket", "pingora-limits", "folly's TokenBucket", "x/time/rate (Go)", "uber-go/ratelimit (Go)",
    "Guava (Java)", "limits (Python)", "pyrate-limiter (Python)", "limit_req",
]
CHARTS = ["one-key", "keys", "memory", "processors"]


def main():
    docs = Path(sys.argv[1])
    text = (docs / "benchmarks.md").read_text()
    wrong = [f"{peer} is not in it" for peer in PEERS if peer not in text]
    wrong += [f"it says {word}" for word in ("NaN", "inf ", "not run", "of unknown version") if word in text]
    for chart in CHARTS:
        try:
            root = xml.etree.ElementTree.parse(docs / "benchmarks" / f"{chart}.svg").getroot()
            if not [element for element in root.iter() if element.tag.endswith("circle")]:
                wrong.append(f"{chart}.svg shows nothing")
        except (OSError, xml.etree.ElementTree.ParseError) as error:
            wrong.append(f"{chart}.svg: {error}")
    for line in wrong:
        print(line)
    print(f"{len(PEERS) + len(CHARTS) - min(len(wrong), len(PEERS) + len(CHARTS))} passed, {len(wrong)} failed")
    raise SystemExit(bool(wrong))


main()
