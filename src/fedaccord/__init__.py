"""Federated learning whose model every client and every task can accept."""

from __future__ import annotations

import importlib.util
import typing
from importlib.metadata import version as _version

__version__ = _version("fedaccord")

if typing.TYPE_CHECKING:
    from ._public import *  # noqa: F403 - `_public.__all__` says which
    from ._public import __all__ as __all__
else:

    def __getattr__(name):
        """Load the library when its first name is asked for.

        PyTorch takes a second to import, which ``fedaccord --help`` does without.
        """
        if name != "__all__":
            # modules import each other before there are any names: `from .. import buffers`
            if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}"):
                return importlib.import_module(f"{__name__}.{name}")
            if name.startswith("__") or name not in __getattr__("__all__"):
                raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        public = importlib.import_module("._public", __name__)
        globals().update({each: getattr(public, each) for each in ("__all__", *public.__all__)})
        return globals()[name]

    def __dir__():
        return sorted({*globals(), *__getattr__("__all__")})
