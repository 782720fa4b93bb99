"""A network that reads characters and predicts the next one."""

from __future__ import annotations

from torch import Tensor, nn


def char_lstm(
    num_classes: int, embedding: int = 8, hidden: int = 256, layers: int = 2
) -> nn.Module:
    """Build next-character prediction with an embedding and stacked LSTM layers.

    Source: McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized
    Data", AISTATS 2017: embedding of 8, two layers of 256. As in LEAF only the output after the
    last character is used.

    :param num_classes: Size of the vocabulary, at least 1.
    :param embedding: Size of a character's vector.
    :param hidden: Width of each layer; a smaller one is much faster.
    :param layers: Number of layers.
    :return: A module from codes ``[b, window]``, int64, to logits ``[b, num_classes]``.
    """
    return _CharLSTM(num_classes, embedding, hidden, layers)


class _CharLSTM(nn.Module):
    def __init__(self, num_classes: int, embedding: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_classes, embedding)
        self.lstm = nn.LSTM(embedding, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.lstm(self.embedding(x))
        logits: Tensor = self.head(states[:, -1])
        return logits
