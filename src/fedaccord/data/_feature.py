"""Clients that differ in a feature of their inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from ..random import derive
from ._convert import Array, as_array
from ._dirichlet import client_dirichlet_partition
from ._feasibility import as_whole
from ._partition import Partition
from ._proportions import Floats

_ROWS_FOR_COMPONENT = 1000
_BLOCK = 8192


def feature_partition(
    inputs: Array,
    *,
    num_clients: int,
    samples_per_client: int,
    alpha: float,
    bins: int = 10,
    feature: int | None = None,
    seed: int = 0,
) -> Partition:
    """Sort the samples into bins by a feature; each client draws its bins as others do classes.

    The bins are cut at the feature's quantiles, so they hold about as many samples each; samples
    with equal values share one, so there may be fewer. Clients then get samples as by
    :func:`client_dirichlet_partition` with the bins as classes: proportions of bins from a
    Dirichlet distribution, one draw per client, sizes equal, no sample twice, those left over
    ``unassigned``.

    Source: this definition is ours. Real federations differ in features by where their inputs come
    from; NIID-Bench (Li et al., ICDE 2022) instead adds noise, which :func:`noisy_clients` does.

    :param inputs: ``[n, ...]``, finite real numbers, as the model sees them; unscaled features
        dominate the principal component.
    :param num_clients: Number of clients.
    :param samples_per_client: Samples of each client; ``num_clients * samples_per_client`` may not
        exceed ``n``.
    :param alpha: Concentration, positive. Small means few bins per client.
    :param bins: Number of bins, at least 2.
    :param feature: Which entry of a sample's input, counted through all of them; ``None`` takes the
        first principal component, of 1,000 samples at random where there are more.
    :param seed: Any integer.
    :raises ValueError: If the samples do not suffice, a value is out of range, inputs are no finite
        numbers, or the feature is the same everywhere.
    """
    bins = as_whole("bins", bins, least=2)
    seed = as_whole("seed", seed)
    flat = _flat(inputs)
    if feature is None:
        rng = np.random.default_rng(derive(seed, "partition", "feature"))
        values, what = _along_first_component(flat, rng), "first principal component"
    else:
        feature = as_whole("feature", feature, least=0)
        if feature >= flat.shape[1]:
            raise ValueError(f"`feature` must be in [0, {flat.shape[1]}). Got {feature}.")
        values, what = flat[:, feature].astype(np.float64), str(feature)
    if values.min() == values.max():
        raise ValueError(
            "Clients can only differ in a feature that varies. Got the same value for every "
            "sample. Use another `feature`, or `iid_partition`."
        )
    num_cuts = min(bins, len(values))  # more bins than samples are none
    edges = np.unique(np.quantile(values, np.arange(1, num_cuts) / num_cuts))
    parts = client_dirichlet_partition(
        np.searchsorted(edges, values, side="right"),
        num_clients=num_clients,
        samples_per_client=samples_per_client,
        alpha=alpha,
        seed=seed,
    )
    parameters = {**parts.parameters, "bins": bins, "feature": what}
    return replace(parts, name="feature", parameters=parameters)


def _flat(inputs: Array) -> npt.NDArray[Any]:
    array = as_array(inputs, "inputs")
    if array.ndim < 2 or array.dtype.kind not in "biuf" or array.size == 0:
        raise ValueError(
            f"`inputs` must be real numbers [n, ...], with at least one feature and sample. Got "
            f"shape {array.shape} and dtype {array.dtype}."
        )
    flat = array.reshape(len(array), -1)
    finite = np.isfinite(flat).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"`inputs` must be finite. Those of sample {int(np.argmin(finite))} are not."
        )
    return flat


def _along_first_component(flat: npt.NDArray[Any], rng: np.random.Generator) -> Floats:
    num_samples, dim = flat.shape
    rows = flat
    if num_samples > _ROWS_FOR_COMPONENT:
        rows = flat[np.sort(rng.choice(num_samples, _ROWS_FOR_COMPONENT, replace=False))]
    centred = rows.astype(np.float64)
    centred -= centred.mean(axis=0)
    if dim <= len(rows):
        direction = _leading(centred.T @ centred)
    else:  # the same direction from the smaller of the two products
        direction = centred.T @ _leading(centred @ centred.T)
    # either sign is a principal component; the largest entry decides
    direction = direction * np.sign(direction[np.argmax(np.abs(direction))])
    values = np.empty(num_samples)
    for begin in range(0, num_samples, _BLOCK):  # a block at a time is float64
        values[begin : begin + _BLOCK] = flat[begin : begin + _BLOCK].astype(np.float64) @ direction
    # rounding depends on where in a block a sample is, and may not tell equal ones apart
    spread = np.ptp(values)
    return np.round(values / spread, 9) if spread > 0 else values


def _leading(symmetric: Floats) -> Floats:
    last = len(symmetric) - 1
    vector: Floats = eigh(symmetric, subset_by_index=[last, last])[1][:, 0]
    return vector
