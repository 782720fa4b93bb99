"""The table of the page "Which rule?" is that of the rules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_table_of_rules_is_up_to_date():
    script = ROOT / "scripts" / "rules_table.py"
    result = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
