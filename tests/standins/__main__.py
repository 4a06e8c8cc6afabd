"""python -m tests.standins FOLDER: every stand-in, to look at or to try commands on."""

import sys
from pathlib import Path

from tests.standins import NAMES, Standins

root = Path(sys.argv[1])
drawn = Standins(root, root / ".towns")
for name in NAMES:
    print(f"{name:12} {getattr(drawn, name)}")
