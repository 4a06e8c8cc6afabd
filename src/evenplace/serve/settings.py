"""What a service allows: whom it lets in, how much it takes, how long it gathers."""

import ipaddress
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from evenplace.errors import SettingError
from evenplace.retrieval.calibration import check_precision

TOKEN_VARIABLE = "EVENPLACE_TOKEN"
SHORTEST_TOKEN = 16
# Its origin goes into the content policy, where a space or a semicolon would mean something.
_TILES = re.compile(
    r"(https?://[\w.{}-]+(:\d+)?)?/(?=\S*\{z\})(?=\S*\{x\})(?=\S*\{y\})[^\s;,\"']+", re.ASCII
)


@dataclass(frozen=True)
class Limits:
    """The most a service takes before it says no."""

    photo_bytes: int = 16 << 20
    photo_pixels: int = 50_000_000
    photos: int = 16  # in one request
    request_bytes: int = 64 << 20
    decode_bytes: int = 224 << 20  # of memory to decode one photo
    waiting: int = 128  # photos that were let in and have no answer yet
    heavy: int = 16  # of them, pictures that take long to decode (`queue.HEAVY`)
    patience: float = 10.0  # seconds after which an answer is of no use any more
    bodies: int = 256  # requests whose body is still arriving
    address_bodies: int = 64  # of them, from one address
    waiting_bytes: int = 128 << 20  # of bodies, as far as they have arrived
    address_bytes: int = 96 << 20  # of them, from one address
    body_seconds: float = 20.0  # to send a request's body
    stall_seconds: float = 5.0  # between two pieces of it

    def __post_init__(self) -> None:
        if self.waiting < 1:
            raise SettingError(f"--queue {self.waiting} answers nobody; use 1 or more")
        if not self.patience > 0:
            raise SettingError(f"--patience {self.patience:g} answers nobody; use seconds above 0")


@dataclass(frozen=True)
class Batching:
    """How photos are gathered: at most `photos` of them, for at most `window_ms`."""

    photos: int = 8  # as many as extraction takes on a CPU (`models.describe`)
    window_ms: float = 4.0
    decoders: int = field(default_factory=lambda: max(2, min(8, os.cpu_count() or 2)))

    def __post_init__(self) -> None:
        if min(self.photos, self.decoders) < 1 or self.window_ms < 0:
            raise SettingError(
                f"batching of {self.photos} photos over {self.window_ms} ms with {self.decoders} "
                "decoders answers nothing; use 1 or more photos and decoders, and 0 ms or more"
            )


@dataclass(frozen=True)
class Settings:
    """A service: the run it answers from, and its rules.

    hosts: names under which it may be addressed besides loopback's and its own; an empty tuple
    with a token means any, because a stranger's page has no token.
    """

    run: Path
    host: str = "127.0.0.1"
    port: int = 8000
    token: str = field(default="", repr=False)
    hosts: tuple[str, ...] = ()
    workers: int = 1
    tiles: str = ""
    tiles_credit: str = ""  # whose tiles they are, shown on the map
    photos: Path | None = None  # where relative paths of the database start; here if left out
    min_precision: float | None = None
    insist: bool = False  # on a precision that the run's rehearsal cannot promise
    verify: int | None = None  # candidates to look at a second time; as the run says if left out
    device: str = "auto"  # these three as a `Describer` takes them
    engine: str = "auto"
    precision: str = "auto"
    watch_seconds: float = 1.0  # between looks for a new index; 0 never looks
    limits: Limits = field(default_factory=Limits)
    batching: Batching = field(default_factory=Batching)

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise SettingError(f"--port {self.port} is no port; use 1 to 65535, or 0 for any")
        if self.workers < 1:
            raise SettingError(f"--workers {self.workers} serves nobody; use 1 or more")
        if self.min_precision is not None:
            check_precision(self.min_precision)
        if self.tiles and not _TILES.fullmatch(self.tiles):
            raise SettingError(
                f"--tiles {self.tiles} names no tiles; give an address such as "
                "https://tiles.example/{z}/{x}/{y}.png, without a password"
            )
        if self.photos is not None and not self.photos.is_dir():
            raise SettingError(f"--photos {self.photos} is no folder; give the one with the photos")
        _check_token(self.token, self.host)

    @property
    def tile_origin(self) -> str:
        """Where tiles come from, for the content policy; empty if they come from nowhere."""
        parts = urlsplit(self.tiles.replace("{s}", "*"))
        return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def read_token(file: Path | None) -> str:
    """The token of a file, else of the environment, else none."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE, "").strip()
    token = file.read_text(encoding="utf-8").strip()
    if not token:
        raise SettingError(f"{file} holds no token; write one line of {SHORTEST_TOKEN} or more")
    return token


def _check_token(token: str, host: str) -> None:
    if not token and not is_loopback(host):
        raise SettingError(
            f"--host {host} lets other machines in and there is no token; give one with "
            f"--token-file or {TOKEN_VARIABLE}, or keep to 127.0.0.1"
        )
    if token and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        raise SettingError(
            f"the token has {len(token)} characters; use {SHORTEST_TOKEN} or more plain ones: "
            "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
