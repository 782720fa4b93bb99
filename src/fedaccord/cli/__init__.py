"""The command line: ``fedaccord run``, ``compare``, ``list``, ``verify``, ``demo``."""

from __future__ import annotations

from ._app import app, main

__all__ = ["app", "main"]
