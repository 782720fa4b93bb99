"""The worked examples are those of the specification, unchanged."""

from __future__ import annotations

import hashlib
from pathlib import Path

DATA = Path(__file__).parent / "data"


def test_the_copy_has_its_checksum():
    recorded = (DATA / "examples.json.sha256").read_text("utf-8").split()[0]
    assert hashlib.sha256((DATA / "examples.json").read_bytes()).hexdigest() == recorded
