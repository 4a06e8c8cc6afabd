"""What every test may rely on."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.standins import Standins
from tests.standins.towns import code_digest

settings.register_profile("steady", deadline=None)  # a shared machine is not
settings.load_profile("steady")


@pytest.fixture
def data() -> Path:
    """Where the real photographs are, if they are anywhere."""
    root = Path(__file__).parents[1]
    folder = Path(os.environ.get("EVENPLACE_DATA", root.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no photographs in {folder}; set EVENPLACE_DATA")
    return folder


@pytest.fixture(scope="session")
def standins(tmp_path_factory: pytest.TempPathFactory) -> Standins:
    """Stand-ins of every layout, drawn when asked for: tests/standins says which."""
    base = tmp_path_factory.getbasetemp()
    of_user = (one for one in base.parents if one.name.startswith("pytest-of-"))
    towns = next(of_user, base) / f"evenplace-towns-{code_digest()}"
    return Standins(tmp_path_factory.mktemp("standins"), towns)


LONGEST = (
    "test_documents.py", "test_documents_of_runs.py", "test_distributed.py", "test_queue.py",
    "test_describing.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins, so that no worker waits for another at the end."""
    items.sort(key=lambda item: item.path.name not in LONGEST)
