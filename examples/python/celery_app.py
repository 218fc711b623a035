"""Celery: all workers of the machine send at most ten mails a second, and five a day to one
address.

    pip install celery tollbar
    celery --app celery_app worker --concurrency 8
"""

import os

import tollbar
from celery import Celery

POLICIES = {"mails": "10/s burst 1", "to": "5/day algo fixed-window anchor first"}
table = tollbar.Table.open(os.environ.get("TABLE", "/dev/shm/celery-app"), POLICIES, 100_000)
app = Celery("celery_app", broker="memory://", backend="cache+memory://")


@app.task
@tollbar.limit(table, key=lambda address: address, policy="to")  # above it the task fails with tollbar.Limited
@tollbar.limit(table, key=lambda address: "all", policy="mails", wait=None)  # each worker sleeps until its turn
def send(address: str) -> str:
    return f"sent to {address}"
