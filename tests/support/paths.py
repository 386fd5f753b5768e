"""Where things are in the checkout. The package under test need not be there: it may be the installed one."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CAPTURES = ROOT / "captures"
TESTS = ROOT / "tests"
