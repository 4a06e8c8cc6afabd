"""The page and its files, all from this machine; and a way to sign in where there is a token."""

import asyncio
import json
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from jinja2 import Environment

from evenplace.photos.files import shipped_text
from evenplace.report.page import leaflet_file
from evenplace.serve.guard import COOKIE, same, session_cookie, wrong_token
from evenplace.serve.problems import Problem
from evenplace.serve.settings import Limits
from evenplace.serve.uploads import read_body

router = APIRouter(include_in_schema=False)
SIGN_IN = Limits(request_bytes=4096, body_seconds=5.0)
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".html": "text/html; charset=utf-8",
}
SCRIPTS = ("app", "answer", "ask", "browse", "cells", "dom", "many", "map", "matches", "service")
FILES = (
    *(f"{name}.js" for name in SCRIPTS), "app.css", "icon.svg",
    "page.css", "leaflet.css", "leaflet.js",
)  # fmt: skip


@router.get("/")
def page() -> Response:
    return _file("index.html")


@router.get("/favicon.ico")
def icon() -> Response:
    return _file("icon.svg")


@router.get("/assets/{name}")
def asset(name: str) -> Response:
    """A file of the page.  Names are looked up in a list, never on disk."""
    if name not in FILES:
        raise Problem("not-found", "the page has no such file", "open / instead")
    return _file(name)


@router.get("/docs")
def docs(request: Request) -> Response:
    """The API's documentation as a page without scripts, from its OpenAPI description."""
    template = Environment(autoescape=True).from_string(_text("reference.html"))
    page = template.render(
        api=request.app.openapi(),
        allowed=_allowed,
        pretty=lambda value: json.dumps(value, indent=1),
    )
    return Response(page, media_type=KINDS[".html"])


def _allowed(parameter: dict[str, Any]) -> str:
    """What a parameter may be, in words."""
    schema = parameter["schema"]
    choices: list[Any] = next(
        (one["enum"] for one in [schema, *schema.get("anyOf", [])] if "enum" in one), []
    )
    parts = [
        ", ".join(map(str, choices)) if choices else schema.get("type", ""),
        f"{schema['minimum']} to {schema['maximum']:,}" if "maximum" in schema else "",
        f"{schema['default']} if left out" if "default" in schema else "",
        parameter.get("description", ""),
    ]
    return "; ".join(part for part in parts if part)


@router.post("/session")
async def sign_in(request: Request) -> Response:
    """Trade the token for a cookie, so that pictures on the page load."""
    expected = request.app.state.service.settings.token
    given = await _given_token(request)
    if expected and not same(given, expected):
        raise wrong_token()
    response = Response(status_code=204)
    if expected:
        response.set_cookie(
            COOKIE,
            session_cookie(expected),
            httponly=True,
            samesite="strict",
            # A proxy's word is enough to be stricter.
            secure="https" in (request.url.scheme, request.headers.get("x-forwarded-proto")),
        )
    return response


async def _given_token(request: Request) -> str:
    """The token in {"token": "..."}; anybody may send this, so little of it is read."""
    try:
        async with asyncio.timeout(SIGN_IN.body_seconds):
            given = json.loads(await read_body(request, SIGN_IN))["token"]
    except (ValueError, TypeError, KeyError, RecursionError, TimeoutError) as cause:
        raise Problem(
            "body-unreadable", "the body holds no token", 'send {"token": "..."} as JSON'
        ) from cause
    return str(given).strip()


def _file(name: str) -> Response:
    kind = KINDS[Path(name).suffix]
    return Response(_text(name), media_type=kind, headers={"cache-control": "no-cache"})


@cache
def _text(name: str) -> str:
    if name == "page.css":
        return shipped_text("report/assets/page.css")
    if name.startswith("leaflet"):
        return leaflet_file(name)
    return shipped_text(f"serve/assets/{name}")
