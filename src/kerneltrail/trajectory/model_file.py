"""A trajectory model in one file (DESIGN, "Model file"): written whole or not at all, read back bit for bit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import Schema
from kerneltrail.errors import KernelSyntaxError, KerneltrailError, ModelFileError
from kerneltrail.gp import Reward
from kerneltrail.gp.population import PopulationMean
from kerneltrail.kernels import Composition, Pool, Prior, Priors, layout_of, parse
from kerneltrail.store.container import Arrays, digest_of, pack, read_bytes, unpack, write_bytes
from kerneltrail.trajectory.graph import Diagnostics, LearntGraph
from kerneltrail.trajectory.group import Group, Node
from kerneltrail.trajectory.settings import Settings
from kerneltrail.trajectory.structure import Structure

Model = TypeVar("Model", bound=LearntGraph)

_LATER = (("mean", "none"), ("scope", "each"), ("margin_of", "joint"), ("variances", None), ("constant", 0.0))
"""Keys, with the values that change nothing, which files of before do not have."""


def save(model: LearntGraph, path: str | os.PathLike[str]) -> None:
    """Keep a model in one file.

    Raises:
        ModelFileError: if it cannot be written; what stood there before is untouched then.
    """
    write_bytes(path, to_bytes(model))


def load(path: str | os.PathLike[str], kind: type[Model]) -> Model:
    """The model in a file, made as a `kind`: equal to the one that was saved, and behaving the same, bit for bit.

    Raises:
        ModelFileError: if there is no such file, or it is not a model, cut short, damaged, of another schema version,
            or made of kernels that are not registered here.
    """
    return from_bytes(read_bytes(path), kind, os.fspath(path))


def to_bytes(model: LearntGraph) -> bytes:
    """A model as the bytes of its file."""
    return pack("model", *_encode(model))


def from_bytes(data: bytes, kind: type[Model], shown: str = "the model") -> Model:
    """The model of a file's bytes; `shown` is what messages call it."""
    content, arrays = unpack(data, "model", shown)
    with reading(shown):
        return _decode(content, arrays, kind)


def fingerprint(model: LearntGraph) -> str:
    """A digest of all that selection depends on: two models with the same one follow users alike."""
    content, arrays = _encode(model)
    parts = ("schema", "pool", "priors", "settings", "batches", "nodes", "reward")
    said = {name: content[name] for name in parts}
    said["compositions"] = content["compositions"][: len(model.nodes)]  # those of the alternatives come after
    # What came later is left out where it is as before: a user followed on an older model's file still fits it.
    said["settings"] = {k: v for k, v in content["settings"].items() if (k, v) not in _LATER}
    said["reward"] = content["reward"] and {k: v for k, v in content["reward"].items() if (k, v) not in _LATER}
    used = {name: array for name, array in arrays.items() if name.startswith(("nodes.", "mean."))}
    return digest_of(said, {**used, "paths": arrays["structures.paths"][:1]})


@contextmanager
def reading(shown: str) -> Iterator[None]:
    """Turn what goes wrong while a file's content is understood into an error that names the file."""
    try:
        yield
    except ModelFileError:
        raise
    except KernelSyntaxError as problem:
        raise ModelFileError(
            f"{shown} uses the kernel {problem.text!r}, which cannot be read here: {problem.problem}. A kernel of your "
            "own has to be registered (kerneltrail.kernels.register) before a model with it is loaded"
        ) from None
    except KerneltrailError as problem:
        raise ModelFileError(f"{shown} does not fit this version of kerneltrail: {problem}") from None
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as problem:
        raise ModelFileError(f"{shown} is damaged: {problem!r}") from None


def _encode(model: LearntGraph) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    pool = model.pool
    # Paths refer to a list of kernels in text: masks of large pools do not fit in 64 bits.
    masks = dict.fromkeys(mask for s in model.structures for path in s.paths for mask in path)
    place = {mask: index for index, mask in enumerate(dict.fromkeys([*(n.mask for n in model.nodes), *masks]))}
    paths = [[place[mask] for path in s.paths for mask in path] for s in model.structures]
    arrays: dict[str, NDArray[Any]] = {
        "structures.paths": np.array(paths, dtype=np.int64),
        "structures.log_joint": np.array([s.log_joint for s in model.structures]),
    }
    arrays |= {f"diagnostics.traces.{name}": trace for name, trace in model.diagnostics.traces.items()}
    for i, node in enumerate(model.nodes):
        arrays[f"nodes.{i}.thetas"] = node.thetas
        arrays[f"nodes.{i}.mean"] = node.group.mean
        arrays[f"nodes.{i}.variance"] = node.group.variance
    content = {
        "schema": model.schema.to_json(),
        "pool": {
            "products": [str(product) for product in pool.products],
            "probabilities": list(pool.probabilities),
            "allow_empty": pool.allow_empty,
        },
        "priors": _encode_priors(model.priors),
        "settings": model.settings.to_json(),
        "users": list(model.users),
        "batches": [len(path) for path in model.paths],
        "compositions": [pool.composition(mask).text for mask in place],
        "structures": [{"nodes": s.nodes, "edges": s.edges, "visits": s.visits} for s in model.structures],
        "nodes": [
            {"composition": place[node.mask], "users": list(node.users), "group": node.group.users}
            for node in model.nodes
        ],
        "reward": None if model.reward is None else asdict(model.reward),
        "diagnostics": {
            "sweeps": model.diagnostics.sweeps,
            "traces": list(model.diagnostics.traces),
            "rhat": dict(model.diagnostics.rhat),
            "ess": dict(model.diagnostics.ess),
            "acceptance": dict(model.diagnostics.acceptance),
            "seconds": dict(model.diagnostics.seconds),
        },
        "provenance": dict(model.provenance),
    }
    if model.mean is not None:
        arrays["mean.weights"] = model.mean.weights
        content["mean"] = {"penalty": model.mean.penalty}
    return content, arrays


