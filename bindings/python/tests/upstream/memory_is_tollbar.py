"""A plugin of pytest: whatever asks `limits` for memory:// gets a tollbar storage in a file of its
own. So the tests of limits and flask-limiter run as they are, against TollbarStorage."""

import glob
import itertools
import os

import limits.aio.storage
import limits.storage
import pytest
from limits._storage_scheme import SCHEMES
from tollbar.limits import AsyncTollbarStorage, TollbarStorage

PATH = f"/dev/shm/tollbar-upstream-{os.getpid()}"
# The fixtures of servers that these tests start with docker.
SERVERS = {"docker_services", "host_ip_env"}
numbers = itertools.count()


def fresh(base):
    class Fresh(base):
        def __init__(self, uri=None, wrap_exceptions=False, **options):
            # Each memory:// is a memory of its own.
            super().__init__(f"tollbar://{PATH}-{next(numbers)}?keys=1000&log_keys=100", wrap_exceptions, **options)

        def __reduce__(self):
            return restored, (base, self.__getstate__())

    return Fresh


def restored(base, state):
    storage = base.__new__(base)
    storage.__dict__.update(state)
    return storage


class Memory(fresh(TollbarStorage)):
    STORAGE_SCHEME = ["memory"]


class AsyncMemory(fresh(AsyncTollbarStorage)):
    STORAGE_SCHEME = ["async+memory"]


limits.storage.MemoryStorage = Memory
limits.aio.storage.MemoryStorage = AsyncMemory
assert SCHEMES["memory"] is Memory and SCHEMES["async+memory"] is AsyncMemory


def needs_a_server(item):
    params = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return SERVERS & set(item.fixturenames) or any(type(value).__name__.startswith("LazyFixture") for value in params)


def pytest_collection_modifyitems(config, items):
    kept = [item for item in items if not needs_a_server(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


@pytest.fixture(autouse=True)
def no_files_remain():
    yield
    for path in glob.glob(f"{PATH}-*"):
        os.unlink(path)
