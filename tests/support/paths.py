"""Where things are."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
DOCS = ROOT / "docs"
RESULTS = DOCS / "results"
