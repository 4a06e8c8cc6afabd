"""A line of a document is a test: every block is typed, in order, on stand-ins.

These begin with photos alone; test_documents_of_runs.py has the others, for another worker.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.documents.blocks import WITHOUT_RUNS
from tests.documents.typist import Typist

pytestmark = pytest.mark.slow
TRAINS_MANY = ("second-look.md", "train.md")  # some twenty systems: `make long` types them


def _typed(page: Path) -> Any:
    marks = [pytest.mark.long] if page.name in TRAINS_MANY else []
    return pytest.param(page, page, id=page.name, marks=marks)


@pytest.mark.parametrize(
    ("page", "typist"), [_typed(page) for page in WITHOUT_RUNS], indirect=["typist"],
)  # fmt: skip
def test_every_block_does_what_the_document_says(page: Path, typist: Typist) -> None:
    typist.type_all(page)
