"""What limits cost a request, in instructions, beside nginx's own: counted by callgrind, so that
the machine's load does not matter."""

import sys

import pytest

from harness import places

sys.path.insert(0, str(places.ROOT / "nginx" / "bench"))

import cost  # noqa: E402

REQUESTS = 100


def limits(monkeypatch, tmp_path, count, *flavours):
    """What so many limits on one address add to a request."""
    case = f"one address, {count} limits"
    monkeypatch.setitem(cost.CASES, case, ("$binary_remote_addr", count, lambda n: 0, "1m"))
    found = [cost.per_request(tmp_path / str(count), flavour, case, REQUESTS) for flavour in ("none", *flavours)]
    return [one - found[0] for one in found[1:]]


@pytest.mark.parametrize("few, many", [(3, 20)])
def test_limits_cost_less_than_nginx_has_for_them_and_each_the_same(monkeypatch, tmp_path, few, many):
    """Every limit but one is asked twice, before and when it is charged; the many cost as much each
    as the few."""
    stock, *ours = limits(monkeypatch, tmp_path, few, "limit_req", "drop-in", "tollbar")
    for one, all_of_them in zip(ours, limits(monkeypatch, tmp_path, many, "drop-in", "tollbar"), strict=True):
        assert one < stock
        # The first limit is only charged, without a peek before. It is a larger part of the few
        # limits than of the many.
        assert all_of_them / many < 1.15 * one / few
