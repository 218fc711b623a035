"""Metrics: ten refusals raise one series by ten."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tollbar import Limiter, Table, metrics


def series(text: str) -> dict[str, str]:
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


def test_ten_refusals_raise_one_series_by_ten():
    table, limiter = Table(["5/min", "7/h"], capacity=100), Limiter("1/h")
    sources: dict[str, Limiter | Table] = {"logins": table, "api": limiter}
    for _ in range(5):
        assert table.allow("k")
    before = series(metrics(sources))
    for _ in range(10):
        assert not table.allow("k")
    after = series(metrics(sources))
    assert {name: value for name, value in after.items() if before[name] != value} == {
        'tollbar_decisions_total{limit="logins",policy="0",verdict="denied"}': "10"
    }
    assert 'tollbar_policy_info{limit="logins",policy="1",text="7/h"}' in after
    assert metrics(sources, openmetrics=True).endswith("\n# EOF\n")
    # More text than the first buffer has room for.
    assert len(metrics({f"table {n}": table for n in range(1024)})) > 320000


def test_what_is_wrong_is_said():
    table = Table("1/s", capacity=10)
    with pytest.raises(ValueError, match="at most 1024 limiters and tables, not 1025"):
        metrics({str(n): table for n in range(1025)})
    with pytest.raises(TypeError, match="takes limiters and tables, not 7"):
        metrics({"a": 7})  # type: ignore[dict-item]
    table.close()
    with pytest.raises(ValueError, match="the table is closed"):
        metrics({"a": table})


def test_c8_policies_have_the_names_of_the_program():
    table = Table({"gold": "5/s", 'tin "1"': "1/s"}, capacity=10)
    table.check("ann", policy="gold")
    text = metrics({'a\\b "c"': table, "other": Table(["1/s", "2/s"], capacity=10)})
    gold = 'tollbar_decisions_total{limit="a\\\\b \\"c\\"",policy="gold",verdict="allowed"} 1\n'
    assert gold in text and 'policy="tin \\"1\\"",text="1/s"' in text
    assert '{limit="other",policy="1",text="2/s"}' in text and text.count('policy="0"') == 4


def test_the_alerts_and_the_dashboard_name_metrics_that_exist():
    examples = Path(__file__).parents[3] / "examples" / "metrics"
    text = metrics({"a": Limiter("1/s"), "b": Table("1/s", capacity=10)})
    written = {line.partition("{")[0] for line in text.splitlines() if not line.startswith("#")}
    dashboard = json.loads((examples / "dashboard.json").read_text())
    asked = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    # ffi-tests/rules looks for the metrics of rules, which another library writes, and the tests of
    # nginx for those of leases.
    named = set(re.findall(r"\btollbar_(?!rule|shadow|lease)\w+", asked))
    assert len(named) > 8 and named <= written, named - written
    alerts = "\n".join(line for line in (examples / "alerts.yml").read_text().splitlines() if not line.startswith("#"))
    named = set(re.findall(r"\btollbar_(?!rule|shadow|lease)\w+", alerts))
    assert len(named) > 5 and named <= written, named - written
