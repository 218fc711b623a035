"""FastAPI: limits by the client's address and by an API key, in one table of all workers.

    pip install fastapi uvicorn tollbar
    uvicorn --workers 8 fastapi_app:app
"""

import os

import tollbar
from fastapi import Depends, FastAPI, Request
from tollbar.fastapi import RateLimit

POLICIES = {"address": "100/day algo fixed-window anchor first", "second": "50/s", "day": "20/day algo fixed-window anchor first"}
table = tollbar.Table.open(os.environ.get("TABLE", "/dev/shm/fastapi-app"), POLICIES, 100_000)
app = FastAPI()


def api_key(request: Request) -> str | None:
    return request.headers.get("x-api-key")


@app.get("/", dependencies=[Depends(RateLimit(table, policy="address"))])
async def home() -> str:
    return "hello"


# Both policies are charged, or none; a request without a key gets 401, and a report costs five.
per_key = RateLimit(
    table,
    key=api_key,
    policy=("second", "day"),
    cost=lambda request: 5 if request.url.path == "/report" else 1,
    missing_status=401,
    refuse=lambda request, refusal: refusal._replace(body=b"your plan allows 20 a day" if refusal.status == 429 else refusal.body),
)


@app.get("/search", dependencies=[Depends(per_key)])
@app.get("/report", dependencies=[Depends(per_key)])
async def search() -> str:
    return "found"
