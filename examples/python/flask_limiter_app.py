"""Flask-Limiter with another URI: eight workers count together.

    gunicorn --workers 8 flask_limiter_app:app
"""

import os

import tollbar.limits  # noqa: F401, registers tollbar://
from flask import Flask
from flask_limiter import Limiter
from flask_limiter.util import get_remote_address

app = Flask(__name__)
limiter = Limiter(
    get_remote_address,
    app=app,
    default_limits=["200 per day"],
    storage_uri=os.environ.get("STORAGE", "tollbar:///dev/shm/flask-limiter-app"),
    strategy="moving-window",
)


@app.get("/slow")
@limiter.limit("7 per minute")
def slow() -> str:
    return "24"


@app.get("/fast")
def fast() -> str:
    return "42"


@app.get("/ping")
@limiter.exempt
def ping() -> str:
    return "PONG"
