"""Parkinsons telemonitoring: 42 patients, two scores of their disease from their voice."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ...errors import DataFileError
from .._arrays import ArrayData
from .._dataset import Dataset
from .._formats import Arrays, Member
from .._info import DatasetInfo
from .._standardise import standardise
from ._source import Form, Published, Source, require_rows
from ._tables import archive_form, arrays_sha256
from ._uci import read_parkinsons

_MEMBERS = {
    "x": Member("f", (None, 18)),
    "y": Member("f", (None, 2)),
    "client": Member("iu", (None,)),
    "test_time": Member("f", (None,)),
    "feature_names": Member("U", (18,)),
    "target_names": Member("U", (2,)),
}
_SHA256 = "0c388652c9382fd0d97e53b0979cf41f25cfb4af4b3c29d9b147e92c2d170b42"
_VISIT_GAP = 0.5  # days; recordings of one visit lie minutes apart, visits most of a week
_HELD_OUT = 0.2


def late_visits(days: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.bool_]:
    """Tell which rows of one patient belong to the last fifth of the visits.

    Rows less than half a day apart are one visit, which stays on one side. The number held out is
    a fifth of the visits rounded half up, at least one; of a single visit nothing is held out.

    :param days: ``[n]``, when each recording was made.
    :return: ``[n]``.
    """
    order = np.argsort(days, kind="stable")
    visit = np.empty(len(days), dtype=np.int64)
    visit[order] = np.cumsum(np.diff(days[order], prepend=days[order][:1]) >= _VISIT_GAP)
    num_visits = int(visit.max()) + 1
    held_out = max(1, int(_HELD_OUT * num_visits + 0.5)) if num_visits > 1 else 0
    return visit >= num_visits - held_out


def _build(info: DatasetInfo, arrays: Arrays, record: Mapping[str, Any]) -> Dataset:
    """Inputs and targets standardised over all training rows."""
    require_rows(arrays, ("x", "y", "client", "test_time"), "`parkinsons`")
    if not all(np.isfinite(arrays[name]).all() for name in ("x", "y", "test_time")):
        raise DataFileError("`x`, `y` and `test_time` must be finite. A value is NaN or infinite.")
    patients, patient = np.unique(arrays["client"], return_inverse=True)
    is_test = np.zeros(len(patient), dtype=np.bool_)
    for number in range(len(patients)):
        rows = patient == number
        is_test[rows] = late_visits(arrays["test_time"][rows])
    if (~is_test).sum() < 2:
        raise DataFileError("`parkinsons` must have at least two rows to train on.")
    values, input_scale = standardise(arrays["x"].astype(np.float64), ~is_test)
    scores, target_scale = standardise(arrays["y"].astype(np.float64), ~is_test)
    inputs, targets = (torch.tensor(part.astype(np.float32)) for part in (values, scores))
    ids, held_out = torch.tensor(patient.astype(np.int64)), torch.tensor(is_test)
    return Dataset(
        name=info.name,
        title=info.title,
        description=info.description,
        train=ArrayData((inputs[~held_out], targets[~held_out])),
        test=ArrayData((inputs[held_out], targets[held_out])),
        tasks=info.tasks,
        kinds=info.kinds,
        class_names=((), ()),
        licence=info.licence,
        citation=info.citation,
        metadata={
            **record,
            "feature_names": arrays["feature_names"].tolist(),
            "target_names": arrays["target_names"].tolist(),
            "target_mean": target_scale[0].tolist(),
            "target_scale": target_scale[1].tolist(),
            "target_unit": "points of the UPDRS",
            "input_mean": input_scale[0].tolist(),
            "input_scale": input_scale[1].tolist(),
            "construction": "Each patient's last fifth of visits is held out, with all recordings "
            "of a visit on one side. Inputs and targets are standardised over all training rows.",
        },
        client_ids=ids[~held_out],
        test_client_ids=ids[held_out],
        client_names=tuple(f"patient {number}" for number in patients.tolist()),
    )


PARKINSONS = Source(
    DatasetInfo(
        name="parkinsons",
        title="Parkinsons telemonitoring",
        description="Motor and total UPDRS, two scores of the disease, from age, sex and 16 "
        "measures of the voice; 42 clients, the patients.",
        tasks=("motor", "total"),
        kinds=("values", "values"),
        num_train=4_707,
        num_test=1_168,
        num_clients=42,
        licence="CC-BY-4.0",
        citation=(
            "Tsanas, Little, McSharry, Ramig. Accurate Telemonitoring of Parkinson's Disease "
            "Progression by Noninvasive Speech Tests. IEEE Transactions on Biomedical "
            "Engineering, 2010. doi:10.1109/TBME.2009.2036000.",
        ),
    ),
    origin="Parkinsons Telemonitoring in the UCI Machine Learning Repository.",
    folders=(),
    forms=(
        archive_form(("parkinsons.npz", "parkinsons_telemonitoring.npz"), _MEMBERS),
        Form(
            "the repository's file `parkinsons_updrs.data`",
            (("parkinsons_updrs.data",),),
            read_parkinsons,
        ),
    ),
    published=Published("SHA-256", MappingProxyType({"arrays": _SHA256}), arrays_sha256),
    build=_build,
)
