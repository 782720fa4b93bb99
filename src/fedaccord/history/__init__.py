"""What the server remembers of clients: their last updates and all inner products."""

from ._history import History, Represented

__all__ = ["History", "Represented"]
