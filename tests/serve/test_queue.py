"""The service keeps answering: a queue with walls, batches, and a stop that loses nothing."""

import asyncio
import concurrent.futures
import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from evenplace.cli import main
from evenplace.serve.app import create_app
from evenplace.serve.client import Client, ServiceError
from evenplace.serve.problems import Problem
from evenplace.serve.queue import Turns, WaitingRoom
from evenplace.serve.settings import Limits, Settings
from tests.serve.conftest import Town, listening, serving
from tests.serve.test_api import ask, problem_of

PATIENCE = 300  # seconds for a service to start beside busy neighbours
EVENPLACE = (sys.executable, "-c", "from evenplace.cli import main; main()")


def test_a_full_waiting_room_says_when_to_come_back() -> None:
    room = WaitingRoom(Limits(waiting=2))
    with room.admit(2):
        with pytest.raises(Problem) as full, room.admit(1):
            pass
        assert full.value.status == 503
        assert full.value.retry_after == 1
    with room.admit(2):
        assert room.photos == 2
    assert room.photos == 0


def test_a_wait_that_is_of_no_use_is_refused_at_the_door() -> None:
    room = WaitingRoom(Limits(patience=2.0))
    with room.admit(20):
        pass  # an empty room takes what a request brings
    with room.admit(21), pytest.raises(Problem, match="2 seconds' work") as late, room.admit(1):
        pass
    assert late.value.status == 503
    assert late.value.retry_after == 3
    room.check_patience(1.9)
    with pytest.raises(Problem, match="has waited for 3 seconds"):
        room.check_patience(3.0)


def test_the_wait_is_what_the_pace_makes_it() -> None:
    room = WaitingRoom(Limits(waiting=10_000, patience=1e9))
    with room.admit(100):
        assert room.retry_after() == 10, "ten a second to begin with"
    for _ in range(100):
        room.answered(50, 1.0)
    with room.admit(100):
        assert room.retry_after() == 3, "fifty a second lately"
    with room.admit(9999):
        assert room.retry_after() == 30, "and never more than half a minute"


def test_a_flood_leaves_room_and_patience_for_others() -> None:
    room = WaitingRoom(Limits(waiting=40, patience=2.0))
    with room.admit(40, "flood"):
        with pytest.raises(Problem, match="no more fit"), room.admit(1, "flood"):
            pass
        with room.admit(10, "others"):  # its wait is that of eleven turns of two, not of 41 photos
            assert room.photos == 50
            with pytest.raises(Problem, match="no more fit"), room.admit(1, "others"):
                pass
    assert room.photos == 0
    with room.admit(1, "flood"):
        assert room.photos == 1, "who has left is forgotten"


def test_senders_take_turns_and_keep_their_order() -> None:
    had: list[str] = []

    async def one(turns: Turns, sender: str, number: int) -> None:
        async with turns.take(sender):
            had.append(f"{sender}{number}")
            await asyncio.sleep(0)

    async def all_of_them() -> None:
        turns = Turns(1)
        flood = [one(turns, "a", number) for number in range(4)]
        await asyncio.gather(*flood, *(one(turns, name, 0) for name in "bc"))

    asyncio.run(all_of_them())
    assert had == ["a0", "a1", "b0", "c0", "a2", "a3"]


def test_a_turn_of_somebody_who_hung_up_is_passed_on() -> None:
    async def hang_up() -> None:
        turns = Turns(1)
        async with turns.take("a"):
            waiting = [asyncio.create_task(_hold(turns, name)) for name in "bcd"]
            await asyncio.sleep(0)
            waiting[0].cancel()  # while it waits
            await asyncio.sleep(0)
        waiting[1].cancel()  # as its turn comes
        await asyncio.wait_for(waiting[2], 5)
        assert all(task.cancelled() for task in waiting[:2])
        async with asyncio.timeout(5), turns.take("e"):
            pass

    asyncio.run(hang_up())


