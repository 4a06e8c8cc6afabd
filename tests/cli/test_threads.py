"""OpenMP is told to spin briefly, in time and unless somebody knows better."""

import os
import subprocess
import sys

import pytest

from evenplace.cli import main
from evenplace.cli.process import SPINS, TURN, VARIABLE, spin_briefly


def test_threads_spin_briefly_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "7")
    spin_briefly()
    assert os.environ[VARIABLE] == "7"
    monkeypatch.delenv(VARIABLE)
    spin_briefly()
    assert os.environ[VARIABLE] == str(SPINS)


def test_torch_is_not_loaded_before_it_is_told() -> None:
    code = "import evenplace.cli, sys; print('torch' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"


def test_every_verb_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(sys, "argv", ["evenplace", "--version"])
    usual = sys.getswitchinterval()
    try:
        with pytest.raises(SystemExit):
            main()
        assert os.environ[VARIABLE] == str(SPINS)
        assert sys.getswitchinterval() == TURN
    finally:
        sys.setswitchinterval(usual)
