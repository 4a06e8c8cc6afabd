"""A run small enough to serve in a test: 40 photos of coloured cells, no training."""

import io
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient
from PIL import Image

from evenplace.photos import Photos, read_photos
from evenplace.photos.table import join_photos
from evenplace.run.run import Run
from evenplace.serve.app import create_app
from evenplace.serve.server import Connection
from evenplace.serve.settings import Settings
from tests.drawn import draw_photos, rehearsed
from tests.serve.visits import BROWSER, Visit

HOME = "http://127.0.0.1"
Serve = Callable[..., AbstractContextManager[TestClient]]


@dataclass(frozen=True)
class Town:
    """A database, queries, and a run that was made of them."""

    run: Path
    database: Path
    queries: tuple[Path, ...]

    def photo(self, number: int = 0) -> bytes:
        return self.queries[number].read_bytes()


def make_run(run: Path, database: Path | Photos) -> None:
    """A run of ImageNet's weights; calibrated so that it can abstain."""
    photos = database if isinstance(database, Photos) else read_photos(database)
    Run(run).index_method(photos, "dapr-m-bands", "imagenet", image_size=64, dim=64)
    sure = np.linspace(0, 1, 200, dtype=np.float32)
    right = np.random.default_rng(0).uniform(size=200) < sure
    spec = Run(run).recipe.search
    rehearsed(sure, right, spec.rerank, spec.confidence).write(run / "calibration.json")


@pytest.fixture(scope="session")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    folder = tmp_path_factory.mktemp("served")
    draw_photos(folder / "database", np.random.default_rng(0).uniform(0, 100, (40, 2)))
    draw_photos(folder / "queries", np.random.default_rng(1).uniform(0, 100, (12, 2)), seed=1)
    make_run(folder / "run", folder / "database")
    queries = tuple(sorted((folder / "queries").iterdir()))
    return Town(folder / "run", folder / "database", queries)


@pytest.fixture
def own_town(town: Town, tmp_path: Path) -> Town:
    """A copy whose index a test may replace."""
    shutil.copytree(town.run, tmp_path / "run")
    return Town(tmp_path / "run", town.database, town.queries)


@pytest.fixture
def two_zones(own_town: Town) -> Town:
    """Half of the photos at the same metres of a zone on the other side of the globe."""
    here = read_photos(own_town.database)
    away = Photos.from_arrays(east=here.east, north=here.north, zone=-56, path=here.paths)
    make_run(own_town.run, join_photos([here[::2], away[1::2]]))
    return own_town


@pytest.fixture(scope="session")
def client(town: Town) -> Iterator[TestClient]:
    """The service as most tests want it."""
    with serving(town.run) as client:
        yield client


@contextmanager
def serving(run: Path, **settings: Any) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(run, **settings)), base_url=HOME) as client:
        yield client


@pytest.fixture(scope="session")
def engine(town: Town) -> Any:
    return Run(town.run).search()


@contextmanager
def listening(app: FastAPI) -> Iterator[str]:
    """The application on a real port of this machine; gives its address."""
    config = uvicorn.Config(
        app, host="127.0.0.1", port=0, log_level="warning", http=Connection, ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        until = time.monotonic() + 20
        while not server.started and time.monotonic() < until:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"{HOME}:{port}"
    finally:
        server.should_exit = True
        thread.join(20)


@pytest.fixture(scope="session")
def address(town: Town) -> Iterator[str]:
    """A service on a real port."""
    with listening(create_app(Settings(town.run))) as where:
        yield where


def jpeg(width: int = 64, height: int = 64, **options: Any) -> bytes:
    """A picture of noise."""
    data = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 255, (height, width, 3)).astype(np.uint8)
    Image.fromarray(noise).save(data, "JPEG", **options)
    return data.getvalue()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium with a camera that films a test picture.

    Of a module: while it is open its loop runs on this thread, and no other can.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    films = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
    with playwright.sync_playwright() as started:
        # No sandbox: tests run as root in containers; the page is our own.
        opened = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", *films])
        yield opened
        opened.close()


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Visit]:
    opened = Visit(browser, address)
    yield opened
    opened.close()
    assert opened.strangers == [], "no request leaves the machine"
    assert opened.complaints == []