async def _hold(turns: Turns, sender: str) -> None:
    async with turns.take(sender):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="loopback has one address elsewhere")
def test_photos_wait_in_the_name_of_their_address(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    take = Turns.take

    def noted(turns: Turns, sender: str) -> Any:
        asked.append(sender)
        return take(turns, sender)

    monkeypatch.setattr(Turns, "take", noted)
    with listening(create_app(Settings(town.run))) as address:
        port = int(address.rpartition(":")[2])
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda n: _post(port, f"127.0.0.{n}", town.photo()), range(2, 6)))
    assert len(set(asked)) >= 2, "one alone takes no turn"
    assert set(asked) <= {f"127.0.0.{n}" for n in range(2, 6)}


def _post(port: int, own: str, photo: bytes) -> None:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60, source_address=(own, 0))
    line.request("POST", "/locate", photo, {"Content-Type": "image/jpeg"})
    assert line.getresponse().status == 200
    line.close()


def test_overflow_is_503_with_retry_after_and_nothing_else(town: Town) -> None:
    with serving(town.run, limits=Limits(waiting=4)) as client:
        with concurrent.futures.ThreadPoolExecutor(32) as threads:
            said = list(threads.map(lambda n: ask(client, town.photo(n % 12)), range(96)))
        statuses = [one.status_code for one in said]
        assert set(statuses) == {200, 503}
        for one in said:
            if one.status_code == 503:
                assert problem_of(one).type.endswith("busy")
                assert int(one.headers["retry-after"]) >= 1
        assert client.app.state.service.waiting.photos == 0  # type: ignore[attr-defined]
        assert ask(client, town.photo()).status_code == 200, "and then it goes on"
        text = client.get("/metrics").text
        assert f'evenplace_photos_total{{outcome="busy"}} {statuses.count(503)}.0' in text
        assert "evenplace_waiting_photos 0.0" in text


def test_a_request_of_many_photos_takes_as_many_places(town: Town) -> None:
    with serving(town.run, limits=Limits(waiting=3)) as client:
        assert ask(client, *[town.photo()] * 3).status_code == 200
        assert ask(client, *[town.photo()] * 4).status_code == 503


