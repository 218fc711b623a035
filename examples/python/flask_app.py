"""Flask: a limit of one view, and another of all requests, in one table of all workers.

    pip install flask gunicorn tollbar
    gunicorn --workers 8 flask_app:app
"""

import os

import tollbar
from flask import Flask
from tollbar.flask import RateLimit

POLICIES = {"all": "300/day algo fixed-window anchor first", "login": "5/day algo fixed-window anchor first"}
table = tollbar.Table.open(os.environ.get("TABLE", "/dev/shm/flask-app"), POLICIES, 100_000)
app = Flask(__name__)
RateLimit(table, policy="all", exempt={"192.0.2.7"}).init_app(app)


@app.get("/")
def home() -> str:
    return "hello"


@app.get("/login")
@RateLimit(table, policy="login")
def login() -> str:
    return "welcome"
