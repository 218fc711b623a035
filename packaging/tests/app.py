"""An application that admits a hundred requests a day of a client, in all its processes
together."""

import tollbar
from fastapi import FastAPI
from tollbar import asgi

app = FastAPI()
clients = tollbar.Table.open("/dev/shm/clients", "100/day burst 100", 1000)
app.add_middleware(asgi.RateLimit, table=clients)


@app.get("/")
async def root() -> dict[str, str]:
    return {"hello": "world"}
