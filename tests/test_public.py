"""The public surface: what `import evenplace` promises, and what it costs."""

import subprocess
import sys

import pytest

import evenplace as ep


def test_every_public_name_can_be_had() -> None:
    for name in ep.__all__:
        assert getattr(ep, name) is not None


def test_the_public_names_are_these() -> None:
    assert set(ep.__all__) >= {
        "read_photos", "Photos", "Grid", "Places", "build_model", "train", "build_index", "Search",
        "evaluate", "write_report", "losses", "rerank", "draw_city",
    }  # fmt: skip


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(AttributeError, match="read_photos"):
        _ = ep.readphotos


def test_importing_is_quick_and_quiet() -> None:
    code = "import evenplace, sys; print('torch' in sys.modules, 'numpy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False False\n"
    assert run.stderr == ""
