"""One module for each rule."""

from .fedavg import FedAvg
from .fedhv import FedHV
from .fedpcd import FedPCD, StalledWarning
from .uniform import Uniform

__all__ = ["FedAvg", "FedHV", "FedPCD", "StalledWarning", "Uniform"]