def _encode_priors(priors: Priors) -> dict[str, Any]:
    return {
        "by_kind": {kind: asdict(prior) for kind, prior in priors.by_kind.items()},
        "by_covariate": [
            {"kind": kind, "covariate": covariate, **asdict(prior)}
            for (kind, covariate), prior in priors.by_covariate.items()
        ],
    }


def _decode(content: Mapping[str, Any], arrays: Arrays, kind: type[Model]) -> Model:
    pool = _decode_pool(content["pool"])
    compositions = [parse(text) for text in content["compositions"]]
    masks = [pool.mask(composition) for composition in compositions]
    nodes = tuple(
        _decode_node(i, stored, compositions[stored["composition"]], masks[stored["composition"]], arrays)
        for i, stored in enumerate(content["nodes"])
    )
    reward = content["reward"]
    told = content["diagnostics"]
    return kind(
        schema=Schema.from_json(content["schema"]),
        pool=pool,
        priors=_decode_priors(content["priors"]),
        settings=Settings.from_json(content["settings"]),
        users=tuple(content["users"]),
        structures=_decode_structures(content, masks, arrays),
        nodes=nodes,
        reward=None if reward is None else Reward(**reward),
        diagnostics=Diagnostics(
            sweeps=told["sweeps"],
            rhat=told["rhat"],
            ess=told["ess"],
            acceptance=told["acceptance"],
            traces={name: arrays[f"diagnostics.traces.{name}"] for name in told["traces"]},
            seconds=told["seconds"],
        ),
        provenance=content["provenance"],
        mean=_decode_mean(content, arrays),
    )


def _decode_mean(content: Mapping[str, Any], arrays: Arrays) -> PopulationMean | None:
    """Files written before there was a population mean do not speak of one."""
    stored = content.get("mean")
    if stored is None:
        return None
    reward = content["reward"]
    names = Schema.from_json(content["schema"]).covariates
    effect = None if reward is None else replace(Reward(**reward), variances=None)
    return PopulationMean(arrays["mean.weights"], names, effect, stored["penalty"])


def _decode_pool(stored: Mapping[str, Any]) -> Pool:
    products = [parse(text).products for text in stored["products"]]
    return Pool(tuple(one for (one,) in products), tuple(stored["probabilities"]), stored["allow_empty"])


def _decode_priors(stored: Mapping[str, Any]) -> Priors:
    by_kind = {kind: Prior(**prior) for kind, prior in stored["by_kind"].items()}
    by_covariate = {
        (each["kind"], each["covariate"]): Prior(each["family"], each["mean"], each["variance"])
        for each in stored["by_covariate"]
    }
    return Priors(by_kind, by_covariate)


def _decode_node(i: int, stored: Mapping[str, Any], composition: Composition, mask: int, arrays: Arrays) -> Node:
    mean, variance = arrays[f"nodes.{i}.mean"], arrays[f"nodes.{i}.variance"]
    size = layout_of(composition).size
    if mean.shape != (size,):
        raise ModelFileError(
            f"{composition} has {size} hyperparameters here, but {len(mean)} in the file: one of its kernels is "
            "registered otherwise than where the model was learnt"
        )
    group = Group(composition, mean, variance, stored["group"])
    return Node(mask, composition, arrays[f"nodes.{i}.thetas"], group, tuple(stored["users"]))


def _decode_structures(content: Mapping[str, Any], masks: Sequence[int], arrays: Arrays) -> tuple[Structure, ...]:
    ends = np.cumsum([0, *content["batches"]]).tolist()
    found = []
    for stored, flat, log_joint in zip(
        content["structures"],
        arrays["structures.paths"].tolist(),
        arrays["structures.log_joint"].tolist(),
        strict=True,
    ):
        paths = tuple(tuple(masks[index] for index in flat[a:b]) for a, b in pairwise(ends))
        found.append(Structure(paths, log_joint, stored["nodes"], stored["edges"], stored["visits"]))
    return tuple(found)
