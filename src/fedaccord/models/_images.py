"""Convolutional networks for small pictures."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional


def cnn(
    num_classes: int = 10,
    in_channels: int = 3,
    dropout: tuple[float, float] = (0.2, 0.5),
) -> nn.Sequential:
    """Build the network of two 5 x 5 convolutions that client-fairness papers share.

    For pictures of 32 x 32 with three channels or of 28 x 28 with one.

    Source: the code of FedFV (Wang et al., IJCAI 2021) and FedLF (Pan et al., AAAI 2024); 797,962
    parameters with three channels and ten classes.

    :param num_classes: Size of the output, at least 1.
    :param in_channels: Channels of the pictures: 1 for 28 x 28, 3 for 32 x 32.
    :param dropout: Probability after each of the two hidden layers, in ``[0, 1)``; 0 leaves the
        layer out.
    :return: A module from ``[b, in_channels, side, side]`` to logits ``[b, num_classes]``.
    :raises ValueError: If a value is out of range.
    """
    if in_channels not in (1, 3):
        raise ValueError(
            f"`in_channels` must be 1 (pictures of 28 x 28) or 3 (32 x 32). Got {in_channels}."
        )
    if len(dropout) != 2 or not all(0 <= probability < 1 for probability in dropout):
        raise ValueError(f"`dropout` must be two probabilities in [0, 1). Got {dropout}.")
    first, second = ([nn.Dropout(probability)] if probability else [] for probability in dropout)
    side = 5 if in_channels == 3 else 4
    return nn.Sequential(
        nn.Conv2d(in_channels, 64, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * side * side, 384),
        *first,
        nn.ReLU(),
        nn.Linear(384, 192),
        *second,
        nn.ReLU(),
        nn.Linear(192, num_classes),
    )


def resnet20(num_classes: int = 10, in_channels: int = 3) -> nn.Sequential:
    """Build ResNet-20 with GroupNorm of one group, which has no buffers to average.

    Nine blocks of two 3 x 3 convolutions, three each of width 16, 32 and 64; the first block of
    width 32 and of 64 halves the side. Shortcuts have no parameters: where the width grows they
    take every second pixel and new channels are zero.

    Source: He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", CVPR 2016, section
    4.2, option A; Wu and He, "Group Normalization", ECCV 2018. 269,722 parameters with three
    channels and ten classes.

    Deviation: GroupNorm in the place of batch normalisation.

    :param num_classes: Size of the output, at least 1.
    :param in_channels: Channels of the pictures.
    :return: A module from ``[b, in_channels, side, side]``, side 8 or more, to logits
        ``[b, num_classes]``.
    """
    widths = (16, 16, 16, 16, 32, 32, 32, 64, 64, 64)
    blocks = (_Block(before, after) for before, after in pairwise(widths))
    return nn.Sequential(
        nn.Conv2d(in_channels, 16, 3, padding=1, bias=False),
        nn.GroupNorm(1, 16),
        nn.ReLU(),
        *blocks,
        _Mean(),
        nn.Linear(64, num_classes),
    )


class _Block(nn.Module):
    """Two convolutions and a shortcut, ``[b, before, s, s]`` to ``[b, after, s or s / 2, ...]``."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.stride = 1 if before == after else 2
        self.new_channels = after - before
        self.convolutions = nn.Sequential(
            nn.Conv2d(before, after, 3, stride=self.stride, padding=1, bias=False),
            nn.GroupNorm(1, after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
            nn.GroupNorm(1, after),
        )

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x[:, :, :: self.stride, :: self.stride]
        shortcut = functional.pad(shortcut, (0, 0, 0, 0, 0, self.new_channels))
        return functional.relu(self.convolutions(x) + shortcut)


class _Mean(nn.Module):
    """The mean over all pixels; unlike adaptive pooling its gradient is deterministic on GPUs."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(dim=(2, 3))
