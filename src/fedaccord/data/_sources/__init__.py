"""The datasets whose files the user has, one module each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ._source import Form, Found, Source
from .adult import ADULT
from .cifar import CIFAR10, CIFAR100, CIFAR100_BY_SUPERCLASS
from .mnist import FASHION_MNIST, MNIST
from .parkinsons import PARKINSONS
from .shakespeare import SHAKESPEARE
from .tcga import TCGA_BRCA

SOURCES: Mapping[str, Source] = MappingProxyType(
    {
        source.info.name: source
        for source in (
            *(MNIST, FASHION_MNIST, CIFAR10, CIFAR100, CIFAR100_BY_SUPERCLASS),
            *(ADULT, SHAKESPEARE, TCGA_BRCA, PARKINSONS),
        )
    }
)

__all__ = ["SOURCES", "Form", "Found", "Source"]
