"""A line of a document is a test: every block is typed, in order, on stand-ins."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documents.blocks import PAGES, TAKES_RUNS, TYPED, read_blocks
from tests.documents.given import give, lay_out, train_runs
from tests.documents.typist import Typist
from tests.standins import Standins

pytestmark = pytest.mark.slow
WITH_BLOCKS = [page for page in PAGES if any(one.kind in TYPED for one in read_blocks(page))]


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


@pytest.mark.parametrize(
    ("page", "typist"), [(page, page) for page in WITH_BLOCKS], indirect=["typist"],
    ids=[page.name for page in WITH_BLOCKS],
)  # fmt: skip
def test_every_block_does_what_the_document_says(page: Path, typist: Typist) -> None:
    for block in read_blocks(page):
        if block.kind in TYPED and not block.unrun:
            typist.type(block)
