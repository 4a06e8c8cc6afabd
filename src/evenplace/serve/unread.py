"""A body nobody will read: the answer says so, and the connection ends.

An answer that comes before the whole body (too large, refused at the door, no such address) must
not leave the connection open: what is still sent would be read and dropped for as long as the
sender likes, or taken for a second request.
"""

import asyncio

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# A sender that reads only after it has sent all would miss the answer if its line were cut at
# once, so a little more is taken and dropped.
MOST_DROPPED = 64 << 20
MOST_SECONDS = 1.0


class Unread:
    """Ends the connection of every request whose body was not read to its end."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not promises_body(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        whole = False

        async def take() -> Message:
            nonlocal whole
            message = await receive()
            whole = whole or not message.get("more_body", False)
            return message

        closes = False

        async def answer(message: Message) -> None:
            nonlocal closes
            if message["type"] == "http.response.start" and not whole:
                closes = True
                MutableHeaders(scope=message)["connection"] = "close"
            elif closes and not whole and not message.get("more_body", False):
                await send({**message, "more_body": True})
                await _drop(take)
                message = {"type": "http.response.body"}
            await send(message)

        await self._app(scope, take, answer)


def promises_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


async def _drop(take: Receive) -> None:
    dropped, more = 0, True
    try:
        async with asyncio.timeout(MOST_SECONDS):
            while more and dropped <= MOST_DROPPED:
                message = await take()
                dropped += len(message.get("body", b""))
                more = message.get("more_body", False)
    except TimeoutError:
        return
