"""Strangers at a real port: stalled bodies, endless headers, two lengths, large pictures."""

import asyncio
import io
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psutil
import pytest
from PIL import Image, features

from evenplace.serve import guard
from evenplace.serve.app import create_app
from evenplace.serve.client import Client, ServiceError
from evenplace.serve.decode import weigh_photo
from evenplace.serve.problems import Problem
from evenplace.serve.queue import HEAVY, Budget, Lanes, WaitingRoom
from evenplace.serve.server import Connection
from evenplace.serve.settings import Limits, Settings
from tests.serve.conftest import Town, jpeg, listening, serving
from tests.serve.test_api import ask, problem_of
from tests.serve.test_queue import process
from tests.serve.test_uploads import png_claiming

HEAD = "POST /locate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: image/jpeg\r\n"
CHUNKED = f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode()


@contextmanager
def line_to(address: str, said: bytes = b"") -> Iterator[socket.socket]:
    port = int(address.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        line.sendall(said)
        yield line


def all_said(line: socket.socket) -> bytes:
    """What is said until the other side closes; a line cut short counts as closed."""
    said = b""
    try:
        while piece := line.recv(1 << 16):
            said += piece
    except ConnectionError:
        pass
    return said


def png(width: int, height: int) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (width, height)).save(data, "PNG", compress_level=1)
    return data.getvalue()


def test_stalled_bodies_leave_others_unharmed(address: str, town: Town) -> None:
    with ExitStack() as stack:
        for _ in range(140):
            stack.enter_context(line_to(address, CHUNKED + b"2\r\nab\r\n"))
        with Client(address, tries=1) as client:
            for number in range(4):
                assert client.locate(town.photo(number)).hits


