"""A small run to make boxes of, and a service in a process of its own to ask."""

import json
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from evenplace.photos import read_photos
from evenplace.retrieval.rerank import Fused
from evenplace.run.run import Run
from tests.drawn import draw_split, rehearsed


def draw_run(folder: Path) -> tuple[Run, Path]:
    """A run with learned weights and a calibration, of a few convolutions; and a photo to ask."""
    town = draw_split(folder / "town", database=40, queries=6)
    made = Run(folder / "run")
    photos = read_photos(town / "database")
    made.index_method(photos, "cross-entropy", "imagenet", image_size=32, dim=16, layer=2)
    fused = Fused(scale=20.0, balance=0.3)
    fused.write(made.folder / "fused.json")
    made.files.write_recipe(made.recipe.changed(["rerank=fused", "confidence=evidence"]))
    odds = np.linspace(-3, 3, 200)
    right = np.random.default_rng(0).uniform(size=200) < 1 / (1 + np.exp(-odds))
    rehearsed(odds, right, fused, "evidence").write(made.folder / "calibration.json")
    return made, sorted((town / "queries").iterdir())[0]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@contextmanager
def serving(program: list[str], port: int, env: dict[str, str]) -> Iterator[str]:
    """`evenplace serve BOX` in a process of its own, by its address."""
    words = [*program, "--port", str(port)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=env) as process:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=60)[1]
    assert f"open http://127.0.0.1:{port}" in said, said


def ask(address: str, photo: Path) -> dict[str, Any]:
    """What the service answers, once it is up."""
    asked = urllib.request.Request(f"{address}/locate", data=photo.read_bytes())
    asked.add_header("Content-Type", "image/jpeg")
    for _ in range(150):
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:
                found: dict[str, Any] = json.load(answer)["answers"][0]
                return found
        except urllib.error.URLError:
            time.sleep(0.2)
    raise AssertionError(f"{address} does not answer")
