"""One module for each rule."""

from .afl import AFL
from .craft import CRAFT
from .ditto import Ditto
from .fedavg import FedAvg
from .feddyn import FedDyn
from .fedfv import FedFV
from .fedheal import FedHEAL
from .fedhv import FedHV
from .fedlf import FedLF
from .fedmgdaplus import FedMGDAPlus
from .fedpcd import FedPCD, StalledWarning
from .fedprox import FedProx
from .fedpw import FedPW
from .gifair import GIFAIR
from .localonly import LocalOnly
from .propfair import PropFair
from .qfedavg import QFedAvg
from .scaffold import SCAFFOLD
from .serveradagrad import ServerAdagrad
from .serveradam import ServerAdam
from .servermomentum import ServerMomentum
from .serveryogi import ServerYogi
from .term import TERM
from .uniform import Uniform

__all__ = [
    "AFL",
    "CRAFT",
    "Ditto",
    "FedAvg",
    "FedDyn",
    "FedFV",
    "FedHEAL",
    "FedHV",
    "FedLF",
    "FedMGDAPlus",
    "FedPCD",
    "FedPW",
    "FedProx",
    "GIFAIR",
    "LocalOnly",
    "PropFair",
    "QFedAvg",
    "SCAFFOLD",
    "ServerAdagrad",
    "ServerAdam",
    "ServerMomentum",
    "ServerYogi",
    "StalledWarning",
    "TERM",
    "Uniform",
]
