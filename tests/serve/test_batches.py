"""Photos described together, or alone when nobody else asks."""

import asyncio
import io
import threading
import time
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from evenplace.describe.describer import Described
from evenplace.serve import batches
from evenplace.serve.batches import Batcher, describe
from evenplace.serve.decode import decode_photo
from evenplace.serve.queue import WaitingRoom
from evenplace.serve.served_index import IndexWatch
from evenplace.serve.settings import Batching, Limits, Settings
from tests.serve.conftest import Town, jpeg


def test_photos_that_come_together_are_described_together(town: Town) -> None:
    sizes: list[int] = []

    async def go() -> None:
        served = IndexWatch(Settings(town.run)).current
        batcher = Batcher(
            Batching(photos=4, window_ms=8000),
            Limits(),
            WaitingRoom(Limits()),
            lambda photos, seconds: sizes.append(photos),
        )
        batcher.start()
        asked = [batcher.ask(served, town.photo(n), 3) for n in range(8)]
        found = await asyncio.gather(*asked)
        assert [len(answer.hits) for answer in found] == [3] * 8
        began = time.perf_counter()
        await batcher.ask(served, town.photo(), 3)
        assert time.perf_counter() - began < 4, "nobody else is coming: no waiting"
        await batcher.stop()

    asyncio.run(go())
    assert sum(sizes) == 9
    assert max(sizes) <= 4
    assert len(sizes) < 9


def test_questions_for_different_numbers_of_hits_share_a_batch(town: Town) -> None:
    async def go() -> list[int]:
        served = IndexWatch(Settings(town.run)).current
        batcher = Batcher(Batching(window_ms=2000), Limits(), WaitingRoom(Limits()))
        batcher.start()
        asked = [batcher.ask(served, town.photo(n), n + 1) for n in range(4)]
        found = await asyncio.gather(*asked)
        await batcher.stop()
        return [len(answer.hits) for answer in found]

    assert asyncio.run(go()) == [1, 2, 3, 4]


def test_a_photo_the_network_fails_on_costs_no_other_its_answer(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison = IndexWatch(Settings(town.run)).current
    plain = batches.describe

    def fails(model: Any, pixels: NDArray[np.uint8]) -> Any:
        if any(bool((one == 0).all()) for one in pixels):
            raise RuntimeError("black photos")
        return plain(model, pixels)

    black = io.BytesIO()
    Image.new("RGB", (64, 64)).save(black, "PNG")
    monkeypatch.setattr(batches, "describe", fails)

    async def go() -> list[Any]:
        batcher = Batcher(Batching(window_ms=2000), Limits(), WaitingRoom(Limits()))
        batcher.start()
        photos = [town.photo(0), black.getvalue(), town.photo(1)]
        asked = [batcher.ask(poison, photo, 2) for photo in photos]
        found = await asyncio.gather(*asked, return_exceptions=True)
        await batcher.stop()
        return found

    first, second, third = asyncio.run(go())
    assert len(first.hits) == len(third.hits) == 2
    assert isinstance(second, RuntimeError)


def test_a_network_that_mixes_its_batch_gets_one_photo_at_a_time() -> None:
    class Mixing:
        together = 8

        def describe(self, pixels: NDArray[np.uint8]) -> Described:
            mixed = np.tile(pixels.mean(axis=(0, 2, 3)), (len(pixels), 1)).astype(np.float32)
            return Described(mixed, np.arange(len(pixels)), (), (3,))

    pixels = np.random.default_rng(0).integers(0, 255, (3, 3, 4, 4)).astype(np.uint8)
    alone = pixels.mean(axis=(2, 3))
    assert describe(Mixing(), pixels) == pytest.approx(alone)  # type: ignore[arg-type]


def test_while_one_is_described_the_others_gather(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lone photo waits for nobody; those that come meanwhile are one batch."""
    busy, go_on, sizes = threading.Event(), threading.Event(), []
    plain = batches.describe

    def slow(model: Any, pixels: NDArray[np.uint8]) -> Any:
        sizes.append(len(pixels))
        busy.set()
        assert go_on.wait(20)
        return plain(model, pixels)

    monkeypatch.setattr(batches, "describe", slow)

    async def go() -> None:
        served = IndexWatch(Settings(town.run)).current
        batcher = Batcher(Batching(photos=8, window_ms=0), Limits(), WaitingRoom(Limits()))
        batcher.start()
        first = asyncio.create_task(batcher.ask(served, town.photo(), 3))
        await asyncio.to_thread(busy.wait, 20)
        rest = [asyncio.create_task(batcher.ask(served, town.photo(n), 3)) for n in range(1, 6)]
        while batcher._ready.qsize() < 4:  # the fifth is in the worker's hand
            await asyncio.sleep(0.01)
        go_on.set()
        assert [len(answer.hits) for answer in await asyncio.gather(first, *rest)] == [3] * 6
        await batcher.stop()

    asyncio.run(go())
    assert sizes == [1, 5]


@pytest.mark.parametrize(("side", "where"), [(64, "network"), (1600, "decode")])
def test_a_large_photo_is_not_decoded_where_others_are_described(
    town: Town, monkeypatch: pytest.MonkeyPatch, side: int, where: str
) -> None:
    seen: list[str] = []

    def watched(*words: Any) -> Any:
        seen.append(threading.current_thread().name)
        return decode_photo(*words)

    monkeypatch.setattr(batches, "decode_photo", watched)

    async def go() -> None:
        batcher = Batcher(Batching(), Limits(), WaitingRoom(Limits()))
        batcher.start()
        await batcher.ask(IndexWatch(Settings(town.run)).current, jpeg(side, side, quality=95), 1)
        await batcher.stop()

    asyncio.run(go())
    assert [name.startswith(where) for name in seen] == [True]
