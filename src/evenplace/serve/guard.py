"""Who is let in: the right address, the right page, the right token; and what every answer says.

Host      a page of a stranger whose name suddenly means this machine is refused (DNS rebinding)
Origin    pages of other sites may not send, nor embed, anything; there is no CORS
token     in `Authorization: Bearer`, or in the page's own cookie; compared in constant time
"""

import hashlib
import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenplace.serve.problems import Problem
from evenplace.serve.settings import Settings, is_loopback

COOKIE = "evenplace"
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
            self._check(scope["path"], Headers(scope=scope))
        except Problem as problem:
            await problem.response()(scope, receive, with_headers)
            return
        await self._app(scope, receive, with_headers)

    def _check(self, path: str, headers: Headers) -> None:
        self._check_host(headers.get("host", ""))
        _check_origin(headers)
        if path in OPEN or path.startswith("/assets/"):
            return
        if self._settings.token and not _has_token(headers, self._settings.token):
            raise wrong_token()

    def _check_host(self, host: str) -> None:
        if self._hosts is not None and _name(host) not in self._hosts:
            raise Problem(
                "host-refused",
                "the request is addressed to a name this service does not go by",
                "use http://127.0.0.1, or start the service with --allow-host NAME",
            )


def session_cookie(token: str) -> str:
    """What the page's cookie holds: made from the token, but not the token."""
    return hmac.new(token.encode(), b"evenplace page", hashlib.sha256).hexdigest()


def same(given: str, expected: str) -> bool:
    """Compare secrets in a time that tells nothing."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def wrong_token() -> Problem:
    return Problem(
        "token-wrong",
        "the token is missing or wrong",
        "send Authorization: Bearer TOKEN, or sign in on the page",
    )


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
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _check_origin(headers: Headers) -> None:
    origin = headers.get("origin")
    strange = origin is not None and urlsplit_netloc(origin) != headers.get("host", "").lower()
    site = headers.get("sec-fetch-site", "same-origin")
    visiting = headers.get("sec-fetch-mode") == "navigate" and origin is None
    if strange or (site not in ("same-origin", "none") and not visiting):
        raise Problem(
            "origin-refused",
            "the request comes from another site's page",
            "open this service's own page, or ask from a program",
        )


def urlsplit_netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _has_token(headers: Headers, token: str) -> bool:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and same(given.strip(), token):
        return True
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return False
    return cookie is not None and same(cookie.value, session_cookie(token))
