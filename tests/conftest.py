"""What every test may rely on."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

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