def test_a_sender_who_dawdles_is_sent_away(town: Town) -> None:
    settings = Settings(town.run, limits=Limits(body_seconds=3.0, waiting=1))
    with listening(create_app(settings)) as address:
        port = int(address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
            head = "POST /locate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: image/jpeg\r\n"
            line.sendall(f"{head}Content-Length: 1000\r\n\r\nslow".encode())
            assert b"408" in line.recv(1000).splitlines()[0]
        with Client(address) as client:
            assert client.locate(town.photo()).hits, "its place is free again"


def test_a_sender_who_hangs_up_frees_the_place(town: Town) -> None:
    settings = Settings(town.run, limits=Limits(waiting=1))
    app = create_app(settings)
    with listening(app) as address:
        port = int(address.rpartition(":")[2])
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
                head = "POST /locate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: image/jpeg\r\n"
                line.sendall(f"{head}Content-Length: 1000\r\n\r\npart".encode())
        until = time.monotonic() + 5
        while app.state.service.waiting.photos and time.monotonic() < until:
            time.sleep(0.02)
        with Client(address) as client:
            assert client.locate(town.photo()).hits


def test_the_client_waits_for_a_full_queue(town: Town) -> None:
    said: list[int] = []

    def answer(request: httpx.Request) -> httpx.Response:
        said.append(503 if len(said) < 2 else 200)
        ready = {"status": "ready", "index": "0", "photos": 1, "places": 1, "waiting": 0}
        return httpx.Response(said[-1], json=ready, headers={"retry-after": "0"})

    with Client(transport=httpx.MockTransport(answer)) as client:
        assert client.ready().photos == 1
    assert said == [503, 503, 200]
    said.clear()
    with (
        Client(transport=httpx.MockTransport(answer), tries=2) as client,
        pytest.raises(ServiceError),
    ):
        client.ready()


@contextmanager
def process(town: Town, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`evenplace serve` as a process of its own; gives its address once it is ready."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*EVENPLACE, "serve", str(town.run), "--port", str(port), "--engine", "torch"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [*command, *words], text=True, stderr=subprocess.PIPE, env=environment
    ) as served:
        address = f"http://127.0.0.1:{port}"
        lines: list[str] = []
        reader = threading.Thread(target=lambda: lines.extend(served.stderr or ()), daemon=True)
        reader.start()
        try:
            _wait_for(address, served, lines)
            yield served, address
        finally:
            served.terminate()
            served.wait(40)
            reader.join(5)


def _wait_for(address: str, served: subprocess.Popen[str], lines: list[str]) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and served.poll() is None:
        try:
            if httpx.get(f"{address}/ready", trust_env=False).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError("".join(lines))


@pytest.mark.slow
def test_a_stop_answers_what_was_asked_before(town: Town) -> None:
    photos = [town.photo(number) for number in range(8)]

    def ask_many() -> int:
        with Client(address, tries=1) as client:
            return len(client.locate_all(photos))

    with process(town) as (served, address), Client(address) as client:
        client.locate(town.photo())
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            asked = [threads.submit(ask_many) for _ in range(4)]
            while client.ready().waiting < 24 and not any(one.done() for one in asked):
                pass  # until three of four were let in
            let_in = sum(one.done() for one in asked)  # first: what is done now waits no more
            let_in += client.ready().waiting // 8
            served.send_signal(signal.SIGTERM)
            answered = [one.result() for one in asked if one.exception() is None]
        assert served.wait(40) in (0, -signal.SIGTERM)
    assert let_in >= 1
    assert len(answered) >= let_in
    assert set(answered) == {8}


def _locate(address: str, photo: bytes) -> str:
    try:
        with Client(address) as client:
            return "answered" if client.locate(photo).hits else "empty"
    except ServiceError as error:
        return error.kind


def _holding(service: int) -> int:
    """Workers that have the index's descriptors open."""
    children = psutil.Process(service).children(recursive=True)
    return sum(
        any(Path(one.path).name == "rows-descriptors.npy" for one in child.open_files())
        for child in children
    )


@pytest.mark.long
def test_workers_share_the_index_and_add_up_their_numbers(town: Town) -> None:
    with process(town, "--workers", "2") as (served, address):
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            outcomes = list(threads.map(lambda n: _locate(address, town.photo(n % 12)), range(40)))
        assert outcomes == ["answered"] * 40
        text = httpx.get(f"{address}/metrics", trust_env=False).text
        assert 'evenplace_photos_total{outcome="answered"} 40.0' in text
        until = time.monotonic() + 60  # on a busy machine the second comes up late
        while (holding := _holding(served.pid)) < 2 and time.monotonic() < until:
            _locate(address, town.photo())
        assert holding == 2, "each worker reads the one file, which the system keeps once"


def test_an_unusable_run_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["evenplace", "serve", str(tmp_path)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert "is no run folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--host", "0.0.0.0"), "token"),
        (("--min-precision", "7"), "between 0 and 1"),
        (("--tiles", "nonsense"), "{z}"),
        (("--workers", "0"), "workers"),
        (("--port", "99999"), "port"),
        (("--batch", "0"), "1 or more"),
        (("--queue", "0"), "1 or more"),
        (("--patience", "nan"), "seconds above 0"),
    ],
)
def test_a_wrong_option_is_one_sentence(
    town: Town,
    words: tuple[str, ...],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("EVENPLACE_TOKEN", raising=False)
    monkeypatch.setattr(sys, "argv", ["evenplace", "serve", str(town.run), *words])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert reason in capsys.readouterr().err
