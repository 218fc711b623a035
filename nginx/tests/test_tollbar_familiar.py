"""What limit_req does, tollbar does in the same words: the tests of the one, in the words of the
other."""

import pytest

from harness import places
from harness.tollbar import Familiar, launcher
from test_limit_req_admission import *  # noqa: F401,F403
from test_limit_req_delay import *  # noqa: F401,F403
from test_limit_req_inheritance import *  # noqa: F401,F403
from test_limit_req_keys import *  # noqa: F401,F403
from test_limit_req_once import *  # noqa: F401,F403
from test_limit_req_processes import *  # noqa: F401,F403
from test_limit_req_several import *  # noqa: F401,F403

launch = launcher(Familiar)


@pytest.fixture
def flavour():
    return places.DROPIN_FLAVOUR
