"""One process or several around the application, until told to stop."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from evenplace.serve.app import create_app
from evenplace.serve.connection import Connection
from evenplace.serve.service import Service
from evenplace.serve.settings import TOKEN_VARIABLE, Batching, Limits, Settings

VARIABLE = "EVENPLACE_SERVE"
GRACE = 30  # seconds for the answers under way when told to stop


def serve(settings: Settings, announce: Callable[[str], None]) -> None:
    """Answer until interrupted; what was asked before is answered first."""
    service = Service(settings)  # an index that cannot be opened is said here, before any port
    announce(f"http://{_bracketed(settings.host)}:{settings.port}")
    if settings.workers == 1:
        uvicorn.run(create_app(settings, service), **_options(settings))
    else:
        del service
        _serve_several(settings)


def app_from_environment() -> FastAPI:
    """The application of one of several workers."""
    settings = _from_text(os.environ[VARIABLE], os.environ.get(TOKEN_VARIABLE, ""))
    return create_app(settings)


def _serve_several(settings: Settings) -> None:
    folder = tempfile.mkdtemp(prefix="evenplace-metrics-")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
    os.environ[VARIABLE] = _to_text(settings)
    share = max(1, (os.cpu_count() or 1) // settings.workers)  # of the cores, for either engine
    os.environ.setdefault("OMP_NUM_THREADS", str(share))
    for threshold in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"):
        os.environ.setdefault(threshold, str(1 << 30))  # as cli/memory.py does for one process
    if settings.token:
        os.environ[TOKEN_VARIABLE] = settings.token  # not in the text: it may be printed
    try:
        uvicorn.run(
            "evenplace.serve.server:app_from_environment",
            factory=True,
            workers=settings.workers,
            **_options(settings),
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _options(settings: Settings) -> dict[str, Any]:
    return {
        "host": settings.host,
        "port": settings.port,
        "log_level": "info",
        "access_log": False,  # /metrics counts requests; writing a line of each costs 0.5 ms
        "server_header": False,
        "proxy_headers": False,
        "timeout_graceful_shutdown": GRACE,
        "timeout_keep_alive": 30,
        "timeout_worker_healthcheck": 60,  # a worker that loads its model is not dead
        "h11_max_incomplete_event_size": 32 << 10,
        "http": Connection,
        "ws": "none",
    }


def _to_text(settings: Settings) -> str:
    folder = None if settings.photos is None else str(settings.photos)
    plain = asdict(settings) | {"run": str(settings.run), "photos": folder, "token": ""}
    return json.dumps(plain)


def _from_text(text: str, token: str) -> Settings:
    plain = json.loads(text)
    return Settings(
        **plain
        | {
            "run": Path(plain["run"]),
            "photos": None if plain["photos"] is None else Path(plain["photos"]),
            "token": token,
            "hosts": tuple(plain["hosts"]),
            "limits": Limits(**plain["limits"]),
            "batching": Batching(**plain["batching"]),
        }
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
