"""The service as an ASGI application."""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import evenplace
from evenplace.serve import page, routes
from evenplace.serve.decode import count_warnings
from evenplace.serve.guard import Guard, Unread
from evenplace.serve.problems import Problem
from evenplace.serve.service import Service
from evenplace.serve.settings import Settings

log = logging.getLogger("evenplace.serve")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def create_app(settings: Settings, service: Service | None = None) -> FastAPI:
    """An application that answers from a run; pass a service that is open already, or have one."""
    held = service or Service(settings)
    for quotes_the_body in ("python_multipart", "PIL"):
        logging.getLogger(quotes_the_body).setLevel(logging.CRITICAL)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with count_warnings(held.metrics.warnings.inc):
            await held.start()
            yield
            await held.stop()

    app = FastAPI(
        title="EvenPlace",
        version=evenplace.__version__,
        summary="Say where a photo was taken, and how sure that is.",
        lifespan=lifespan,
        docs_url=None,  # its scripts come from another machine; ours is in page.py
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
        generate_unique_id_function=lambda route: route.name,
        strict_content_type=False,
        redirect_slashes=False,
    )
    app.state.service = held
    for router in (routes.questions, routes.database, routes.state, page.router):
        app.include_router(router)
    app.add_exception_handler(Problem, _refuse)
    app.add_exception_handler(RequestValidationError, _refuse_value)
    app.add_exception_handler(HTTPException, _refuse_http)
    app.add_middleware(_Mend)
    app.add_middleware(Guard, settings=settings)
    app.add_middleware(Unread)
    app.add_middleware(_Count, service=held)
    return app


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return error.response()


async def _refuse_value(request: Request, error: Exception) -> Response:
    """Say which value was refused, and never what it was."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = " ".join(str(part) for part in first["loc"])
    return Problem("value-refused", f"{where[:80]}: {first['msg'][:200]}").response()


async def _refuse_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        said = "this address does not take this method"
        response = Problem("method-not-allowed", said).response()
        response.headers.update(error.headers or {})
        return response
    if error.status_code == 404:
        return Problem("not-found", "there is nothing at this address").response()
    return Problem("body-unreadable", "the request cannot be read").response()


class _Mend:
    """Turns what nobody foresaw into a problem without details."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def watch(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except Exception:
            if scope["type"] != "http" or begun:
                raise
            log.exception("a %s of %s failed", _method(scope), _route(scope))
            failed = Problem("failed", "the service made a mistake")
            await failed.response()(scope, receive, send)


class _Count:
    """Counts and times requests."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._metrics = app, service.metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            route = _route(scope)
            self._metrics.requests.labels(_method(scope), route, str(status)).inc()
            self._metrics.seconds.labels(route).observe(time.perf_counter() - began)


def _method(scope: Scope) -> str:
    """A method there is; a stranger's own would be one more series to count for each he invents."""
    return str(scope["method"]) if scope["method"] in METHODS else "other"


def _route(scope: Scope) -> str:
    """The pattern of a route; never the path a stranger typed."""
    return str(getattr(scope.get("route"), "path", "other"))
