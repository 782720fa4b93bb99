"""LeNet-5, and the LeNet that two tasks share."""

from __future__ import annotations

from torch import Tensor, nn


def lenet(num_classes: int = 10, in_channels: int = 1, dropout: float = 0.0) -> nn.Sequential:
    """Build LeNet-5 with ReLU and max-pooling, for images of 28 x 28.

    Source: LeCun et al., 1998; 61,706 parameters with ten classes and one channel.

    :param num_classes: Size of the output, at least 1.
    :param in_channels: Channels of the images.
    :param dropout: Probability before each of the last two layers, in ``[0, 1)``; 0 leaves the
        layers out.
    :return: A module from ``[b, in_channels, 28, 28]`` to logits ``[b, num_classes]``.
    :raises ValueError: If ``dropout`` is out of range.
    """
    if not 0 <= dropout < 1:
        raise ValueError(f"`dropout` must be in [0, 1). Got {dropout}.")
    dropouts = [nn.Dropout(dropout) for _ in range(2)] if dropout else []
    return nn.Sequential(
        nn.Conv2d(in_channels, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        *dropouts[:1],
        nn.Linear(120, 84),
        nn.ReLU(),
        *dropouts[1:],
        nn.Linear(84, num_classes),
    )


class LeNetPair(nn.Module):
    """One shared representation with one head per task, for images of 28 x 28.

    ``rep`` is the shared part and ``heads`` holds one head per task, so parameter names begin with
    ``rep.`` or ``heads.0.``, ``heads.1.`` and so on.

    Source: the LeNet of FedCMOO's MultiMNIST and MNIST-FMNIST benchmarks (Askin et al., AISTATS
    2025); 34,635 parameters with two tasks.

    :param num_classes: Number of classes of each task.
    :param dropout: Probability of the dropout layers, in ``[0, 1]``.
    """

    def __init__(self, num_classes: tuple[int, ...] = (10, 10), dropout: float = 0.5) -> None:
        super().__init__()
        self.rep = nn.Sequential(
            nn.Conv2d(1, 10, 3, padding=1),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Conv2d(10, 15, 3),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(540, 50),
            nn.ReLU(),
            nn.Dropout(dropout),
        )
        self.heads = nn.ModuleList(_head(classes, dropout) for classes in num_classes)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the log-probabilities ``[b, C_j]`` of each task for images ``[b, 1, 28, 28]``."""
        shared = self.rep(x)
        return tuple(head(shared) for head in self.heads)


def _head(num_classes: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(50, 50),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(50, num_classes),
        nn.LogSoftmax(dim=1),
    )
