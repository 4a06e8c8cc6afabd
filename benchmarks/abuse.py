"""Strangers beside valid clients: nobody is dropped, nothing breaks, memory comes back.

    python -m benchmarks.abuse [--run RUN --queries PHOTOS] [--hostile 5000] [--stalled 200]
                               [--clients 16] [--seconds 300] [--one-address] [--write] [--check]

The service is `evenplace serve` in a process of its own, on loopback.  First the valid clients ask
alone for a fifth of `--seconds`, then beside strangers who send `--hostile` requests, bounded by
`--seconds`, and hold `--stalled` sockets open: half with a header, half with a body that never
ends; one that is cut is opened again.  Strangers are a process of their own; all share the
machine's cores.  Each valid client has an address of its own, and strangers have eight, all of
loopback's; --one-address gives everybody the same, as behind a proxy.
"""

import argparse
import datetime
import http.client
import io
import os
import platform
import random
import socket
import statistics
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import psutil
from PIL import Image

from benchmarks.serve import ask, make_town, say, service

RESULTS = Path(__file__).parent / "results" / "abuse.md"
ADDRESSES = 8  # of strangers
STRANGERS = 48  # threads: most requests of theirs wait for a clock
REST_SECONDS = 60
HEAD = "POST /locate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\n"


@dataclass
class Met:
    """What some clients met: statuses, times of answers, lines that broke."""

    statuses: Counter[int] = field(default_factory=Counter)
    elapsed_ms: list[float] = field(default_factory=list)

    @property
    def p99(self) -> float:
        return statistics.quantiles(self.elapsed_ms, n=100)[-1] if len(self.elapsed_ms) > 1 else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path)
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--hostile", type=int, default=5000)
    parser.add_argument("--stalled", type=int, default=200)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--one-address", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true", help="exit 1 unless every figure is met")
    args = parser.parse_args()
    run, queries = (args.run, args.queries) if args.run else make_town(Path("runs/serve"))
    photos = [path.read_bytes() for path in sorted(queries.glob("*.jpg"))[:64]]
    with service(run) as (process, port):
        ask_all = partial(valid, port, photos, args.clients, own=not args.one_address)
        ask_all(10)  # warms up
        rest = process.memory_info().rss
        say("valid clients alone")
        alone = ask_all(args.seconds / 5)
        say("and beside strangers")
        with Watch(process) as watch, ProcessPoolExecutor(1, get_context("spawn")) as others:
            until = time.time() + args.seconds
            many = 1 if args.one_address else ADDRESSES
            abused = others.submit(shout, port, photos, args.hostile, args.stalled, until, many)
            beside = ask_all(args.seconds, beside=abused)
            strangers = abused.result()
        say("at rest again")
        time.sleep(REST_SECONDS)
        after = process.memory_info().rss
    lines, good = judge(alone, beside, strangers, (rest, watch.most, after), args.hostile)
    text = "\n".join([*head(args), *lines])
    print(text)
    if args.write:
        RESULTS.write_text(text + "\n")
    return 0 if good or not args.check else 1


def valid(
    port: int,
    photos: Sequence[bytes],
    clients: int,
    seconds: float,
    *,
    own: bool,
    beside: "Future[Met] | None" = None,
) -> Met:
    """Ask from some clients, each one question after the other; beside: no longer than these.

    own: each from an address of its own.
    """
    met, lock, until = Met(), threading.Lock(), time.monotonic() + seconds

    def client(number: int) -> None:
        mine = (f"127.0.1.{number + 1}" if own else "127.0.0.1", 0)
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=60, source_address=mine)
        asked = number
        while time.monotonic() < until and not (beside and beside.done()):
            began = time.perf_counter()
            try:
                status, _ = ask(line, photos[asked % len(photos)])
            except (OSError, http.client.HTTPException):
                status = 0
                line.close()
            with lock:
                met.statuses[status] += 1
                if status == 200:
                    met.elapsed_ms.append(1e3 * (time.perf_counter() - began))
            asked += clients + 1
            if status == 503:
                time.sleep(0.5)

    _together([partial(client, number) for number in range(clients)])
    return met


def shout(
    port: int, photos: Sequence[bytes], many: int, stalled: int, until: float, addresses: int
) -> Met:
    """Send hostile requests from many threads, with sockets that stand still beside them."""
    met, lock, sent = Met(), threading.Lock(), iter(range(many))
    kinds, over = hostile(photos), threading.Event()

    def stranger(seed: int) -> None:
        rng = random.Random(seed)
        while time.time() < until:
            with lock:
                if next(sent, None) is None:
                    return
            status = _shout(port, rng.choice(kinds)(rng), seed % addresses)
            with lock:
                met.statuses[status] += 1

    def stand(number: int) -> None:
        while not over.is_set():
            with suppress(OSError), _stalled(port, number, number % addresses) as line:
                line.settimeout(1.0)
                while not over.is_set():
                    with suppress(TimeoutError):
                        if not line.recv(4096):
                            break  # it was cut; another one takes its place

    standing = [threading.Thread(target=stand, args=(number,)) for number in range(stalled)]
    for thread in standing:
        thread.start()
    _together([partial(stranger, number) for number in range(STRANGERS)])
    over.set()
    for thread in standing:
        thread.join()
    return met


