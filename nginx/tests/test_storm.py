"""The short form of storm.py. The stock module does not come through its long form, so only ours
are asked here."""

import pytest

from harness import places
from storm import storm

KILLS = 20


@pytest.mark.parametrize("flavour", [places.DROPIN_FLAVOUR, "tollbar"])
def test_killed_workers_do_no_damage(tmp_path, flavour):
    damage = storm(tmp_path / "nginx", flavour, KILLS)
    assert damage.requests > 100
    assert not damage.any(), damage
