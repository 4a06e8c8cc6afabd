"""Would a test notice?  One small mistake at a time is put into the source, and the tests asked.

    python -m benchmarks.mutants [--mutants 300] [--seed 0] [--room ROOM …] [--show] [--write]
    python -m benchmarks.mutants --again LISTED

A mistake is a comparison, a sign, an `and`, a number, a `min` or a condition turned into its
neighbour.  The tests of each room (`slow` and `long` ones left out) run once, to learn which of
them reach which line; then each mutant meets the tests that reach its line, the quickest first,
and is killed when one of them fails or takes ten times as long.  A mutant on a line that no test
reaches survives.  Each runs in a fork of a process that has the libraries loaded and EvenPlace not.
--room keeps the part of the sample that is in a room; --again tries those alone that a file lists,
as --show prints them.  --write renews benchmarks/results/mutants.md but for what stands there from
"## Equivalent" on: a line for each mutant that can change no result, with the reason.  A survivor
named there is counted apart.  Needs `pip install coverage` and a system that forks.
"""

import argparse
import ast
import copy
import datetime
import gc
import importlib
import importlib.abc
import json
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from coverage import Coverage

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
RESULTS = Path(__file__).parent / "results" / "mutants.md"
RETRIEVAL = (
    "rerank", "learned_weights", "confidence", "calibration", "candidates", "index_pair",
)  # fmt: skip
ROOMS = {  # what is mutated: whole rooms, and of retrieval its ranking and its confidence
    "losses": ("losses/*.py",),
    "places": ("places/*.py",),
    "evaluation": ("evaluation/*.py",),
    "retrieval": tuple(f"retrieval/{name}.py" for name in RETRIEVAL),
}
LIBRARIES = (
    "numpy", "torch", "scipy.stats", "pyarrow.parquet", "pyarrow.compute", "PIL.Image", "faiss",
    "cv2", "sklearn.metrics", "hypothesis.strategies", "pytorch_metric_learning.losses",
    "torch.multiprocessing.spawn", "h5py", "utm", "xml.etree.ElementTree", "safetensors",
)  # fmt: skip
EQUIVALENT = "## Equivalent"
IMPORTED = ""  # the context of what runs outside a test
LONG = 8  # lines of a statement, the first of which is noted
QUIET = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow and not long"]
OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "argmin": "argmax",
         "argmax": "argmin", "minimum": "maximum", "maximum": "minimum", "amin": "amax",
         "amax": "amin", "floor": "ceil", "ceil": "floor", "zeros": "ones", "ones": "zeros",
         "left": "right", "right": "left"}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A place in a module, by the number of its node in `ast.walk`, and what is put there."""

    room: str
    path: str  # under src/
    node: int
    line: int
    change: str  # the line of source, and in it what is changed into what

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.change}"

    @property
    def named(self) -> str:
        """As the results name one that is equivalent: by its words, so that lines may move."""
        return f"- {self.path}: `{self.change}`: "

    @property
    def module(self) -> str:
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def source(self) -> str:
        tree = ast.parse((SOURCE / self.path).read_text())
        changed = _mistake(list(ast.walk(tree))[self.node])
        assert changed is not None
        return ast.unparse(ast.fix_missing_locations(tree))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--room", action="append", choices=list(ROOMS))
    parser.add_argument("--again", type=Path)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    os.chdir(ROOT)
    warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside a library's threads
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.freeze()  # pytest collects thrice a run; what is loaded once need not be looked at
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # schemathesis takes longer than most tests
    rooms = args.room or list(ROOMS)
    everything = [one for room in ROOMS for one in find_mutants(room)]
    chosen = random.Random(args.seed).sample(everything, min(args.mutants, len(everything)))
    if args.again:
        listed = args.again.read_text().splitlines()
        chosen = [one for one in everything if str(one) in listed]
    chosen = [one for one in chosen if one.room in rooms]
    survivors: list[Mutant] = []
    for room in rooms:
        mine = [one for one in chosen if one.room == room]
        survivors += try_mutants(mine, learn_reach(room), show=args.show) if mine else []
    lines = table(rooms, chosen, survivors, args)
    print("\n".join(lines))
    if args.write:
        kept = RESULTS.read_text().partition(EQUIVALENT) if RESULTS.exists() else ("", "", "")
        RESULTS.write_text("\n".join(lines) + "\n\n" + (EQUIVALENT + kept[2]).rstrip() + "\n")


def try_mutants(mutants: Sequence[Mutant], reach: "Reach", *, show: bool) -> list[Mutant]:
    """Those that no test notices."""
    survivors: list[Mutant] = []
    for number, mutant in enumerate(mutants, start=1):
        if survives(mutant, reach):
            survivors.append(mutant)
            if show:
                print(mutant, flush=True)
        if number % 25 == 0:
            say(f"{number} of {len(mutants)}, {len(survivors)} survive")
    return survivors


def find_mutants(room: str) -> Iterator[Mutant]:
    """Every small mistake that can be made in a room; `frozen=False` is none."""
    for pattern in ROOMS[room]:
        for path in sorted((SOURCE / "evenplace").glob(pattern)):
            source = path.read_text()
            tree = ast.parse(source)
            passed = {id(one.value) for one in ast.walk(tree)
                      if isinstance(one, ast.keyword) and one.arg == "frozen"}  # fmt: skip
            for number, node in enumerate(ast.walk(tree)):
                was = copy.deepcopy(node)
                line = None if id(node) in passed else getattr(node, "lineno", None)
                if line is not None and _mistake(node) is not None:
                    where = path.relative_to(SOURCE).as_posix()
                    yield Mutant(room, where, number, line, _show(source, was, node))


def _show(source: str, was: Any, now: ast.AST) -> str:
    """The line that a mistake is in, with what was there and what is there now."""
    line = source.splitlines()[was.lineno - 1].encode()
    after = line[was.end_col_offset :] if was.end_lineno == was.lineno else " …".encode()
    before = line[: was.col_offset].decode().lstrip()
    return f"{before}⟦{ast.unparse(was)} → {ast.unparse(now)}⟧{after.decode()}"


def _mistake(node: ast.AST) -> ast.AST | None:
    """Change a node in place into its neighbour; None where it has none."""
    match node:
        case ast.Compare(ops=[op, *_]) if type(op) in OTHER:
            node.ops[0] = OTHER[type(op)]()  # type: ignore[call-overload]
        case ast.BinOp(op=op, left=left) if type(op) in OTHER and not _is_text(left):
            node.op = OTHER[type(op)]()  # type: ignore[assignment]
        case ast.BoolOp(op=op):
            node.op = OTHER[type(op)]()  # type: ignore[assignment]
        case ast.UnaryOp(op=ast.Not()) | ast.UnaryOp(op=ast.USub()):
            node.op = ast.UAdd() if isinstance(node.op, ast.USub) else ast.Not()
            node.operand = ast.UnaryOp(ast.Not(), node.operand) if isinstance(
                node.op, ast.Not) else node.operand  # fmt: skip
        case ast.IfExp(test=test):
            node.test = ast.UnaryOp(ast.Not(), test)
        case ast.Constant(value=bool() as value):
            node.value = not value
        case ast.Constant(value=int() | float() as value):
            node.value = value + 1
        case ast.Name(id=name) if name in NAMES:
            node.id = NAMES[name]
        case ast.Attribute(attr=name) if name in NAMES:
            node.attr = NAMES[name]
        case _:
            return None
    return node


def _is_text(node: ast.AST) -> bool:
    """Whether `+` joins words, or `|` types, and not numbers."""
    if isinstance(node, ast.BinOp):
        return _is_text(node.left)
    named = isinstance(node, ast.Name) and (node.id[:1].isupper() or node.id in ("str", "int"))
    return isinstance(node, ast.JoinedStr) or named or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )  # fmt: skip


@dataclass(frozen=True)
class Reach:
    """Which tests reach a line of a module, and how long each takes."""

    lines: dict[tuple[str, int], list[str]]
    seconds: dict[str, float]

    def tests(self, mutant: Mutant) -> list[str]:
        """Those that reach the mutant's line, quickest first; of what an import reaches, all.

        Then those that reach its file come first: a default is seen from elsewhere too.
        """
        lines = (self.lines.get((mutant.path, mutant.line - back)) for back in range(LONG))
        found = next((tests for tests in lines if tests is not None), [])
        near = {*found} - {IMPORTED}
        if IMPORTED in found:
            every = (tests for (path, _), tests in self.lines.items() if path == mutant.path)
            near = {test for tests in every for test in tests} - {IMPORTED}
            found = list(self.seconds)
        return sorted(
            {*found} - {IMPORTED}, key=lambda test: (test not in near, self.seconds[test])
        )


class Watch:
    """A plugin of pytest that notes the lines each test reaches, and its seconds."""

    def __init__(self, room: str) -> None:
        self.coverage = Coverage(
            data_file=None, config_file=False, include=[str(SOURCE / "evenplace" / room / "*")]
        )
        self.coverage.start()
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        self.coverage.switch_context(item.nodeid)
        began = time.monotonic()
        done = yield
        self.seconds[item.nodeid] = time.monotonic() - began
        return done

    def lines(self) -> Iterator[tuple[str, int, list[str]]]:
        """Path, line, and the tests that reach it."""
        self.coverage.stop()
        data = self.coverage.get_data()
        for path in data.measured_files():
            where = Path(path).relative_to(SOURCE).as_posix()
            for line, tests in data.contexts_by_lineno(path).items():
                yield where, line, list(tests)


def learn_reach(room: str) -> Reach:
    """Run a room's tests once, in a fork, and note what each reaches."""

    def learn() -> dict[str, Any]:
        watch = Watch(room)
        assert pytest.main([*QUIET, f"tests/{room}"], plugins=[watch]) == 0, "tests fail unchanged"
        return {"lines": list(watch.lines()), "seconds": watch.seconds}

    say(f"{room}: which tests reach which lines")
    learned = json.loads(in_a_fork(learn, limit=1800))
    return Reach(
        {(path, line): tests for path, line, tests in learned["lines"]}, learned["seconds"]
    )


