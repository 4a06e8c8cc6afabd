"""Bodies on their way: what they are charged, and who gives way."""

import asyncio
from contextlib import ExitStack

import pytest

from evenplace.serve.problems import Problem
from evenplace.serve.settings import Limits
from evenplace.serve.uploads import Bodies, Body


def test_a_body_is_charged_for_what_has_arrived() -> None:
    room = Bodies(Limits(waiting_bytes=1000, address_bytes=1000))
    with room.hold("a") as body:
        body.take(800)
        with pytest.raises(Problem, match="too many photos are being sent"):
            body.take(300)
    with room.hold("a") as body:
        body.take(1000)  # who has left weighs nothing


def test_the_oldest_body_of_the_largest_address_gives_way() -> None:
    room = Bodies(Limits(bodies=4, address_bodies=4))
    with ExitStack() as stack:
        quiet = stack.enter_context(room.hold("quiet"))
        crowd = [stack.enter_context(room.hold("crowd")) for _ in range(3)]
        last = stack.enter_context(room.hold("another"))
        assert [body.sent_away for body in (quiet, *crowd, last)] == [False, True] + [False] * 3


def test_one_address_cannot_take_all_the_room() -> None:
    room = Bodies(Limits(waiting_bytes=1000, address_bytes=600))
    with room.hold("greedy") as first, room.hold("greedy") as second, room.hold("b") as other:
        first.take(500)
        second.take(200)
        assert first.sent_away, "the older one"
        other.take(500)
        assert [second.sent_away, other.sent_away] == [False, False]


def test_a_body_that_has_arrived_is_not_sent_away() -> None:
    room = Bodies(Limits(waiting_bytes=1000, address_bytes=1000))
    with room.hold("a") as whole, room.hold("a") as late:
        whole.take(900)
        whole.arriving = False
        with pytest.raises(Problem):
            late.take(200)
        assert not whole.sent_away


async def _arrive(body: Body, pieces: list[float]) -> None:
    async with asyncio.timeout(10.0) as clock:
        with body.arrives_by(clock):
            for pause in pieces:
                await asyncio.sleep(pause)
                body.take(1)


def test_a_body_that_stands_still_is_not_waited_for() -> None:
    async def go() -> None:
        room = Bodies(Limits(stall_seconds=1.0))
        with room.hold("a") as steady:
            await _arrive(steady, [0.15] * 8)
        with room.hold("a") as stalled, pytest.raises(TimeoutError):
            await _arrive(stalled, [0.0, 5.0])
        assert not stalled.sent_away

    asyncio.run(go())


def test_sending_a_body_away_ends_its_wait_at_once() -> None:
    async def go() -> None:
        room = Bodies(Limits(bodies=1))
        with room.hold("a") as first:
            waiting = asyncio.create_task(_arrive(first, [8.0]))
            await asyncio.sleep(0.05)
            with room.hold("b"), pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.shield(waiting), 4.0)
            assert first.sent_away
            assert waiting.done()

    asyncio.run(go())
