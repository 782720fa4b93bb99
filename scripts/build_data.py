"""Build the small datasets that ship inside the package.

    python scripts/build_data.py [--source ../shared/data] [--fashion DIR] [--out DIR]

``source`` holds ``mnist.npz`` (``x_train, y_train, x_test, y_test``) and ``fed_heart_disease.npz``
(``x, y, client, client_names, flamby_split``); ``fashion`` holds the four gzipped idx files of
Fashion-MNIST, as Debian's package dataset-fashion-mnist installs them. The result depends on
nothing else: the same inputs give the same arrays everywhere, and the same bytes with the same
liblzma.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedaccord.data import overlay
from fedaccord.data._formats import Arrays, pack_npz
from fedaccord.data._sources import SOURCES
from fedaccord.data._sources.mnist import CLOTHES, DIGITS, FASHION_CITATION, MNIST_CITATION

FASHION_DIR = Path("/usr/share/datasets/fashion-mnist")
FASHION_SEED, PAIR_SEED = 1, 2
FASHION_SIZES = {"train": 6000, "test": 1000}
PAIR_SIZES = {"train": 10000, "test": 1000}

EXPAT = (
    "Permission is hereby granted, free of charge, to any person obtaining a copy of this software "
    'and associated documentation files (the "Software"), to deal in the Software without '
    "restriction, including without limitation the rights to use, copy, modify, merge, publish, "
    "distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the "
    "Software is furnished to do so, subject to the following conditions: The above copyright "
    "notice and this permission notice shall be included in all copies or substantial portions of "
    'the Software. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR '
    "IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A "
    "PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE "
    "LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR "
    "OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER "
    "DEALINGS IN THE SOFTWARE."
)


@dataclass(frozen=True)
class Sources:
    """Where the original files lie."""

    source: Path
    fashion: Path

    def mnist(self) -> Arrays:
        """Return MNIST, ``x_train [60000, 28, 28]`` and so on, its content checked."""
        return _published("mnist", self.source)

    def fashion_mnist(self) -> Arrays:
        """Return Fashion-MNIST under the same keys, its content checked."""
        return _published("fashion-mnist", self.fashion)


def _published(name: str, folder: Path) -> Arrays:
    arrays, record = SOURCES[name].read(folder)
    if not record["verified"]:
        raise ValueError(f"`{name}` must be the published data. {record['verification']}")
    return arrays


def _subset(size: int, count: int, seed: int) -> npt.NDArray[np.int32]:
    # RandomState's stream is frozen by NumPy's policy, a Generator's is not
    chosen = np.random.RandomState(seed).permutation(size)[:count]
    return np.sort(chosen).astype(np.int32)


def fashion_mini(sources: Sources) -> tuple[Arrays, Mapping[str, Any]]:
    """Take a random subset of Fashion-MNIST, each official split from itself."""
    full = sources.fashion_mnist()
    arrays: Arrays = {}
    for part, count in FASHION_SIZES.items():
        index = _subset(len(full[f"y_{part}"]), count, FASHION_SEED)
        arrays[f"x_{part}"] = full[f"x_{part}"][index]
        arrays[f"y_{part}"] = full[f"y_{part}"][index]
        arrays[f"index_{part}"] = index
    return arrays, {
        "title": "Fashion-MNIST, a random subset",
        "description": "Grey 28x28 pictures of clothing in ten classes, 6,000 to train on and "
        "1,000 to test on.",
        "tasks": ["item"],
        "class_names": [list(CLOTHES)],
        "mean": 0.2860,
        "std": 0.3530,
        "licence": "MIT",
        "copyright": "Copyright 2017 Zalando SE, https://tech.zalando.com",
        "licence_text": EXPAT,
        "origin": "https://github.com/zalandoresearch/fashion-mnist, from Debian's package "
        "dataset-fashion-mnist 0.0~git20200523.55506a9-1",
        "citation": [FASHION_CITATION],
        "construction": "Of each official split the images numbered by the sorted first entries "
        f"of numpy.random.RandomState({FASHION_SEED}).permutation(size of the split): 6,000 of "
        "60,000 and 1,000 of 10,000. index_train and index_test hold the numbers.",
        "samples": FASHION_SIZES,
    }


def digits_fashion_mini(sources: Sources) -> tuple[Arrays, Mapping[str, Any]]:
    """Lay clothing over digits as MNIST-FMNIST does, and take a random subset."""
    digits, clothes = sources.mnist(), sources.fashion_mnist()
    arrays: Arrays = {}
    for part, count in PAIR_SIZES.items():
        size = len(digits[f"y_{part}"])
        # one permutation pairs every digit with one item, before the subset is taken
        partner = np.random.RandomState(PAIR_SEED).permutation(size)
        index = _subset(size, count, PAIR_SEED + 1)
        item = partner[index]
        arrays[f"x_{part}"] = overlay(
            digits[f"x_{part}"][index], clothes[f"x_{part}"][item], offset=14
        )
        arrays[f"y_{part}"] = np.stack([digits[f"y_{part}"][index], clothes[f"y_{part}"][item]], 1)
        arrays[f"index_{part}"] = np.stack([index, item.astype(np.int32)], 1)
    return arrays, {
        "title": "MNIST-FMNIST, a random subset",
        "description": "Two tasks in one grey 28x28 picture: the digit in the upper left and the "
        "item of clothing in the lower right; 10,000 to train on and 1,000 to test on.",
        "tasks": ["digit", "item"],
        "class_names": [list(DIGITS), list(CLOTHES)],
        "mean": 0.1307,
        "std": 0.3081,
        "licence": "CC-BY-SA-3.0 AND MIT",
        "licence_note": "This licence is the data's and is apart from the licence of the code. The "
        "MNIST part is commonly given as CC BY-SA 3.0 "
        "(https://creativecommons.org/licenses/by-sa/3.0/) and the Fashion-MNIST part is MIT. The "
        "combined pictures are an adaptation of both, offered under CC BY-SA 3.0 with the MIT "
        "notice kept.",
        "copyright": "MNIST: Yann LeCun, Corinna Cortes, Christopher J. C. Burges. Fashion-MNIST: "
        "Copyright 2017 Zalando SE, https://tech.zalando.com",
        "licence_text": EXPAT,
        "origin": "MNIST in its original order, from https://github.com/rasbt/mnist-pngs at "
        "d26bd33b; Fashion-MNIST from Debian's package dataset-fashion-mnist "
        "0.0~git20200523.55506a9-1",
        "citation": [
            MNIST_CITATION,
            FASHION_CITATION,
            "Askin, Sharma, Joshi, Joe-Wong. Federated Communication-Efficient Multi-Objective "
            "Optimization. AISTATS 2025 (the construction).",
        ],
        "construction": "Within each official split digit i is paired with item "
        f"numpy.random.RandomState({PAIR_SEED}).permutation(size)[i]; both lie on a 42x42 canvas "
        "(digit at 0..27, item at 14..41, the brighter pixel where they overlap), which is "
        "shrunk to 28x28 by taking rows and columns floor(42 o / 28). Kept are the pairs of the "
        "sorted first entries of numpy.random.RandomState("
        f"{PAIR_SEED + 1}).permutation(size): 10,000 of 60,000 and 1,000 of 10,000. index_train "
        "and index_test hold (digit, item).",
        "samples": PAIR_SIZES,
    }


def heart(sources: Sources) -> tuple[Arrays, Mapping[str, Any]]:
    """Keep the records and the split of FLamby's Fed-Heart-Disease."""
    with np.load(sources.source / "fed_heart_disease.npz", allow_pickle=False) as file:
        split = file["flamby_split"]
        kept = split >= 0
        arrays: Arrays = {
            "records": file["x"][kept][:, :10],
            "disease": (file["y"][kept] > 0).astype(np.uint8),
            "hospital": file["client"][kept].astype(np.uint8),
            "is_test": split[kept] == 1,
        }
        names = [str(name) for name in file["client_names"]]
    return arrays, {
        "title": "UCI heart disease, four hospitals",
        "description": "Heart disease (yes or no) from 13 clinical inputs; each of four hospitals "
        "is a client; 486 patients to train on and 254 to test on.",
        "tasks": ["disease"],
        "class_names": [["no", "yes"]],
        "client_names": names,
        "feature_names": [
            *("age", "sex", "trestbps", "chol", "fbs", "thalach", "exang", "oldpeak"),
            *("cp_2", "cp_3", "cp_4", "restecg_1", "restecg_2"),
        ],
        "licence": "CC-BY-4.0",
        "licence_note": "https://creativecommons.org/licenses/by/4.0/. Changed: columns slope, ca "
        "and thal and rows with a missing value are left out, the diagnosis is 0 or 1.",
        "copyright": "Andras Janosi (Hungarian Institute of Cardiology, Budapest), William "
        "Steinbrunn (University Hospital, Zurich), Matthias Pfisterer (University Hospital, "
        "Basel), Robert Detrano (V.A. Medical Center, Long Beach and Cleveland Clinic Foundation)",
        "origin": "UCI Machine Learning Repository, https://doi.org/10.24432/C52P4X, from the "
        "history of https://github.com/owkin/FLamby (commit 9a07bb1)",
        "citation": [
            "Janosi, Steinbrunn, Pfisterer, Detrano. Heart Disease. UCI Machine Learning "
            "Repository, 1988. doi:10.24432/C52P4X.",
            "Ogier du Terrail et al. FLamby: Datasets and Benchmarks for Cross-Silo Federated "
            "Learning in Realistic Healthcare Settings. NeurIPS 2022 (the protocol).",
        ],
        "construction": "FLamby's protocol: columns slope, ca and thal are dropped, then rows with "
        "a missing value (740 of 920 are left); is_test is FLamby's stratified split (seed 43) of "
        "199/104, 172/89, 30/16 and 85/45 rows. Loading encodes cp and restecg without their "
        "first level (13 inputs) and standardises each hospital on its training rows.",
        "samples": {"train": int((split == 0).sum()), "test": int((split == 1).sum())},
    }