def test_a_body_too_large_ends_its_connection(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MOST_SECONDS", 0.2)
    settings = Settings(town.run, limits=Limits(request_bytes=50_000))
    piece = b"2710\r\n" + bytes(10_000) + b"\r\n"
    announced = f"{HEAD}Content-Length: 60000\r\n\r\n".encode()
    with listening(create_app(settings)) as address:
        for said in (CHUNKED + piece * 6, announced + bytes(100)):
            with line_to(address, said) as line:
                answer = all_said(line)  # returns because the service closes
            assert answer.startswith(b"HTTP/1.1 413")
            assert b"connection: close" in answer.lower()
            assert b"request-too-large" in answer


def test_a_body_nobody_reads_ends_its_connection(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "MOST_SECONDS", 0.2)
    asked = b"GET /about HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n"
    with line_to(address, asked) as line:
        assert all_said(line).startswith(b"HTTP/1.1 200")


def test_a_body_of_two_lengths_is_refused_and_nothing_after_it_is_read(address: str) -> None:
    second = b"GET /about HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    both = f"{HEAD}Content-Length: {5 + len(second)}\r\nTransfer-Encoding: chunked\r\n\r\n"
    old = f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".replace("HTTP/1.1", "HTTP/1.0")
    for head in (both, old):
        with line_to(address, head.encode() + b"0\r\n\r\n" + second) as line:
            answer = all_said(line)
        assert answer.startswith(b"HTTP/1.1 400"), head
        assert answer.count(b"HTTP/1.1 ") == 1, "one answer"


def test_headers_that_never_finish_end_by_the_clock(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "header_seconds", 1.0)
    whole = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    for begun in (b"", b"GET /health HT", whole + b"GET /health"):
        with line_to(address, begun) as line:
            began = time.monotonic()
            answer = b""
            while time.monotonic() - began < 10:
                try:
                    line.sendall(b"x" if begun else b"")
                    line.settimeout(0.1)
                    piece = line.recv(1 << 16)
                except TimeoutError:
                    continue
                except ConnectionError:
                    break
                answer += piece
                if not piece:
                    break
            assert time.monotonic() - began < 8, "a byte now and then buys no time"
            assert answer.count(b"HTTP/1.1 200") == (whole in begun)


def test_a_request_in_time_is_not_cut_short_by_the_clock(
    address: str, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "header_seconds", 0.6)
    photo = town.photo()
    with line_to(address, f"{HEAD}Content-Length: {len(photo)}\r\n\r\n".encode()) as line:
        for start in range(0, len(photo), -(-len(photo) // 3)):
            time.sleep(0.3)
            line.sendall(photo[start : start + -(-len(photo) // 3)])
        assert line.recv(100).startswith(b"HTTP/1.1 200")


def corrupt_exif(tags: int) -> bytes:
    """A block whose every tag promises text that is not there."""
    body = b"".join(struct.pack("<HHII", 0x9C00 + n, 2, 5000 + n, 8 + n) for n in range(tags))
    return b"Exif\0\0II*\0" + struct.pack("<IH", 8, tags) + body


def test_what_decoders_warn_about_is_counted_and_not_printed(
    town: Town, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(town.run) as client:
        assert ask(client, jpeg(exif=corrupt_exif(500))).status_code == 200
        numbers = client.get("/metrics").text
    (line,) = [
        one for one in numbers.splitlines() if one.startswith("evenplace_decoder_warnings_total ")
    ]
    assert float(line.split()[1]) >= 100
    assert capfd.readouterr() == ("", "")


def test_a_photo_is_weighed_by_what_decoding_takes() -> None:
    plain = Image.new("RGB", (3000, 2000))
    for scans, least in ((False, 0), (True, 6 * 3000 * 2000)):
        data = io.BytesIO()
        plain.save(data, "JPEG", progressive=scans, subsampling=0)
        drafted = 16 * 750 * 500  # a JPEG is decoded at a fraction of its scale
        assert weigh_photo(data.getvalue(), 224, Limits()) == least + drafted
    assert weigh_photo(png_claiming(7000, 7000), 224, Limits()) == 4 * 7000 * 7000
    with pytest.raises(Problem, match="takes 244 MiB to decode, the limit is 224"):
        weigh_photo(png_claiming(40_000, 400), 224, Limits())  # too flat to be reduced


@pytest.mark.skipif(not features.check("webp"), reason="Pillow without WebP")
def test_a_webp_costs_what_its_decoder_copies() -> None:
    data = io.BytesIO()
    Image.new("RGB", (4000, 3500)).save(data, "WEBP", quality=10, method=0)
    with pytest.raises(Problem, match="to decode"):
        weigh_photo(data.getvalue(), 224, Limits())


def test_heavy_photos_wait_for_each_other_and_light_ones_do_not() -> None:
    together, most, gate = 0, 0, threading.Event()

    def heavy() -> str:
        nonlocal together, most
        together += 1
        most = max(most, together)
        gate.wait(20)
        together -= 1
        return "heavy"

    async def go() -> None:
        lanes = Lanes(2, WaitingRoom(Limits(heavy=3)))
        large = [asyncio.create_task(lanes.decode(lambda: HEAVY + 1, heavy)) for _ in range(4)]
        assert await lanes.decode(lambda: 1, lambda: "light") == "light"
        while not any(one.done() for one in large):
            await asyncio.sleep(0.01)
        gate.set()
        found = await asyncio.gather(*large, return_exceptions=True)
        assert found.count("heavy") == 3
        assert sum(isinstance(one, Problem) for one in found) == 1, "the fourth finds no room"
        lanes.shutdown()

    asyncio.run(go())
    assert most == 1


def test_a_budget_is_never_overspent() -> None:
    budget, spent, most = Budget(10), 0, 0

    def work() -> None:
        nonlocal spent, most
        for _ in range(50):
            with budget.spend(4):
                spent += 4
                most = max(most, spent)
                time.sleep(1e-4)
                spent -= 4

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert 4 <= most <= 8


def test_a_photo_that_waited_too_long_is_told_so(town: Town) -> None:
    with serving(town.run, limits=Limits(patience=1e-9)) as client:
        _, *late = ask(client, *[town.photo()] * 3).json()["answers"]  # the first found all idle
        assert [one["problem"]["type"] for one in late] == ["urn:evenplace:busy"] * 2
        text = client.get("/metrics").text
        assert 'evenplace_photos_total{outcome="busy"} 2.0' in text


@pytest.mark.long
def test_sixteen_large_pictures_take_the_memory_of_one(town: Town) -> None:
    pictures = [png(5000, 5000)] * 16

    def bother() -> None:
        try:
            with Client(address, tries=1, timeout=300) as client:
                client.locate_all(pictures)
        except ServiceError:
            pass

    with process(town) as (served, address), Client(address, timeout=300) as client:
        client.locate(town.photo())
        seen = psutil.Process(served.pid)
        rest = most = seen.memory_info().rss
        stranger = threading.Thread(target=bother)
        started = time.monotonic()
        stranger.start()
        waits = []
        while stranger.is_alive():
            began = time.monotonic()
            assert client.locate(town.photo()).hits
            waits.append(time.monotonic() - began)
            most = max(most, seen.memory_info().rss)
            time.sleep(0.05)
        taken = time.monotonic() - started
        after = seen.memory_info().rss
    assert most - rest < 400e6, f"{(most - rest) / 1e6:.0f} MB above rest"
    assert after - rest < 100e6, f"{(after - rest) / 1e6:.0f} MB kept"
    assert max(waits) < taken / 2, f"another client waited {max(waits):.1f} of {taken:.1f} s"


def test_a_request_of_large_pictures_names_the_ones_it_refuses(town: Town) -> None:
    with serving(town.run, limits=Limits(decode_bytes=1 << 20)) as client:
        said = ask(client, png(900, 900), town.photo())
        first, second = said.json()["answers"]
        assert first["problem"]["type"].endswith("photo-too-many-pixels")
        assert second["hits"]
        assert problem_of(ask(client, png(900, 900))).status == 422
