"""``python -m fedaccord``, the same as ``fedaccord``."""

from __future__ import annotations

from .cli import main

main()
