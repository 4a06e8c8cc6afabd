"""A line of a document is a test: every block is typed, in order, on stand-ins.

These begin with a run that was trained.
"""

from pathlib import Path

import pytest

from tests.documents.blocks import WITH_RUNS
from tests.documents.typist import Typist

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("page", "typist"), [(page, page) for page in WITH_RUNS], indirect=["typist"],
    ids=lambda page: page.name,
)  # fmt: skip
def test_every_block_does_what_the_document_says(page: Path, typist: Typist) -> None:
    typist.type_all(page)
