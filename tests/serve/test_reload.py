"""A new index takes over while questions are answered, and a broken one does not."""

import concurrent.futures
import json
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenplace.errors import SettingError
from evenplace.photos import read_photos
from evenplace.retrieval.update import remove_photos
from evenplace.run.run import Run
from evenplace.serve.served_index import IndexWatch
from evenplace.serve.settings import Settings
from tests.drawn import draw_photos
from tests.serve.conftest import Town, serving
from tests.serve.test_api import ask


@pytest.fixture
def larger(tmp_path: Path, town: Town) -> Path:
    """The town's photos and ten more."""
    shutil.copytree(town.database, tmp_path / "larger")
    draw_photos(tmp_path / "larger", np.random.default_rng(7).uniform(0, 100, (10, 2)), seed=7)
    return tmp_path / "larger"


def test_a_new_index_is_answered_from(own_town: Town, larger: Path) -> None:
    outcomes: list[str] = []
    watch = IndexWatch(Settings(own_town.run), on_reload=outcomes.append)
    first = watch.current
    assert not watch.refresh(), "nothing new"
    Run(own_town.run).index(read_photos(larger))
    assert watch.refresh()
    assert len(watch.current.engine.index) == 50
    assert watch.find(first.version) is first, "pages still show its photos"
    assert outcomes == ["opened"]


def test_photos_that_came_and_went_are_served(own_town: Town) -> None:
    """An update shifts rows: ids, cells and files must follow."""
    with serving(own_town.run, watch_seconds=0) as client:
        watch = client.app.state.service.index_watch  # type: ignore[attr-defined]
        before = watch.current
        gone = before.path_of(3)
        remove_photos(own_town.run / "index", [gone])
        assert watch.refresh()
        now = watch.current
        assert client.get("/about").json()["photos"] == 39
        assert now.path_of(3) == before.path_of(4)
        assert before.path_of(3) == gone, "the old index stays as it was"
        shown = []
        for place in now.ranked():
            pictures = client.get(f"/places/{place}?limit=200").json()["pictures"]
            shown += [now.path_of(int(one["photo"].partition("-")[2])) for one in pictures]
        assert sorted(shown) == sorted(set(before.engine.index.photos.paths) - {gone})
        answer = ask(client, own_town.photo()).json()["answers"][0]
        assert client.get(f"/photos/{answer['hits'][0]['photo']}").status_code == 200


def test_a_broken_index_is_refused_and_the_old_one_goes_on(own_town: Town) -> None:
    outcomes: list[str] = []
    watch = IndexWatch(Settings(own_town.run), on_reload=outcomes.append)
    first = watch.current
    manifest = own_town.run / "index" / "manifest.json"
    manifest.write_text(json.dumps({"version": 999}))
    for _ in range(3):
        assert not watch.refresh()
    assert watch.current is first
    assert "999" in watch.problem
    assert outcomes == ["refused"], "said once"


def test_an_index_that_is_gone_for_a_moment_is_waited_for(own_town: Town) -> None:
    watch = IndexWatch(Settings(own_town.run))
    index = own_town.run / "index"
    index.rename(index.with_name("away"))
    assert not watch.refresh()
    index.with_name("away").rename(index)
    assert not watch.refresh()
    assert watch.problem == ""


def test_a_reload_under_load_fails_no_question(own_town: Town, larger: Path) -> None:
    photos = [own_town.photo(number) for number in range(12)]
    with serving(own_town.run, watch_seconds=0.05) as client:
        before = client.get("/about").json()
        statuses: list[int] = []
        indexes: set[str] = set()
        shown: list[int] = []

        def keep_asking(number: int) -> None:
            until = time.monotonic() + 60
            after = 0
            while time.monotonic() < until and after < 3:
                said = ask(client, photos[number])
                statuses.append(said.status_code)
                indexes.add(said.json()["index"])
                hit = said.json()["answers"][0]["hits"][0]["photo"]
                shown.append(client.get(f"/photos/{hit}?side=16").status_code)
                after += said.json()["index"] != before["index"]

        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            asking = [threads.submit(keep_asking, number) for number in range(4)]
            time.sleep(0.3)
            Run(own_town.run).index(read_photos(larger))
            for one in asking:
                one.result()
        assert set(statuses) == {200}
        assert set(shown) == {200}
        assert len(indexes) == 2
        assert client.get("/about").json()["photos"] == 50
        assert 'evenplace_index_reloads_total{outcome="opened"} 1.0' in client.get("/metrics").text
        old = f"/photos/{before['index']}-0"
        assert client.get(old).status_code == 200


def test_photos_with_relative_paths_are_found_from_anywhere(
    own_town: Town,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(own_town.database.parent)
    Run(own_town.run).index(read_photos(own_town.database.name))
    monkeypatch.chdir(tmp_path)
    with serving(own_town.run) as client:
        shown = f"/photos/{client.get('/about').json()['index']}-0"
        assert client.get(shown).status_code == 404
        assert "--photos FOLDER" in caplog.text
        caplog.clear()
    with serving(own_town.run, photos=own_town.database.parent) as client:
        assert client.get(shown).status_code == 200
        assert not caplog.text
    with pytest.raises(SettingError, match="is no folder"):
        Settings(own_town.run, photos=tmp_path / "nowhere")


def test_the_thread_that_opened_an_index_is_gone(
    own_town: Town, larger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its OpenMP pool would slow down the thread that describes photos."""
    opened_by: list[threading.Thread] = []

    search = Run.search

    def watched(*words: Any, **options: Any) -> Any:
        opened_by.append(threading.current_thread())
        return search(*words, **options)

    monkeypatch.setattr(Run, "search", watched)
    watch = IndexWatch(Settings(own_town.run))
    Run(own_town.run).index(read_photos(larger))
    assert watch.refresh()
    assert len(opened_by) == 2
    assert not any(thread.is_alive() for thread in opened_by)
