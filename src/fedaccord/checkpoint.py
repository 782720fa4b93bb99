"""A training state in a file, whole or not at all, and the trained model as one.

A checkpoint is a safetensors file. Its tensors lie there by number; its metadata holds, as JSON
under one key, the format's version, a checksum, the configuration it belongs to, and the state's
structure with a reference to a tensor where one belongs. Reading builds tensors, numbers, strings,
tuples and mappings, and of classes only those that the given rule names; no code comes from the
file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from .errors import CheckpointError
from .files import replacing
from .history import History
from .rule import Rule, allowed_state_types, remembers
from .training import TrainingState

FORMAT = "fedaccord-training-state"
VERSION = 1


@dataclass(frozen=True)
class Stamp:
    """What a checkpoint says about itself.

    :param round: The round about to run.
    :param configuration: What :func:`save` was given; empty if nothing.
    """

    round: int
    configuration: str


def save(path: Path | str, training: TrainingState, *, configuration: str = "") -> None:
    """Write a training state. The file appears complete, or the old one stays.

    :param path: Where to; its folder must exist.
    :param training: The state.
    :param configuration: What it belongs to, for example a digest of all settings;
        :func:`read_stamp` gives it back.
    :raises CheckpointError: If it cannot be written, as on a full disk.
    :raises FileNotFoundError: If the folder does not exist.
    :raises TypeError: If this is no training state, or the rule's state holds something a
        checkpoint cannot.
    """
    if not isinstance(training, TrainingState):
        raise TypeError(
            f"`training` must be a training state, such as `result.training`. Got "
            f"{type(training).__name__}."
        )
    tensors: dict[str, Tensor] = {}
    tree = _encode(training, tensors)
    header = {
        "version": VERSION,
        "checksum": _checksum(tree, tensors, configuration),
        "configuration": configuration,
        "tree": tree,
    }
    # one key: the order of several would differ from file to file
    _write_whole(Path(path), tensors, {FORMAT: json.dumps(header)})


def load(path: Path | str, rule: Rule[Any]) -> TrainingState:
    """Read a training state that :func:`save` wrote.

    :param path: The file.
    :param rule: The rule the state belongs to; its state's classes are the only ones allowed.
    :raises CheckpointError: If the file is no checkpoint, is damaged, has another version, or holds
        another rule's state.
    :raises FileNotFoundError: If there is no such file.
    """
    header, tensors = _read(path, with_tensors=True)
    tree = header["tree"]
    if header["checksum"] != _checksum(tree, tensors, header["configuration"]):
        raise CheckpointError(f"{path} is damaged: its checksum does not match its content.")
    known = {t.__name__: t for t in (TrainingState, *allowed_state_types(rule))}
    try:
        training = _decode(tree, tensors, known)
    except (KeyError, TypeError, ValueError, IndexError, RuntimeError) as error:
        raise CheckpointError(f"{path} does not hold what this release writes: {error}.") from error
    if not isinstance(training, TrainingState):
        raise CheckpointError(f"{path} does not hold a training state.")
    _check_parts(training, path)
    if not remembers(rule, training.rule_state):
        raise CheckpointError(
            f"{path} does not hold a state of {type(rule).__name__}. Load it with the rule it was "
            f"saved with."
        )
    return training


def read_stamp(path: Path | str) -> Stamp:
    """Read what a checkpoint says about itself, without its tensors.

    :param path: The file.
    :raises CheckpointError: If the file is no checkpoint, is damaged or has another version.
    :raises FileNotFoundError: If there is no such file.
    """
    header, _ = _read(path, with_tensors=False)
    try:
        parts = dict(header["tree"]["fields"]["mapping"])
        return Stamp(int(parts["round"]), str(header["configuration"]))
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} does not hold a training state.") from error


def _read(path: Path | str, *, with_tensors: bool) -> tuple[dict[str, Any], dict[str, Tensor]]:
    if not Path(path).exists():
        raise FileNotFoundError(f"There is no checkpoint at {path}.")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            names = file.keys() if with_tensors else ()
            tensors = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is no checkpoint, or it is cut short: {error}.") from error
    if FORMAT not in metadata:
        raise CheckpointError(f"{path} is a safetensors file, but no checkpoint of fedaccord.")
    try:
        header = json.loads(metadata[FORMAT])
        if (version := header["version"]) != VERSION:
            raise CheckpointError(
                f"{path} has format version {version}; this release reads {VERSION}."
            )
        parts = {key: header[key] for key in ("checksum", "tree")}
        parts["configuration"] = header.get("configuration", "")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged: its header cannot be read.") from error
    return parts, tensors


def _check_parts(training: TrainingState, path: Path | str) -> None:
    """Refuse parts that no run could have.

    :raises CheckpointError: If there is one.
    """
    maps = (training.client_states, training.buffers, training.client_buffers)
    good = (
        type(training.round) is int
        and training.round >= 0
        and isinstance(training.params, Tensor)
        and training.params.dim() == 1
        and training.params.is_floating_point()
        and all(isinstance(part, Mapping) for part in maps)
        and all(isinstance(buffer, Tensor) for buffer in training.buffers.values())
    )
    if not good:
        raise CheckpointError(f"{path} holds a training state with parts of the wrong kind.")


def save_model(path: Path | str, state_dict: Mapping[str, Tensor] | nn.Module) -> None:
    """Write a trained model's ``state_dict`` as a safetensors file, whole or not at all.

    :param path: Where to; its folder must exist.
    :param state_dict: A model or its ``state_dict``, for example ``federation.module(training)``.
    """
    if isinstance(state_dict, nn.Module):
        state_dict = state_dict.state_dict()
    tensors = {name: value.detach().clone().contiguous() for name, value in state_dict.items()}
    _write_whole(Path(path), tensors, {"format": "pt"})


def _write_whole(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} to write {path.name} into.")
    with replacing(path) as temporary:
        temporary.touch()
        usual = temporary.stat().st_mode  # safetensors makes files that only their owner can read
        try:
            save_file(dict(tensors), temporary, metadata=dict(metadata))
        except SafetensorError as error:
            raise CheckpointError(f"{path} cannot be written: {error}.") from error
        temporary.chmod(usual)


def _checksum(tree: Any, tensors: Mapping[str, Tensor], configuration: str = "") -> str:
    digest = hashlib.sha256(f"{json.dumps(tree)}{configuration}".encode())
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        digest.update(flat.numpy().tobytes())
    return digest.hexdigest()


def _encode(value: Any, tensors: dict[str, Tensor]) -> Any:
    """JSON for a value; tensors are put aside and referred to by name."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Tensor):
        name = f"{len(tensors):06d}"
        tensors[name] = value.detach().cpu().clone().contiguous()
        return {"tensor": name}
    if isinstance(value, Mapping):
        return {"mapping": [[_key(k), _encode(v, tensors)] for k, v in value.items()]}
    if isinstance(value, History):
        return {"class": "History", "fields": _encode(value.pack(), tensors)}
    if is_dataclass(value) and not isinstance(value, type):
        parts = {part.name: getattr(value, part.name) for part in fields(value)}
        return {"class": type(value).__name__, "fields": _encode(parts, tensors)}
    if type(value) in (tuple, list):
        return {"tuple": [_encode(item, tensors) for item in value]}
    raise TypeError(
        f"A rule's state may hold tensors, numbers, strings, tuples, mappings and the classes in "
        f"`state_types`. Found {type(value).__name__}."
    )


def _key(key: Any) -> str | int:
    if isinstance(key, bool) or not isinstance(key, str | int):
        raise TypeError(
            f"Mappings in a rule's state have strings or integers as keys. Got {key!r}."
        )
    return key


def _decode(node: Any, tensors: Mapping[str, Tensor], known: Mapping[str, type]) -> Any:
    if not isinstance(node, dict):
        return node
    if "tensor" in node:
        return tensors[node["tensor"]]
    if "tuple" in node:
        return tuple(_decode(item, tensors, known) for item in node["tuple"])
    if "mapping" in node:
        return {key: _decode(item, tensors, known) for key, item in node["mapping"]}
    name = str(node.get("class"))
    if name not in known:
        raise CheckpointError(
            f"The checkpoint holds a `{name}`, which is not part of this rule's state. Known: "
            f"{sorted(known)}. Load it with the rule it was saved with."
        )
    parts = _decode(node["fields"], tensors, known)
    if known[name] is History:
        return History.unpack(parts)
    found, wanted = set(parts), {part.name for part in fields(known[name])}
    if found != wanted:
        raise CheckpointError(
            f"The checkpoint's `{name}` does not fit this release: it has {sorted(found)}, not "
            f"{sorted(wanted)}."
        )
    return known[name](**parts)
