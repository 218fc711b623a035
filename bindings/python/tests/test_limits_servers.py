"""slowapi and flask-limiter with the storage's URI changed: eight workers are exact to the request."""

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
        # A fixed window may end in the middle of the requests, so they begin early in one: the first of the requests opens it.
        for name, limit in limits.items():
            began = time.monotonic()
            seen = servers.statuses(port, name)
            assert time.monotonic() - began < 60, "the machine was so busy that the window ended"
            assert seen == {200: limit, 429: 400 - limit} if limit < 400 else seen == {200: 400}
