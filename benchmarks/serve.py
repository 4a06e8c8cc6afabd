"""The service under load: right, steady, batched, and hardly slower than the engine alone.

    python -m benchmarks.serve [--run RUN --queries PHOTOS] [--write] [--check]

Without --run it draws a town of 1,200 photos and trains on it first (some minutes).  The service
is `evenplace serve` in a process of its own; clients and service share the machine's cores.

    load      64 clients for --seconds: statuses, answers compared with the engine's, memory
    batching  64 clients, batches of 8 against batches of 1, all else equal, in turns
    overhead  one client, HTTP against engine.answer on the same bytes, in turns, each after the
              same pause: neither finds the other's threads still spinning, nor its own still warm
"""

import argparse
import datetime
import http.client
import json
import os
import platform
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from evenplace.cli.process import keep_freed_memory, spin_briefly

RESULTS = Path(__file__).parent / "results" / "serve.md"
CLIENTS = 64
ROUNDS = 5
PAUSE = 0.02  # seconds before each question of a lone client
EVENPLACE = (sys.executable, "-c", "from evenplace.cli import main; main()")


@dataclass
class Load:
    """What a number of clients met."""

    seconds: float
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: int = 0
    elapsed_ms: list[float] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)  # seconds, bytes

    @property
    def rate(self) -> float:
        return self.statuses[200] / self.seconds

    @property
    def growth(self) -> float:
        """Memory of the last fifth over that of the second fifth: after warm-up, before the end."""
        fifth = self.seconds / 5
        early = [size for at, size in self.memory if fifth <= at < 2 * fifth]
        late = [size for at, size in self.memory if at >= 4 * fifth]
        return statistics.median(late) / statistics.median(early) - 1 if early and late else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path)
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true", help="exit 1 unless every figure is met")
    args = parser.parse_args()
    keep_freed_memory()  # both as the service does
    spin_briefly()
    run, queries = (args.run, args.queries) if args.run else make_town(Path("runs/serve"))
    photos = [path.read_bytes() for path in sorted(queries.glob("*.jpg"))[:64]]
    answers = expected(run, photos)
    say("64 clients")
    with service(run) as (process, port):
        load = press(port, process, photos, answers, args.seconds)
        say("one client, and the engine")
        extra = overhead(run, port, photos)
    say("batches")
    batched, alone = compare(run, photos, answers, args.seconds)
    lines, good = judge(load, extra, batched, alone)
    text = "\n".join([*head(args.seconds, run), *lines])
    print(text)
    if args.write:
        RESULTS.write_text(text + "\n")
    return 0 if good or not args.check else 1


def say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def make_town(folder: Path) -> tuple[Path, Path]:
    town, run = folder / "town", folder / "run"
    words = ("--preset", "recommended", "--set", "epochs=8")
    if not town.exists():
        _evenplace("city", town, "--photos", "1200", "--queries", "150")
    if not (run / "index" / "manifest.json").exists():
        _evenplace("train", town / "database", "--run", run, *words)
        _evenplace("index", run, "--database", town / "database")
    return run, town / "queries"


def _evenplace(*words: object) -> None:
    subprocess.run([*EVENPLACE, *map(str, words)], check=True)


@dataclass(frozen=True)
class Expected:
    """What the engine says of a photo, asked alone."""

    row: int
    east: float
    north: float

    def agrees(self, said: dict[str, object]) -> bool:
        answer = said["answers"][0]  # type: ignore[index]
        row = int(answer["hits"][0]["photo"].partition("-")[2])
        spot = answer["position"]
        near = abs(spot["east"] - self.east) < 1 and abs(spot["north"] - self.north) < 1
        return near and row == self.row


def expected(run: Path, photos: Sequence[bytes]) -> list[Expected]:
    from evenplace.run.run import Run

    engine = Run(run).search()
    found = [engine.answer(photo) for photo in photos]
    return [Expected(one.hits[0].row, one.position.east, one.position.north) for one in found]


@contextmanager
def service(run: Path, *words: str) -> Iterator[tuple[psutil.Process, int]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*EVENPLACE, "serve", str(run), "--port", str(port), *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(port)
            yield psutil.Process(process.pid), port
        finally:
            process.send_signal(signal.SIGTERM)


def _wait_for(port: int) -> None:
    for _ in range(600):
        try:
            line = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            line.request("GET", "/ready")
            if line.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.2)
    raise SystemExit("the service did not start")


