"""Starlette: a middleware limits all requests, in one table of all workers.

    pip install starlette uvicorn tollbar
    uvicorn --workers 8 starlette_app:app
"""

import os

import tollbar
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from tollbar.asgi import RateLimit

table = tollbar.Table.open(os.environ.get("TABLE", "/dev/shm/starlette-app"), "100/day algo fixed-window anchor first", 100_000)


async def home(request: Request) -> PlainTextResponse:
    return PlainTextResponse("hello")


app = Starlette(routes=[Route("/", home)], middleware=[Middleware(RateLimit, table=table)])
