"""Adult (census income) with the two clients of agnostic federated learning."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from ...errors import DataFileError
from .._arrays import ArrayData
from .._dataset import Dataset
from .._formats import Arrays, Member
from .._info import DatasetInfo
from .._standardise import standardise
from ._source import Form, Published, Source, require_codes, require_rows
from ._tables import archive_form, arrays_sha256
from ._uci import read_adult

_CATEGORIES = (
    *("workclass", "education", "marital-status", "occupation"),
    *("relationship", "race", "sex", "native-country"),
)


def _levels(category: str) -> str:
    return f"cat_{category.replace('-', '_')}"


_MEMBERS = {
    "xnum_train": Member("i", (None, 6)),
    "xcat_train": Member("i", (None, 8)),
    "y_train": Member("i", (None,)),
    "xnum_test": Member("i", (None, 6)),
    "xcat_test": Member("i", (None, 8)),
    "y_test": Member("i", (None,)),
    "num_names": Member("U", (6,)),
    "cat_names": Member("U", (8,)),
    **{_levels(category): Member("U", (None,)) for category in _CATEGORIES},
}
_SHA256 = "2305e6d96e2f45d5d3cb403ebd2e7cb9969af14a533f8e2770ebec8f6b12b06c"


def _build(info: DatasetInfo, arrays: Arrays, record: Mapping[str, Any]) -> Dataset:
    """Numbers standardised over all training rows, then one column a level of each category.

    A category with a missing value anywhere has one more column, for that.
    """
    for split in ("train", "test"):
        require_rows(arrays, (f"xnum_{split}", f"xcat_{split}", f"y_{split}"), "`adult`")
        require_codes(arrays, f"y_{split}", 2)
    if tuple(arrays["cat_names"]) != _CATEGORIES:
        raise DataFileError(
            f"`cat_names` must be {_CATEGORIES}. Got {tuple(arrays['cat_names'].tolist())}."
        )
    num_train = len(arrays["y_train"])
    is_train = np.arange(num_train + len(arrays["y_test"])) < num_train
    numbers, scale = standardise(
        np.concatenate([arrays["xnum_train"], arrays["xnum_test"]]).astype(np.float64), is_train
    )
    codes = np.concatenate([arrays["xcat_train"], arrays["xcat_test"]])
    columns, names = [numbers], list(map(str, arrays["num_names"]))
    for position, category in enumerate(_CATEGORIES):
        levels = arrays[_levels(category)]
        require_codes({category: codes[:, position]}, category, len(levels), lowest=-1)
        numbered = [*range(len(levels)), *([-1] if (codes[:, position] < 0).any() else [])]
        columns.append(codes[:, position, None] == np.array(numbered))
        names += [f"{category}={levels[code] if code >= 0 else 'missing'}" for code in numbered]
    inputs = torch.tensor(np.concatenate(columns, axis=1).astype(np.float32))
    targets = torch.tensor(np.concatenate([arrays["y_train"], arrays["y_test"]]).astype(np.int64))
    if "Doctorate" not in (education := arrays[_levels("education")].tolist()):
        raise DataFileError("`education` must have the level Doctorate, which makes the clients.")
    doctorate = education.index("Doctorate")
    others = torch.tensor((codes[:, 1] != doctorate).astype(np.int64))
    return Dataset(
        name=info.name,
        title=info.title,
        description=info.description,
        train=ArrayData((inputs[:num_train], targets[:num_train])),
        test=ArrayData((inputs[num_train:], targets[num_train:])),
        tasks=info.tasks,
        class_names=(("<=50K", ">50K"),),
        licence=info.licence,
        citation=info.citation,
        metadata={
            **record,
            "feature_names": names,
            "input_mean": scale[0].tolist(),
            "input_scale": scale[1].tolist(),
            "construction": "The six numbers standardised over all training rows, then each "
            "category with one column per level and, where a value is missing, one for that.",
        },
        client_ids=others[:num_train],
        test_client_ids=others[num_train:],
        client_names=("doctorate", "others"),
    )


ADULT = Source(
    DatasetInfo(
        name="adult",
        title="Adult (census income)",
        description="Whether a person earns over 50,000 dollars a year, from 14 census columns; "
        "two clients, people with a doctorate (413 + 181) and all others.",
        tasks=("income",),
        kinds=("classes",),
        num_train=32_561,
        num_test=16_281,
        num_clients=2,
        licence="CC-BY-4.0",
        citation=(
            "Becker, Kohavi. Adult. UCI Machine Learning Repository, 1996. doi:10.24432/C5XW20.",
            "Mohri, Sivek, Suresh. Agnostic Federated Learning. ICML 2019 (the two clients).",
        ),
    ),
    origin="Adult in the UCI Machine Learning Repository.",
    folders=(),
    forms=(
        archive_form(("adult.npz",), _MEMBERS),
        Form(
            "the repository's files `adult.data` and `adult.test`",
            (("adult.data",), ("adult.test",)),
            read_adult,
        ),
    ),
    published=Published("SHA-256", MappingProxyType({"arrays": _SHA256}), arrays_sha256),
    build=_build,
)
