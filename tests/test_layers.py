"""Data flows one way: a module imports only from rooms above its own."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "evenplace"
ROOMS = (
    "errors",
    "arrays",
    "photos",
    "places",
    "city",
    "losses",
    "networks",
    "describe",
    "training",
    "retrieval",
    "evaluation",
    "run",
    "report",
    "study",
    "serve",
    "demo",
    "cli",
    "__main__",
)
FORBIDDEN = {"utils", "common", "helpers", "misc"}


def room_of(module: str) -> str | None:
    """The room of `evenplace.room.module`; None for the package itself and for outsiders."""
    parts = module.split(".")
    return parts[1] if parts[0] == "evenplace" and len(parts) > 1 else None


def imports_of(file: Path) -> set[str]:
    """Every module a file names, wherever in the file, relative imports resolved."""
    package = ["evenplace", *file.relative_to(SOURCE).parent.parts]
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            found |= {stem, *(f"{stem}.{alias.name}" for alias in node.names)}
    return found


def files() -> list[Path]:
    return [file for file in sorted(SOURCE.rglob("*.py")) if file != SOURCE / "__init__.py"]


@pytest.mark.parametrize("file", files(), ids=lambda f: str(f.relative_to(SOURCE)))
def test_a_module_imports_only_from_rooms_above_it(file: Path) -> None:
    room = file.relative_to(SOURCE).parts[0].removesuffix(".py")
    assert room in ROOMS, f"{file} is in no room; draw it in ROOMS and in the design"
    allowed = set(ROOMS[: ROOMS.index(room) + 1])
    used = {other for name in imports_of(file) if (other := room_of(name)) is not None}
    assert used & set(ROOMS) <= allowed


def test_losses_import_nothing_of_ours_but_errors() -> None:
    for file in (SOURCE / "losses").glob("*.py"):
        rooms = {room_of(name) for name in imports_of(file)} - {None}
        assert rooms <= {"errors", "losses"}, file


def test_reports_never_load_a_model() -> None:
    for file in (SOURCE / "report").glob("*.py"):
        rooms = {room_of(name) for name in imports_of(file)}
        assert not rooms & {"networks", "describe", "training"}, file


def test_no_room_is_a_drawer_for_odds_and_ends() -> None:
    names = {part.removesuffix(".py") for f in files() for part in f.relative_to(SOURCE).parts}
    assert not names & FORBIDDEN


def test_a_breach_would_be_seen(tmp_path: Path) -> None:
    assert room_of("evenplace.retrieval.search") == "retrieval"
    assert ROOMS.index("retrieval") > ROOMS.index("describe")
    assert room_of("numpy.linalg") is None
