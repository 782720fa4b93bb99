"""Small reference models and their losses.

A federation takes a factory, so pass ``lenet`` itself or ``partial(lenet, num_classes=100)``.
Parameters are initialised by PyTorch's defaults.
"""

from __future__ import annotations

from ._dense import linear, logistic, mlp
from ._images import cnn, resnet20
from ._lenet import LeNetPair, lenet
from ._losses import Kind, cox_loss, cross_entropy, losses_for, multi_task_nll, squared_error
from ._text import char_lstm

__all__ = [
    "Kind",
    "LeNetPair",
    "char_lstm",
    "cnn",
    "cox_loss",
    "cross_entropy",
    "lenet",
    "linear",
    "logistic",
    "losses_for",
    "mlp",
    "multi_task_nll",
    "resnet20",
    "squared_error",
]