def survives(mutant: Mutant, reach: Reach) -> bool:
    tests = reach.tests(mutant)
    if not tests:
        return True

    def meet() -> int:
        sys.meta_path.insert(0, Changed(mutant.module, mutant.source()))
        return int(pytest.main([*QUIET, "-x", *tests]))

    limit = 30 + 10 * sum(reach.seconds[test] for test in tests)
    return in_a_fork(meet, limit=limit) == "0"


class Changed(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):  # type: ignore[misc]
    """Imports one module of the package from changed source."""

    def __init__(self, module: str, source: str) -> None:
        self.module, self.source = module, source

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> Any:
        if name != self.module:
            return None
        where = SOURCE / name.replace(".", "/")
        spec = ModuleSpec(name, self, is_package=where.is_dir())
        spec.origin, spec.has_location = self.get_filename(name), True
        if where.is_dir():
            spec.submodule_search_locations = [str(where)]
        return spec

    def get_filename(self, fullname: str) -> str:
        where = SOURCE / fullname.replace(".", "/")
        return str(where / "__init__.py" if where.is_dir() else where.with_suffix(".py"))

    def get_data(self, path: str | bytes) -> bytes:
        return self.source.encode()


def in_a_fork(work: Any, *, limit: float) -> str:
    """What `work` gives, as JSON, from a process of its own; "1" where it outlasts its limit."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        with os.fdopen(writer, "w") as out:
            out.write(json.dumps(work()))
        os._exit(0)
    os.close(writer)
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(child, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, limit)
    with os.fdopen(reader) as said:
        told = said.read()
    signal.setitimer(signal.ITIMER_REAL, 0)
    os.waitpid(child, 0)
    return told or "1"


def table(
    rooms: Sequence[str], chosen: Sequence[Mutant], survivors: Sequence[Mutant],
    args: argparse.Namespace,
) -> list[str]:  # fmt: skip
    """Killed and survived by room, and what survived."""
    known = RESULTS.read_text().partition(EQUIVALENT)[2] if RESULTS.exists() else ""
    reasons = known.splitlines()
    same = [one for one in survivors if any(line.startswith(one.named) for line in reasons)]
    gaps = [one for one in survivors if one not in same]
    lines = [
        "# Would a test notice?", "",
        f"`python -m benchmarks.mutants --mutants {args.mutants} --seed {args.seed}`, "
        f"{datetime.date.today()}: one small mistake at a time, asked of the tests that reach its "
        "line (`slow` and `long` ones not among them).", "",
        "| room | mutants | killed | survived | equivalent | killed, % of those not equivalent |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for room in (*rooms, "all"):
        many, left, alike = (
            sum(room in (one.room, "all") for one in of) for of in (chosen, gaps, same)
        )
        share = 100 * (1 - left / max(many - alike, 1))
        lines.append(
            f"| {room} | {many} | {many - left - alike} | {left} | {alike} | {share:.1f} |"
        )
    listed = (f"- {one.path}:{one.line}: `{one.change}`" for one in gaps)
    return [*lines, "", "## Survived", "", *listed]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
