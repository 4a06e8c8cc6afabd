"""Street imagery that is free, fetched politely: Panoramax and Mapillary, by a box of degrees.

Photos go to a folder as ID.jpg, and index.csv beside them has position, heading, time, producer,
licence and source of each: a folder that every verb reads.  What is there is not fetched again.
"""

import csv
import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

import evenplace
from evenplace.errors import PhotoError, SettingError
from evenplace.photos.files import whole_file
from evenplace.photos.gather import Seen
from evenplace.photos.layouts import mapillary, panoramax
from evenplace.photos.layouts.tables import INDEX

PANORAMAX, MAPILLARY = "https://api.panoramax.xyz", "https://graph.mapillary.com"
COLUMNS = tuple(one.name for one in fields(Seen) if one.name != "reason")
FIELDS = ("id,geometry,computed_geometry,compass_angle,computed_compass_angle,captured_at,creator,"
          "sequence,thumb_1024_url")  # fmt: skip
_CELL = 0.01  # degrees a side: the largest box Mapillary answers
_TRIES = 4
_NAME = re.compile(r"[\w-]{1,100}\.jpg")  # a name from elsewhere goes nowhere but into the folder

Box = Sequence[float]
Item = tuple[Seen, str]  # a photo, and the address of its picture
Tell = Callable[[int, int], None]


@dataclass
class Client:
    """Asks one host, not too often, and says in a sentence when it cannot be reached."""

    rate: float = 5.0  # requests a second at most
    headers: dict[str, str] = field(default_factory=dict)
    _last: float = 0.0

    def get(self, address: str, headers: bool = True) -> bytes:
        """What an address holds; tries again when it is told to wait."""
        if urllib.parse.urlsplit(address).scheme not in ("http", "https"):
            raise PhotoError(f"{address} is no address on the web; check --api")
        for tries in range(1, _TRIES + 1):
            self._wait(1 / self.rate)
            named = {"User-Agent": f"EvenPlace/{evenplace.__version__}"}
            named |= self.headers if headers else {}
            try:
                asked = urllib.request.Request(address, headers=named)
                with urllib.request.urlopen(asked, timeout=30) as answer:
                    return bytes(answer.read())
            except urllib.error.HTTPError as cause:
                if cause.code not in (429, 502, 503) or tries == _TRIES:
                    raise PhotoError(_refusal(address, cause)) from cause
                self._wait(min(float(cause.headers.get("Retry-After") or 2**tries), 60.0))
            except (OSError, ValueError) as cause:
                raise PhotoError(
                    f"{_host(address)} cannot be reached ({getattr(cause, 'reason', cause)}); "
                    "check the network, then the same command goes on"
                ) from cause
        raise AssertionError("a loop that returns or raises")

    def json(self, address: str) -> Any:
        try:
            return json.loads(self.get(address))
        except ValueError as cause:
            raise PhotoError(f"{_host(address)} answered no JSON; check the address") from cause

    def _wait(self, seconds: float) -> None:
        time.sleep(max(0.0, self._last + seconds - time.monotonic()))
        self._last = time.monotonic()


def fetch_panoramax(
    box: Box, out: Path, *, api: str = PANORAMAX, most: int = 1000, rate: float = 5.0,
    tell: Tell | None = None,
) -> int:  # fmt: skip
    """Fetch the photos of a box: west, south, east, north.  -> how many the folder has."""
    _check(box, most, rate)
    client = Client(rate)
    where = ",".join(f"{side:g}" for side in box)
    address = f"{api}/api/search?{urllib.parse.urlencode({'bbox': where, 'limit': min(most, 500)})}"
    return _keep(_panoramax(client, address), client, out, most, tell)


def fetch_mapillary(
    box: Box, out: Path, token: str, *, api: str = MAPILLARY, most: int = 1000, rate: float = 5.0,
    tell: Tell | None = None,
) -> int:  # fmt: skip
    """The same of Mapillary, whose boxes are small: a large one is asked cell by cell."""
    _check(box, most, rate)
    client = Client(rate, {"Authorization": f"OAuth {token}"})
    return _keep(_mapillary(client, box, api), client, out, most, tell)


def _panoramax(client: Client, address: str) -> Iterator[Item]:
    while address:
        found = client.json(address)
        for item in found.get("features", []):
            assets = item.get("assets") or {}
            picture = assets.get("sd") or assets.get("hd")
            if picture:
                yield panoramax.seen_of(item, f"{item['id']}.jpg"), picture["href"]
        links = [one["href"] for one in found.get("links", []) if one.get("rel") == "next"]
        address = links[0] if links and found.get("features") else ""


def _mapillary(client: Client, box: Box, api: str) -> Iterator[Item]:
    west, south, east, north = box
    for left in np.arange(west, east, _CELL):
        for low in np.arange(south, north, _CELL):
            cell = (left, low, min(left + _CELL, east), min(low + _CELL, north))
            asked = {"fields": FIELDS, "bbox": ",".join(f"{side:.6f}" for side in cell)}
            address = f"{api}/images?{urllib.parse.urlencode(asked)}"
            while address:
                found = client.json(address)
                for row in found.get("data", []):
                    if row.get("thumb_1024_url"):
                        yield mapillary.seen_of(row, f"{row['id']}.jpg"), row["thumb_1024_url"]
                address = (found.get("paging") or {}).get("next", "")


def _keep(items: Iterator[Item], client: Client, out: Path, most: int, tell: Tell | None) -> int:
    """Download what is not there yet; a row is written once its picture is whole."""
    out.mkdir(parents=True, exist_ok=True)
    table, known = out / INDEX, _known(out / INDEX)
    for seen, address in items:
        if seen.path in known or not _NAME.fullmatch(seen.path):
            continue
        if len(known) >= most:
            break
        data = client.get(address, headers=False)  # a token is for the API alone
        with whole_file(out / seen.path) as draft:
            draft.write_bytes(data)
        _add_row(table, seen)
        known.add(seen.path)
        if tell:
            tell(len(known), most)
    if not known:
        raise PhotoError("there are no photos in that box; try a larger one: west,south,east,north")
    return len(known)


def _known(table: Path) -> set[str]:
    if not table.exists():
        return set()
    with table.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        if tuple(rows.fieldnames or ()) != COLUMNS:
            raise PhotoError(f"{table} has other columns than fetch writes; use another folder")
        return {row["path"] for row in rows}


def _add_row(table: Path, seen: Seen) -> None:
    fresh = not table.exists()
    told = [getattr(seen, name) for name in COLUMNS]
    with table.open("a", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        if fresh:
            rows.writerow(COLUMNS)
        rows.writerow("" if one != one else one for one in told)  # nan, NaT


def _check(box: Box, most: int, rate: float) -> None:
    if len(box) != 4 or not (box[0] < box[2] and box[1] < box[3]):
        raise SettingError(f"--bbox {','.join(map(str, box))} is not west,south,east,north")
    if most < 1 or not rate > 0:
        raise SettingError(f"--most {most} and --rate {rate:g} fetch nothing; use more")


def _host(address: str) -> str:
    return urllib.parse.urlsplit(address).netloc or address


def _refusal(address: str, cause: urllib.error.HTTPError) -> str:
    remedy = {401: "check the token", 403: "check the token", 404: "check --api"}.get(
        cause.code, "try again later; the same command goes on"
    )
    return f"{_host(address)} refused with {cause.code} {cause.reason}; {remedy}"
