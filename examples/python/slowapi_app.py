"""The two applications of slowapi's documentation, with another URI: eight workers count together.

    uvicorn --workers 8 slowapi_app:app
"""

import os

import tollbar.limits  # noqa: F401, registers tollbar://
from fastapi import FastAPI
from slowapi import Limiter, _rate_limit_exceeded_handler
from slowapi.errors import RateLimitExceeded
from slowapi.util import get_remote_address
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

limiter = Limiter(key_func=get_remote_address, storage_uri=os.environ.get("STORAGE", "tollbar:///dev/shm/slowapi-app"))


@limiter.limit("5/minute")
async def starlette_home(request: Request) -> PlainTextResponse:
    return PlainTextResponse("test")


starlette = Starlette(routes=[Route("/home", starlette_home)])
starlette.state.limiter = limiter
starlette.add_exception_handler(RateLimitExceeded, _rate_limit_exceeded_handler)  # type: ignore[arg-type]

app = FastAPI()
app.state.limiter = limiter
app.add_exception_handler(RateLimitExceeded, _rate_limit_exceeded_handler)  # type: ignore[arg-type]
app.mount("/starlette", starlette)


@app.get("/home")
@limiter.limit("5/minute")
async def home(request: Request) -> PlainTextResponse:
    return PlainTextResponse("test")


@app.get("/mars")
@limiter.limit("100/minute")
async def mars(request: Request, response: Response) -> dict[str, str]:
    return {"key": "value"}