BUILDERS: dict[str, Callable[[Sources], tuple[Arrays, Mapping[str, Any]]]] = {
    "fashion-mini": fashion_mini,
    "digits-fashion-mini": digits_fashion_mini,
    "heart": heart,
}


def build(sources: Sources, out: Path) -> None:
    """Write every dataset and its metadata to ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    for name, builder in BUILDERS.items():
        arrays, metadata = builder(sources)
        content = pack_npz(arrays, compression=zipfile.ZIP_LZMA)
        (out / f"{name}.npz").write_bytes(content)
        complete = {
            "name": name,
            **metadata,
            "arrays": {key: [str(array.dtype), *array.shape] for key, array in arrays.items()},
            "built_by": "scripts/build_data.py",
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        text = json.dumps(complete, indent=2, ensure_ascii=False) + "\n"
        (out / f"{name}.json").write_text(text, encoding="utf-8")
        print(f"{name}: {len(content):,} bytes")


def main() -> None:
    """Read the command line and build."""
    root = Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description="Build the datasets of the package.")
    parser.add_argument("--source", type=Path, default=root.parent / "shared" / "data")
    parser.add_argument("--fashion", type=Path, default=FASHION_DIR)
    parser.add_argument("--out", type=Path, default=root / "src" / "fedaccord" / "data" / "files")
    chosen = parser.parse_args()
    build(Sources(chosen.source, chosen.fashion), chosen.out)


if __name__ == "__main__":
    main()
