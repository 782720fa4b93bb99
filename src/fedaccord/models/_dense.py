"""Models of vectors: linear ones and a multilayer perceptron."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import nn


def logistic(in_features: int, num_classes: int = 2) -> nn.Linear:
    """Build multinomial logistic regression.

    :param in_features: Number of inputs.
    :param num_classes: Number of classes.
    :return: A module from ``[b, in_features]`` to logits ``[b, num_classes]``.
    """
    return nn.Linear(in_features, num_classes)


def linear(in_features: int, num_outputs: int = 1) -> nn.Linear:
    """Build linear regression, or the linear risk of Cox's model.

    :param in_features: Number of inputs.
    :param num_outputs: Number of values: one for each task, one for survival.
    :return: A module from ``[b, in_features]`` to values ``[b, num_outputs]``.
    """
    return nn.Linear(in_features, num_outputs)


def mlp(in_features: int, num_outputs: int, hidden: Sequence[int] = (200, 200)) -> nn.Sequential:
    """Build a multilayer perceptron with ReLU; pictures are flattened.

    With its defaults, 784 inputs and 10 outputs this is the 2NN of McMahan et al., "Communication-
    Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017; 199,210 parameters.

    :param in_features: Numbers in one input.
    :param num_outputs: Numbers it answers with: classes, or one value for each task.
    :param hidden: Width of each hidden layer, each at least 1.
    :return: A module from ``[b, ...]`` to logits or values ``[b, num_outputs]``.
    :raises ValueError: If a width is below 1.
    """
    if any(width < 1 for width in hidden):
        raise ValueError(f"`hidden` must be widths of at least 1. Got {tuple(hidden)}.")
    layers: list[nn.Module] = [nn.Flatten()]
    for width_in, width_out in pairwise((in_features, *hidden)):
        layers += [nn.Linear(width_in, width_out), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear((in_features, *hidden)[-1], num_outputs))
