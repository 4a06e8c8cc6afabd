"""A line of a document is a test: every block is typed, in order, on stand-ins.

These begin with photos alone; test_documents_of_runs.py has the others, for another worker.
"""

from pathlib import Path

import pytest

from tests.documents.blocks import WITHOUT_RUNS
from tests.documents.typist import Typist

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("page", "typist"), [(page, page) for page in WITHOUT_RUNS], indirect=["typist"],
    ids=lambda page: page.name,
)  # fmt: skip
def test_every_block_does_what_the_document_says(page: Path, typist: Typist) -> None:
    typist.type_all(page)
