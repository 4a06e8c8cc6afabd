"""Many runs → one answer: declared systems, trained and asked, as tables and figures."""

from evenplace.study.data import Split, read_splits
from evenplace.study.runs import Findings, Outcome, run_study
from evenplace.study.spec import STUDIES, Study, System, find_study
from evenplace.study.write import write_findings

__all__ = [
    "STUDIES",
    "Findings",
    "Outcome",
    "Split",
    "Study",
    "System",
    "find_study",
    "read_splits",
    "run_study",
    "write_findings",
]
