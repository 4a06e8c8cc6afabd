"""A box beside the run it came from: from process start to answer, memory, and a query's time.

    python -m benchmarks.box [--run RUN --photo PHOTO] [--python PYTHON] [--rounds 5] [--check]

Without --run a town is drawn and indexed with the recommended network.  `locate` is timed from the
start of its process to its end, rounds alternating: in the box, in the run with its exported
network, and in the run with torch.  Then the box and the run with torch are served, each in a
process of its own, and one client asks --queries times with the same photo.  Memory is what the
system counts as resident of the service after those queries.  --python: of an environment in which
only what a box needs is installed (docs/deploy.md); other packages that are there cost memory too.
Writes benchmarks/results/box.md; with --check, exits 1 unless the box locates within 1.5 s, serves
in 250 MB, and answers a query in 25 ms at the median.
"""

import argparse
import datetime
import http.client
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from evenplace.city import draw_city
from evenplace.photos import read_photos
from evenplace.run.run import Run

RESULTS = Path(__file__).parent / "results" / "box.md"
START, MEMORY, QUERY = 1.5, 250.0, 25.0  # seconds, MB, milliseconds


@dataclass(frozen=True)
class Way:
    """A folder that answers, and how it is told to."""

    name: str
    folder: Path
    options: tuple[str, ...] = ()
    python: str = sys.executable

    def words(self, verb: str, *rest: str) -> list[str]:
        return [self.python, "-m", "evenplace", verb, str(self.folder), *rest, *self.options]

    @property
    def environment(self) -> dict[str, str]:
        """Another Python has its own EvenPlace."""
        own = self.python == sys.executable
        return {name: at for name, at in os.environ.items() if own or name != "PYTHONPATH"}


@dataclass(frozen=True)
class Served:
    """One client's queries, in milliseconds, and the service's memory after them."""

    median: float
    slow: float  # 95th percentile
    megabytes: float


def make_run(folder: Path, photos: int) -> tuple[Run, Path]:
    """A drawn town, indexed with the recommended network, and a photo to ask with."""
    draw_city(folder / "town", photos=photos, queries=10, seed=0)
    run = Run(folder / "run")
    run.index_method(read_photos(folder / "town" / "database"), "dapr-m", "imagenet")
    return run, sorted((folder / "town" / "queries").iterdir())[0]


def locate(way: Way, photo: Path) -> float:
    """Seconds from start to end."""
    began = time.perf_counter()
    words = way.words("locate", str(photo), "--json")
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True, env=way.environment)
    return time.perf_counter() - began


def serve(way: Way, photo: bytes, queries: int) -> Served:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = way.words("serve", "--port", str(port))
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL, env=way.environment)
    try:
        client = _connected(port)
        taken = [_ask(client, photo) for _ in range(queries + 10)][10:]
        status = Path(f"/proc/{process.pid}/status").read_text()
        resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
    slow = statistics.quantiles(taken, n=20)[-1]
    return Served(statistics.median(taken), slow, int(resident.split()[1]) / 1024)


def _connected(port: int) -> http.client.HTTPConnection:
    for _ in range(600):
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            client.connect()
            return client
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"nobody listens on {port}")


def _ask(client: http.client.HTTPConnection, photo: bytes) -> float:
    began = time.perf_counter()
    client.request("POST", "/locate", photo, {"Content-Type": "image/jpeg"})
    answer = client.getresponse()
    answer.read()
    assert answer.status == 200, answer.status
    return (time.perf_counter() - began) * 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--photo", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--photos", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--check", action="store_true")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if wanted.run:
            run, photo = Run.open(wanted.run), wanted.photo
        else:
            run, photo = make_run(folder, wanted.photos)
        size = run.export_box(folder / "box", print)
        ways = (
            Way("box", folder / "box", python=wanted.python),
            Way("run, exported network", run.folder),
            Way("run, torch", run.folder, ("--engine", "torch")),
        )
        taken = {way: [locate(way, photo)] for way in ways}  # the files are read once before
        for _ in range(wanted.rounds):
            for way in ways:
                taken[way].append(locate(way, photo))
        picture = photo.read_bytes()
        asked = {way: serve(way, picture, wanted.queries) for way in ways}
        lines = ["| | `locate`, start to answer, s | query in the service, "
                 "median / 95 %, ms | service, MB |", "|---|---|---|---|"]  # fmt: skip
        for way, served in asked.items():
            lines.append(
                f"| {way.name} | {statistics.median(taken[way][1:]):.2f} | {served.median:.1f} / "
                f"{served.slow:.1f} | {served.megabytes:.0f} |"
            )
        index = Run.open(folder / "box").search().index
    head = (
        f"`python -m benchmarks.box{' --run RUN' * bool(wanted.run)}`, "
        f"{datetime.date.today()}, {len(index)} photos of "
        f"{index.given} numbers, a box of {size / 1e6:.0f} MB, query {len(picture)} bytes, "
        f"{wanted.rounds} rounds, {wanted.queries} queries, load average "
        f"{os.getloadavg()[0]:.1f} of {os.cpu_count()} cores."
    )
    text = "\n".join(["# A box", "", head, "", *lines]) + "\n"
    print(text)
    RESULTS.write_text(text)
    box, first = asked[ways[0]], statistics.median(taken[ways[0]][1:])
    reached = first <= START and box.megabytes <= MEMORY and box.median <= QUERY
    return int(wanted.check and not reached)


if __name__ == "__main__":
    sys.exit(main())
