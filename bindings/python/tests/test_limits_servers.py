"""slowapi and flask-limiter with the storage's URI changed: eight workers are exact to the
request."""

import time

import pytest
from test_limits import path  # noqa: F401, a fixture
import servers


@pytest.mark.parametrize(
    ("server", "app", "limits"),
    [
        ("uvicorn", "slowapi_app:app", {"/home": 5, "/mars": 100, "/starlette/home": 5}),
        ("gunicorn", "flask_limiter_app:app", {"/slow": 7, "/fast": 200, "/ping": 400}),
    ],
)
def test_eight_workers_are_exact(server, app, limits, path, tmp_path):  # noqa: F811
    with servers.serving(server, app, tmp_path / "log", STORAGE=f"tollbar://{path}") as port:
        # The first of the requests opens a fixed window of a minute. On a busy machine it may end
        # in the midst of them: then they begin anew, when the last window has ended.
        for name, limit in limits.items():
            for _ in range(3):
                began = time.monotonic()
                seen = servers.statuses(port, name)
                if time.monotonic() - began < 60:
                    break
                time.sleep(61)
            else:
                raise AssertionError("the machine is too busy for 400 requests in a minute")
            assert seen == {200: limit, 429: 400 - limit} if limit < 400 else seen == {200: 400}
