"""A folder as a document takes it for granted, and somebody who types what it says."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documents.blocks import PAGES, TAKES_RUNS
from tests.documents.given import give, lay_out, train_runs
from tests.documents.typist import Typist
from tests.standins import Standins


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, standins: Standins) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    lay_out(folder, standins)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return train_runs(folder)


@pytest.fixture
def typist(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    standins: Standins,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Typist]:
    document = request.param.relative_to(PAGES[0].parent).as_posix()
    runs = request.getfixturevalue("runs") if document in TAKES_RUNS else None
    monkeypatch.chdir(tmp_path)
    typist = Typist(give(document, tmp_path, standins, runs))
    yield typist
    typist.end()