def press(
    port: int,
    process: psutil.Process,
    photos: Sequence[bytes],
    answers: Sequence[Expected],
    seconds: float,
) -> Load:
    """Ask from 64 clients, each one question after the other."""
    load, lock = Load(seconds), threading.Lock()
    began = time.monotonic()

    def client(number: int) -> None:
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        asked = number
        while time.monotonic() - began < seconds:
            at = time.perf_counter()
            status, body = ask(line, photos[asked % len(photos)])
            spent = 1e3 * (time.perf_counter() - at)
            right = status != 200 or answers[asked % len(photos)].agrees(json.loads(body))
            with lock:
                load.statuses[status] += 1
                load.elapsed_ms.append(spent)
                load.wrong += not right
            asked += CLIENTS + 1
            if status == 503:
                time.sleep(0.5)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        load.memory.append((time.monotonic() - began, process.memory_info().rss))
        time.sleep(0.5)
    load.seconds = time.monotonic() - began  # the last answers come after the bell
    return load


def ask(line: http.client.HTTPConnection, photo: bytes) -> tuple[int, bytes]:
    line.request("POST", "/locate", photo, {"Content-Type": "image/jpeg"})
    said = line.getresponse()
    return said.status, said.read()


def compare(
    run: Path, photos: Sequence[bytes], answers: Sequence[Expected], seconds: float
) -> tuple[float, float]:
    """Photos a second in batches and one at a time, in turns, so that both meet the same load."""
    one = ("--batch", "1", "--window-ms", "0")
    with service(run) as batched, service(run, *one) as alone:
        rates: list[list[float]] = [[], []]
        for turn in range(ROUNDS + 1):
            for which, (process, port) in enumerate((batched, alone)):
                load = press(port, process, photos, answers, seconds / ROUNDS)
                if turn:  # the first one warms both up
                    rates[which].append(load.rate)
    return statistics.median(rates[0]), statistics.median(rates[1])


def overhead(run: Path, port: int, photos: Sequence[bytes]) -> list[tuple[float, float]]:
    """Milliseconds over HTTP and in the engine, in turns on the same photos."""
    from evenplace.run.run import Run

    engine = Run(run).search()
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    pairs = []
    for turn in range(4):
        for photo in photos:
            over = timed(lambda: ask(line, photo))  # noqa: B023, called at once
            inside = timed(lambda: engine.answer(photo))  # noqa: B023
            if turn:  # the first round warms both up
                pairs.append((over, inside))
    return pairs


def timed(work: Callable[[], object]) -> float:
    """Milliseconds of some work after a pause."""
    time.sleep(PAUSE)
    began = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - began)


def judge(
    load: Load, extra: Sequence[tuple[float, float]], batched: float, alone: float
) -> tuple[list[str], bool]:
    over, inside = (statistics.median(column) for column in zip(*extra, strict=True))
    more = statistics.median(one - other for one, other in extra)
    failures = sum(count for status, count in load.statuses.items() if status not in (200, 503))
    tail = statistics.quantiles(load.elapsed_ms, n=20)[-1]
    middle = statistics.median(load.elapsed_ms)
    checks = [
        ("answers, 64 clients", f"{load.statuses[200]} ({load.rate:.0f} a second)", "", True),
        ("median, 95 % of them within", f"{middle:.0f} ms, {tail:.0f} ms", "", True),
        ("503 from the queue", f"{load.statuses[503]}", "", True),
        ("other failures", f"{failures}", "0", failures == 0),
        ("wrong answers", f"{load.wrong}", "0", load.wrong == 0),
        ("memory growth", f"{load.growth:+.1%}", "< 5 %", load.growth < 0.05),
        (
            "batches of 8 over one at a time",
            f"{batched / alone:.2f} ({batched:.0f} over {alone:.0f} a second)",
            ">= 1.5",
            batched >= 1.5 * alone,
        ),
        (
            "overhead of HTTP, median",
            f"{more:.1f} ms ({over:.1f} over {inside:.1f})",
            "<= 5 ms",
            more <= 5,
        ),
    ]
    lines = ["| figure | found | wanted | met |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {what} | {found} | {want} | {'yes' if met else 'NO'} |"
        for what, found, want, met in checks
    ]
    return lines, all(met for *_, met in checks)


def head(seconds: float, run: Path) -> list[str]:
    import torch

    from evenplace.retrieval import open_index
    from evenplace.run.run import Run

    index, recipe = open_index(run / "index"), Run(run).recipe
    return [
        "# The service",
        "",
        f"`python -m benchmarks.serve --seconds {seconds:g}` on {datetime.date.today()}: "
        f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__.split('+')[0]}, "
        f"load average {os.getloadavg()[0]:.1f}; {len(index):,} photos of {len(index.places)} "
        f"places, {recipe.name} on {recipe.network.backbone}, town seed 0; "
        "clients and service on the same cores.",
        "",
    ]


if __name__ == "__main__":
    sys.exit(main())
