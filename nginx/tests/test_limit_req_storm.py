"""The short form of storm.py. The stock module does not come through its long form, so only ours is asked here."""

from harness import places
from storm import storm

KILLS = 20


def test_killed_workers_do_no_damage(tmp_path):
    damage = storm(tmp_path / "nginx", places.DROPIN_FLAVOUR, KILLS)
    assert damage.requests > 100
    assert not damage.any(), damage
