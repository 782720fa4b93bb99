"""TCGA-BRCA: survival of patients with breast cancer in six regions."""

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
from ._source import Published, Source, require_codes, require_rows
from ._tables import archive_form, arrays_sha256

_MEMBERS = {
    "x": Member("f", (None, 39)),
    "event": Member("iu", (None,)),
    "time": Member("f", (None,)),
    "client": Member("iu", (None,)),
    "is_test": Member("b", (None,)),
    "client_names": Member("U", (None,)),
    "feature_names": Member("U", (39,)),
}
_SHA256 = "24fcb3e33615d1f3333d275da0ca8a16e3a7b610e27d3b1a0940c4b59676d8f6"


def _build(info: DatasetInfo, arrays: Arrays, record: Mapping[str, Any]) -> Dataset:
    """The 39 columns, age standardised over all training rows, the others zeros and ones."""
    require_rows(arrays, ("x", "event", "time", "client", "is_test"), f"`{info.name}`")
    require_codes(arrays, "event", 2)
    require_codes(arrays, "client", len(arrays["client_names"]))
    if not (np.isfinite(arrays["x"]).all() and np.isfinite(arrays["time"]).all()):
        raise DataFileError("`x` and `time` must be finite. A value is NaN or infinite.")
    is_test = arrays["is_test"]
    if (~is_test).sum() < 2:
        raise DataFileError("`is_test` must leave at least two rows to train on.")
    values = arrays["x"].astype(np.float64)
    values[:, :1], scale = standardise(values[:, :1], ~is_test)
    inputs = torch.tensor(values.astype(np.float32))
    targets = torch.tensor(np.stack([arrays["time"], arrays["event"]], 1).astype(np.float32))
    ids = torch.tensor(arrays["client"].astype(np.int64))
    held_out = torch.tensor(is_test)
    return Dataset(
        name=info.name,
        title=info.title,
        description=info.description,
        train=ArrayData((inputs[~held_out], targets[~held_out])),
        test=ArrayData((inputs[held_out], targets[held_out])),
        tasks=info.tasks,
        kinds=info.kinds,
        class_names=((),),
        licence=info.licence,
        citation=info.citation,
        metadata={
            **record,
            "feature_names": arrays["feature_names"].tolist(),
            "target_names": ["time", "event"],
            "target_unit": "days",
            "age_mean": float(scale[0, 0]),
            "age_scale": float(scale[1, 0]),
            "construction": "FLamby's 39 columns and split. Age is standardised over all training "
            "rows; the other columns are zeros and ones.",
            "terms": "The data access policies of the Genomic Data Commons, open-access tier; "
            "above all, make no attempt to identify a person.",
        },
        client_ids=ids[~held_out],
        test_client_ids=ids[held_out],
        client_names=tuple(arrays["client_names"].tolist()),
    )


TCGA_BRCA = Source(
    DatasetInfo(
        name="tcga-brca",
        title="TCGA-BRCA (breast cancer survival)",
        description="Who dies first, from 39 clinical columns, with most patients censored; six "
        "clients, the regions of the hospitals.",
        tasks=("survival",),
        kinds=("survival",),
        num_train=866,
        num_test=222,
        num_clients=6,
        licence="GDC data access policies, open-access tier: no attempt to identify a person.",
        citation=(
            "Liu et al. An Integrated TCGA Pan-Cancer Clinical Data Resource to Drive High-Quality "
            "Survival Outcome Analytics. Cell 173(2), 2018.",
            "Andreux, Manoel, Menuet, Saillard, Simpson. Federated Survival Analysis with "
            "Discrete-Time Cox Models. arXiv:2006.08997, 2020.",
            "Ogier du Terrail et al. FLamby: Datasets and Benchmarks for Cross-Silo Federated "
            "Learning in Realistic Healthcare Settings. NeurIPS 2022 (the columns and the split).",
        ),
    ),
    origin="The Cancer Genome Atlas, as FLamby prepared it for Fed-TCGA-BRCA.",
    folders=(),
    forms=(archive_form(("tcga-brca.npz", "fed_tcga_brca.npz"), _MEMBERS),),
    published=Published("SHA-256", MappingProxyType({"arrays": _SHA256}), arrays_sha256),
    build=_build,
)
