"""Who is let in: the right address, the right page, the right token; and what every answer says.

Host      a page of a stranger whose name suddenly means this machine is refused (DNS rebinding)
length    a body of two lengths is refused: a proxy may have read the other one (smuggling)
Origin    pages of other sites may not send, nor embed, anything; there is no CORS
token     in `Authorization: Bearer`, or in the page's own cookie; compared in constant time

An answer that comes before the whole body (too large, refused at the door, no such address) ends
the connection: what is still sent would be read and dropped for as long as the sender likes, or
taken for a second request.
"""

import asyncio
import hashlib
import hmac
import re
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenplace.serve.problems import Problem
from evenplace.serve.settings import Settings, is_loopback

COOKIE = "evenplace"
_HOST = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<name>[\w.-]+))(?::\d{1,5})?", re.ASCII)
# A sender that reads only after it has sent all would miss the answer if its line were cut at
# once, so a little more is taken and dropped.
MOST_DROPPED = 64 << 20
MOST_SECONDS = 1.0
# What anybody may have: the empty page and its files hold nothing of the database.
OPEN = ("/", "/health", "/session", "/docs", "/openapi.json", "/favicon.ico")


class Guard:
    """Refuses what does not belong and puts the security headers on every response."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings
        self._hosts = _hosts(settings)
        self._headers = security_headers(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            _check_length(scope["http_version"], Headers(scope=scope))
            self._check(scope["path"], Headers(scope=scope))
        except Problem as problem:
            await problem.response()(scope, receive, with_headers)
            return
        await self._app(scope, receive, with_headers)

    def _check(self, path: str, headers: Headers) -> None:
        if self._hosts is not None and _name(headers.get("host", "")) not in self._hosts:
            said = "the request is addressed to a name this service does not go by"
            raise Problem("host-refused", said)
        self._check_origin(headers)
        if path in OPEN or path.startswith("/assets/"):
            return
        if self._settings.token and not _has_token(headers, self._settings.token):
            raise wrong_token()

    def _check_origin(self, headers: Headers) -> None:
        host, origin = headers.get("host", "").lower(), headers.get("origin")
        own = [f"{scheme}://{host}" for scheme in self._schemes(_name(host))]
        site = headers.get("sec-fetch-site", "same-origin")
        visiting = headers.get("sec-fetch-mode") == "navigate" and origin is None
        strange = origin is not None and origin.lower() not in own
        if strange or (site not in ("same-origin", "none") and not visiting):
            raise Problem("origin-refused", "the request comes from another site's page")

    def _schemes(self, name: str) -> tuple[str, ...]:
        """Only a name that a proxy may stand behind can be reached over TLS."""
        proxied = self._hosts is None or name in map(str.lower, self._settings.hosts)
        return ("http", "https") if proxied else ("http",)


def session_cookie(token: str) -> str:
    """What the page's cookie holds: made from the token, but not the token."""
    return hmac.new(token.encode(), b"evenplace page", hashlib.sha256).hexdigest()


def same(given: str, expected: str) -> bool:
    """Compare secrets in a time that tells nothing."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def wrong_token() -> Problem:
    return Problem("token-wrong", "the token is missing or wrong")


def security_headers(settings: Settings) -> dict[str, str]:
    """Nothing is loaded but from here; tiles only from where they were configured."""
    images = " ".join(filter(None, ("'self'", "blob:", "data:", settings.tile_origin)))
    policy = (
        f"default-src 'none'; script-src 'self'; style-src 'self'; img-src {images}; "
        "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    return {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(self), geolocation=(), microphone=()",
        "cache-control": "no-store",
    }


def _hosts(settings: Settings) -> frozenset[str] | None:
    """Names the service goes by; None for any."""
    if settings.token and not settings.hosts and not is_loopback(settings.host):
        return None
    own = {"localhost", "127.0.0.1", "::1", settings.host.strip("[]")}
    return frozenset(name.lower() for name in (*own, *settings.hosts))


def _name(host: str) -> str:
    """The name in a Host header, without port and brackets."""
    match = _HOST.fullmatch(host)
    return (match["six"] or match["name"].rstrip(".")).lower() if match else ""


def _check_length(version: str, headers: Headers) -> None:
    chunked = "transfer-encoding" in headers
    if chunked and ("content-length" in headers or version == "1.0"):
        raise Problem(
            "body-unreadable",
            "the request says in two ways where its body ends",
            "send Content-Length or Transfer-Encoding, not both",
        )


def _has_token(headers: Headers, token: str) -> bool:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and same(given.strip(), token):
        return True
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return False
    return cookie is not None and same(cookie.value, session_cookie(token))


class Unread:
    """Ends the connection of every request whose body was not read to its end."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else {}
        if "transfer-encoding" not in headers and headers.get("content-length", "0") == "0":
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
