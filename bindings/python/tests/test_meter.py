"""Meters: green, yellow and red packets, with the numbers of the C tests, and beside the texts of
the RFCs."""

import random
from collections import Counter
from datetime import timedelta

import pytest
from tollbar import Meter, PolicyError

SEC = 1_000_000_000
HOUR = 3600 * SEC


def single_rate(**options):
    return Meter(1000, **{"committed_burst": 3000, "excess_burst": 1500, **options})


def test_one_rate_and_two_bursts():
    """RFC 2697: tokens fill the committed bucket first, and then the excess bucket."""
    meter = single_rate()
    assert [meter.color(size, at=HOUR) for size in (3000, 1500, 1)] == ["green", "yellow", "red"]
    assert [meter.color(size,
                        at=HOUR + 4 * SEC) for size in (3000, 1001,
                                                        1000)] == ["green", "red", "yellow"]


def test_colors_of_an_earlier_meter():
    meter = single_rate()
    colors = [meter.color(1000, before, at=HOUR) for before in ("red", "yellow", "yellow", "green")]
    assert colors == ["red", "yellow", "red", "green"]
    # By the library's clock. Another meter, because HOUR may be in the future of a machine that has
    # just started.
    assert single_rate().color(3000) == "green" and single_rate().color(3001) == "red"


def test_two_rates_beside_the_text_of_the_rfc():
    """RFC 2698, token by token: a millisecond adds 1 token at 1000/s, and 3 at 3000/s."""
    rng, now, seen = random.Random(2698), HOUR, Counter()
    meter = Meter(1000, 40, peak_bytes=3000, peak_burst=60)
    committed, peak = 40, 60
    for step in range(20_000):
        size, passed, before = rng.randrange(50), rng.randrange(12), rng.choice(["green"] * 6 + ["yellow", "red"])
        now += passed * 1_000_000
        committed, peak = min(40, committed + passed), min(60, peak + 3 * passed)
        if before == "red" or peak < size:
            want = "red"
        elif before == "yellow" or committed < size:
            want, peak = "yellow", peak - size
        else:
            want, peak, committed = "green", peak - size, committed - size
        assert meter.color(size, before, at=now) == want, step
        seen[want] += 1
    assert min(seen.values()) > 1_000 and len(seen) == 3, seen


def test_periods():
    """1000 bytes in two seconds, as seconds or as a timedelta."""
    for period in (2, 2.0, timedelta(seconds=2)):
        meter = single_rate(excess_burst=None, period=period)
        assert meter.color(3000, at=HOUR) == "green"
        assert [meter.color(n, at=HOUR + SEC) for n in (501, 500, 1)] == ["red", "green", "red"]


def test_wrong_arguments():
    for options, name in (
        ({"period": 0}, "PERIOD_ZERO"),
        ({"committed_burst": 0, "excess_burst": 0}, "BURST_ZERO"),
        ({"excess_burst": 2**64 - 1}, "BURST_TOO_LARGE"),
        ({"excess_burst": None, "peak_bytes": 999, "peak_burst": 1}, "RATE_TOO_HIGH"),
    ):
        with pytest.raises(PolicyError) as raised:
            single_rate(**options)
        assert raised.value.name == f"TOLLBAR_E_{name}"
    with pytest.raises(PolicyError):
        Meter(16 * SEC, 1)
    for options in ({"peak_bytes": 5}, {"peak_bytes": 2000, "peak_burst": 5},
                    {"excess_burst": None, "peak_bytes": 0, "peak_burst": 1}):
        with pytest.raises(ValueError):
            single_rate(**options)
    meter = single_rate()
    for arguments in ((-1,), (1, "blue"), (1, None), (1, 2)):
        with pytest.raises(ValueError):
            meter.color(*arguments)
    for arguments in ((), ("1",), (1.5,), (1, "green", HOUR)):
        with pytest.raises(TypeError):
            meter.color(*arguments)
    assert meter.color(3000) == "green"