def hostile(photos: Sequence[bytes]) -> list[Callable[[random.Random], bytes]]:
    """Ways to ask that nobody should: each gives the bytes of one request."""
    large = _picture(7000)
    tags = b"".join(struct.pack("<HHII", 0x9C00 + n, 2, 5000 + n, 8 + n) for n in range(900))
    exif = b"Exif\0\0II*\0" + struct.pack("<IH", 8, 900) + tags
    warned = io.BytesIO()
    Image.new("RGB", (64, 64)).save(warned, "JPEG", exif=exif)
    head = HEAD.format(kind="image/jpeg")
    form = HEAD.format(kind="multipart/form-data; boundary=a")

    def cut(rng: random.Random) -> bytes:
        photo = rng.choice(photos)
        return _post(photo[: rng.randrange(len(photo))])

    def flipped(rng: random.Random) -> bytes:
        photo = bytearray(rng.choice(photos))
        for _ in range(16):
            photo[rng.randrange(len(photo))] = rng.randrange(256)
        return _post(bytes(photo))

    def many(rng: random.Random) -> bytes:
        part = b'--a\r\nContent-Disposition: form-data; name="photo"; filename="x"\r\n\r\n'
        body = (part + large + b"\r\n") * 4 + b"--a--\r\n"
        return form.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body

    return [
        cut,
        flipped,
        many,
        lambda rng: _post(large),
        lambda rng: _post(warned.getvalue()),
        lambda rng: rng.randbytes(400),
        lambda rng: f"{head}Content-Length: 99999999999\r\n\r\n".encode() + bytes(1000),
        lambda rng: f"{head}Transfer-Encoding: chunked\r\n\r\n{'ffffffff'}\r\n".encode(),
        lambda rng: (
            f"{head}Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET".encode()
        ),
        lambda rng: b"GET /about HTTP/1.1\r\nHost: evil@127.0.0.1\r\n\r\n",
        lambda rng: b"GET /photos/../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        lambda rng: f"{form}Content-Length: 30\r\n\r\n--a\r\nContent-Disposition: nonsens".encode(),
        lambda rng: (
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + bytes([97]) * 40_000 + b"\r\n\r\n"
        ),
    ]


def _picture(side: int) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (side, side)).save(data, "PNG", compress_level=1)
    return data.getvalue()


def _post(body: bytes) -> bytes:
    length = f"Content-Length: {len(body)}\r\n\r\n"
    return (HEAD.format(kind="image/jpeg") + length).encode() + body


def _connect(port: int, stranger: int) -> socket.socket:
    """A line from one of the strangers' addresses; the first is everybody's."""
    own = (f"127.0.2.{stranger}" if stranger else "127.0.0.1", 0)
    return socket.create_connection(("127.0.0.1", port), timeout=20, source_address=own)


def _shout(port: int, said: bytes, stranger: int) -> int:
    """Send bytes and give the status of the answer; 0 if there was none."""
    try:
        with _connect(port, stranger) as line:
            line.sendall(said)
            answer = line.recv(64).split()
            return int(answer[1]) if len(answer) > 1 else 0
    except (OSError, ValueError):
        return 0


def _stalled(port: int, number: int, stranger: int) -> socket.socket:
    line = _connect(port, stranger)
    head = HEAD.format(kind="image/jpeg")
    body = f"{head}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"
    line.sendall((head if number % 2 else body).encode())
    return line


def _together(work: Sequence[Callable[[], object]]) -> None:
    threads = [threading.Thread(target=one) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Watch:
    """The most memory a process had while it was watched."""

    def __init__(self, process: psutil.Process) -> None:
        self._process, self.most = process, 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(0.1):
            self.most = max(self.most, self._process.memory_info().rss)


def judge(
    alone: Met, beside: Met, strangers: Met, memory: tuple[int, int, int], wanted: int
) -> tuple[list[str], bool]:
    rest, most, after = memory
    failed = sum(met.statuses[500] for met in (alone, beside, strangers))
    refused = sum(count for status, count in beside.statuses.items() if status not in (200, 503))
    ratio = beside.p99 / alone.p99 if alone.p99 else float("inf")
    said = ", ".join(f"{count} × {status}" for status, count in sorted(strangers.statuses.items()))
    many = strangers.statuses.total()
    checks = [
        ("hostile requests, by status (0: cut off)",
         f"{many}: {said}", f"{wanted}", many >= wanted),
        ("valid answers, alone and beside", f"{alone.statuses[200]}, {beside.statuses[200]}", "",
         beside.statuses[200] > 0),
        ("500", f"{failed}", "0", failed == 0),
        ("valid requests dropped or refused", f"{refused}", "0", refused == 0),
        ("valid requests asked to come back (503)", f"{beside.statuses[503]}", "0",
         beside.statuses[503] == 0),
        ("p99 of the valid", f"{beside.p99:.0f} ms over {alone.p99:.0f} ms, {ratio:.1f} times",
         "<= 3", ratio <= 3),
        ("most memory above rest", f"{(most - rest) / 1e6:.0f} MB of {rest / 1e6:.0f}", "<= 400 MB",
         most - rest <= 400e6),
        ("memory after", f"{after / rest - 1:+.1%}", "<= 10 %", after <= 1.1 * rest),
    ]  # fmt: skip
    lines = ["| figure | found | wanted | met |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {what} | {found} | {want} | {'yes' if met else 'NO'} |"
        for what, found, want, met in checks
    ]
    return lines, all(met for *_, met in checks)


def head(args: argparse.Namespace) -> list[str]:
    return [
        "# Strangers at the service",
        "",
        f"`python -m benchmarks.abuse --hostile {args.hostile} --stalled {args.stalled} "
        f"--clients {args.clients} --seconds {args.seconds:g}"
        f"{' --one-address' if args.one_address else ''}` on {datetime.date.today()}: "
        f"{platform.machine()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}; "
        "clients, strangers and service on the same cores.",
        "",
    ]


if __name__ == "__main__":
    sys.exit(main())
