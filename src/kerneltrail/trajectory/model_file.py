"""A trajectory model in one file (method §12): written whole or not at all, read back bit for bit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import Schema
from kerneltrail.data.schema import LATER
from kerneltrail.errors import ModelFileError
from kerneltrail.gp import Reward
from kerneltrail.kernels import Composition, Pool, Prior, Priors, layout_of, parse
from kerneltrail.store.container import Arrays, digest_of, pack, unpack
from kerneltrail.store.digest import described
from kerneltrail.store.validate import Malformed, array, conform, reading
from kerneltrail.trajectory.echo import PilotEcho
from kerneltrail.trajectory.effects import PILOT_ROW
from kerneltrail.trajectory.graph import Averaged, Diagnostics, LearntGraph, Node, Worth
from kerneltrail.trajectory.map_table import Group
from kerneltrail.trajectory.mean_file import arrays_of_mean, decode_mean
from kerneltrail.trajectory.outcome_file import decode_drawing, decode_shape, decode_tails
from kerneltrail.trajectory.sampler.joint import Structure
from kerneltrail.trajectory.settings import CANDIDATES, Settings

Model = TypeVar("Model", bound=LearntGraph)

_LATER = (
    ("mean", "none"),
    ("scope", "each"),
    ("margin_of", "joint"),
    ("choice", "simplest"),
    ("variances", None),
    ("constant", 0.0),
    ("typical", None),
    ("coding", "centred"),
    ("sharing", "separate"),
    ("walk", "once"),
    ("tails", "normal"),
    ("shape", "none"),
    ("advancing", "kept"),
    ("slopes", ()),
    ("covariance", None),
    ("paths", "overlapping"),
    ("structure", "chosen"),
    ("candidates", CANDIDATES),
    ("negligible", 0.0),
)
"""Keys, with the values that change nothing, which files of before do not have."""


NAMES = ("labels", "value_names")
"""What a schema calls columns and values: for people alone, and not in files of before."""

_NUMBERS = dict[str, float]
LAYOUT: dict[str, Any] = {
    "schema": {
        **{name: kind for name, kind in get_type_hints(Schema).items() if name not in (*NAMES, *LATER)},
        "batching": dict[str, Any],
    },
    "pool": {"products": list[str], "probabilities": list[float], "allow_empty": bool},
    "priors": {"by_kind": dict[str, Any], "by_covariate": list[Any]},
    "settings": Settings,
    "users": list[str],
    "batches": list[int],
    "compositions": list[str],
    "structures": list[Any],
    "nodes": list[Any],
    "reward": Reward | None,
    "diagnostics": {
        "sweeps": int, "traces": list[str], "rhat": _NUMBERS, "ess": _NUMBERS, "acceptance": _NUMBERS,
        "seconds": _NUMBERS,
    },
    "provenance": dict[str, Any],
}  # fmt: skip
"""The content of a model's file."""


def to_bytes(model: LearntGraph) -> bytes:
    """A model as the bytes of its file."""
    return pack("model", *_encode(model))


def from_bytes(data: bytes, kind: type[Model], shown: str = "the model") -> Model:
    """The model of a file's bytes; `shown` is what messages call it."""
    content, arrays = unpack(data, "model", shown)
    with reading(shown, ModelFileError):
        return _decode(content, arrays, kind)


_KEPT = "_fingerprint"


def fingerprint(model: LearntGraph) -> str:
    """A digest of all that selection depends on: two models with the same one follow users alike."""
    kept = vars(model)  # as a cached property: a model does not change, and every user's file asks for it
    if _KEPT not in kept:
        kept[_KEPT] = _fingerprint(model)
    return str(kept[_KEPT])


def _fingerprint(model: LearntGraph) -> str:
    content, arrays = _encode(model)
    parts = ("schema", "pool", "priors", "settings", "batches", "nodes", "reward")
    facts = {name: content[name] for name in parts}
    facts["compositions"] = content["compositions"][: len(model.nodes)]  # those of the alternatives come after
    # What people call things decides nothing.
    facts["schema"] = {name: value for name, value in content["schema"].items() if name not in NAMES}
    # What came later is left out where it is as before: a user followed on an older model's file still fits it.
    facts["settings"] = {k: v for k, v in content["settings"].items() if (k, v) not in _LATER}
    facts["reward"] = content["reward"] and {k: v for k, v in content["reward"].items() if (k, v) not in _LATER}
    if model.tails:
        facts["tails"] = model.tails
    if model.stretch != 1.0:
        facts["stretch"] = model.stretch
    facts |= {name: content[name] for name in ("drawing", "shape") if name in content}
    if model.averaged is not None:
        facts["averaged"] = [node.composition.text for node in model.averaged.nodes]
    used = {name: array for name, array in arrays.items() if name.startswith(("nodes.", "mean.", "averaged."))}
    return digest_of(facts, {**used, "paths": arrays["structures.paths"][:1]})


described.register(LearntGraph, lambda model: {"model": fingerprint(model)})


def _encode(model: LearntGraph) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    pool = model.pool
    # Paths refer to a list of kernels in text: masks of large pools do not fit in 64 bits.
    masks = dict.fromkeys(mask for s in model.structures for path in s.paths for mask in path)
    every = dict.fromkeys([*(n.mask for n in model.nodes), *masks, *(n.mask for n in model.selectable)])
    index_of = {mask: index for index, mask in enumerate(every)}
    paths = [[index_of[mask] for path in s.paths for mask in path] for s in model.structures]
    arrays: dict[str, NDArray[Any]] = {
        "structures.paths": np.array(paths, dtype=np.int64),
        "structures.log_joint": np.array([s.log_joint for s in model.structures]),
    }
    arrays |= {f"diagnostics.traces.{name}": trace for name, trace in model.diagnostics.traces.items()}
    content = {
        "schema": model.schema.to_json(),
        "pool": {**_stored(pool, LAYOUT["pool"]), "products": [str(product) for product in pool.products]},
        "priors": _encode_priors(model.priors),
        "settings": model.settings.to_json(),
        "users": list(model.users),
        "batches": [len(path) for path in model.paths],
        "compositions": [pool.composition(mask).text for mask in index_of],
        "structures": [_stored(s, ("nodes", "edges", "visits")) for s in model.structures],
        "nodes": _encode_nodes(model.nodes, "nodes", index_of, arrays),
        "reward": None if model.reward is None else asdict(model.reward),
        "diagnostics": {
            **_stored(model.diagnostics, LAYOUT["diagnostics"]),
            "traces": list(model.diagnostics.traces),
            "cut": dict(model.diagnostics.cut),
            "advancing": model.diagnostics.advancing and asdict(model.diagnostics.advancing),
        },
        "provenance": dict(model.provenance),
        "pilot_effects": [dict(row) for row in model.pilot_effects],
        "tails": {"spread": model.tails, "interval": model.tails_interval, "stretch": model.stretch},
    }
    if model.drawing is not None:
        drawing = model.drawing
        content["drawing"] = {"freedom": drawing.freedom} | ({"alike": drawing.alike} if drawing.alike != 1.0 else {})
    if model.shape is not None:
        content["shape"] = asdict(model.shape)
    if model.echo is not None:
        content["echo"] = asdict(model.echo)
    if model.mean is not None:
        content["mean"] = {"penalty": model.mean.penalty}
        arrays |= arrays_of_mean(model.mean)
    if model.averaged is not None:
        arrays["averaged.counts"] = model.averaged.counts
        nodes = _encode_nodes(model.averaged.nodes, "averaged.nodes", index_of, arrays)
        content["averaged"] = {"nodes": nodes, "cut": model.averaged.cut}
    return content, arrays


def _encode_nodes(
    nodes: Sequence[Node], prefix: str, index_of: Mapping[int, int], arrays: dict[str, NDArray[Any]]
) -> list[dict[str, Any]]:
    for i, node in enumerate(nodes):
        arrays[f"{prefix}.{i}.thetas"] = node.thetas
        arrays[f"{prefix}.{i}.mean"] = node.group.mean
        arrays[f"{prefix}.{i}.variance"] = node.group.variance
    return [
        {"composition": index_of[node.mask], "users": list(node.users), "group": node.group.users} for node in nodes
    ]


def _stored(value: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def _encode_priors(priors: Priors) -> dict[str, Any]:
    return {
        "by_kind": {kind: asdict(prior) for kind, prior in priors.by_kind.items()},
        "by_covariate": [
            {"kind": kind, "covariate": covariate, **asdict(prior)}
            for (kind, covariate), prior in priors.by_covariate.items()
        ],
    }


def _decode(content: Mapping[str, Any], arrays: Arrays, kind: type[Model]) -> Model:
    conform(content, LAYOUT, "its content")
    pool = _decode_pool(content["pool"])
    compositions = [parse(text) for text in content["compositions"]]
    masks = [pool.mask(composition) for composition in compositions]
    nodes = _decode_nodes(content["nodes"], "nodes", compositions, masks, arrays)
    structures = _decode_structures(content, masks, arrays)
    reward, chains = content["reward"], content["diagnostics"]
    shape = (None, chains["sweeps"])
    tails, interval, stretch = decode_tails(content.get("tails", {"spread": 0.0}))
    traces = {name: array(arrays, f"diagnostics.traces.{name}", shape) for name in chains["traces"]}
    schema = Schema.from_json(content["schema"])
    model = kind(
        schema=schema,
        pool=pool,
        priors=_decode_priors(content["priors"]),
        settings=Settings.from_json(content["settings"]),
        users=tuple(content["users"]),
        structures=structures,
        nodes=nodes,
        reward=None if reward is None else Reward(**reward),
        diagnostics=Diagnostics(
            **{**{key: chains[key] for key in LAYOUT["diagnostics"]}, "traces": traces},
            cut=_decode_cut(chains),
            advancing=_decode_worth(chains.get("advancing"), schema.covariates),
        ),
        provenance=content["provenance"],
        mean=decode_mean(content, arrays),
        pilot_effects=_decode_effects(content.get("pilot_effects", [])),
        tails=tails,
        tails_interval=interval,
        stretch=stretch,
        drawing=decode_drawing(content.get("drawing")),
        shape=decode_shape(content.get("shape")),
        echo=PilotEcho.decoded(content.get("echo")),
        averaged=_decode_averaged(content.get("averaged"), len(nodes), compositions, masks, arrays),
    )
    _check(model)
    return model


def _check(model: LearntGraph) -> None:
    """Ask for what following a user needs first, so that parts that do not fit each other are refused here."""
    if not np.isfinite(model.transitions).all():
        raise Malformed("the transitions of the graph are not probabilities")
    if {mask for path in model.paths for mask in path} - {node.mask for node in model.nodes} - {0}:
        raise Malformed("the chosen paths pass kernels that are no nodes")
    if len({node.mask for node in model.selectable}) < len(model.selectable):
        raise Malformed("two of its nodes are of the same kernel")
    unknown = {name for node in model.selectable for name in node.composition.covariates} - set(model.covariates)
    if unknown:
        raise Malformed(f"the graph reads {', '.join(sorted(unknown))}, which is no covariate of the schema")
    rows, action = np.zeros((1, len(model.covariates))), np.zeros(1)
    if model.reward is not None:
        model.reward.design(rows, model.covariates, action)  # refuses features that are not there
        if not np.isfinite(model.reward.weight_variances).all():
            raise Malformed("the reward model has a variance that is not finite")
    if model.mean is not None:
        model.mean.at(rows, action)  # refuses weights of other columns


def _decode_cut(stored: Mapping[str, Any]) -> dict[str, float]:
    """Files of before do not speak of it."""
    cut = stored.get("cut", {})
    conform(cut, _NUMBERS, "its candidates that were cut")
    return dict(cut) if {"kernels", "share"} <= cut.keys() else {}


def _decode_worth(stored: Any, covariates: Sequence[str]) -> Worth | None:
    """Files of before, and of models without kernels on such covariates, do not have it."""
    if stored is None:
        return None
    conform(
        stored, {"covariates": list[str], "gain": float, "error": float, "users": int}, "what moving kernels are worth"
    )
    worth = Worth(**{**stored, "covariates": tuple(stored["covariates"])})
    numbers = bool(np.isfinite([worth.gain, worth.error]).all()) and worth.error >= 0.0
    if not (worth.covariates and set(worth.covariates) <= set(covariates) and numbers and worth.users > 0):
        raise Malformed("what moving kernels are worth is not of its covariates and users")
    return worth


def _decode_effects(stored: Any) -> tuple[dict[str, Any], ...]:
    """Files of before do not have them."""
    conform(stored, list[dict[str, Any]], "its pilot users' effects")
    for i, row in enumerate(stored):
        conform(row, PILOT_ROW, f"row {i} of its pilot users' effects")
    return tuple(stored)


def _decode_pool(stored: Mapping[str, Any]) -> Pool:
    products = [parse(text).products for text in stored["products"]]
    return Pool(tuple(one for (one,) in products), tuple(stored["probabilities"]), stored["allow_empty"])


def _decode_priors(stored: Mapping[str, Any]) -> Priors:
    conform(stored["by_kind"], dict[str, Prior], "its priors")
    by_kind = {kind: Prior(**prior) for kind, prior in stored["by_kind"].items()}
    by_covariate = {}
    for each in stored["by_covariate"]:
        conform(each, {"kind": str, "covariate": str, **get_type_hints(Prior)}, "its priors")
        by_covariate[each["kind"], each["covariate"]] = Prior(each["family"], each["mean"], each["variance"])
    return Priors(by_kind, by_covariate)


def _decode_averaged(
    stored: Any, chosen: int, compositions: Sequence[Composition], masks: Sequence[int], arrays: Arrays
) -> Averaged | None:
    """Files of before, and of models that are followed by the chosen structure, do not have it."""
    if stored is None:
        return None
    conform(stored, {"nodes": list[Any], "cut": float}, "its average of structures")
    nodes = _decode_nodes(stored["nodes"], "averaged.nodes", compositions, masks, arrays)
    size = chosen + len(nodes)
    counts = array(arrays, "averaged.counts", (size + 1, size), finite=True)
    if not (counts >= 0).all():
        raise Malformed("its average of structures counts a transition less than never")
    return Averaged(nodes, counts, stored["cut"])


def _decode_nodes(
    stored: Sequence[Any], prefix: str, compositions: Sequence[Composition], masks: Sequence[int], arrays: Arrays
) -> tuple[Node, ...]:
    return tuple(_decode_node(f"{prefix}.{i}", i, each, compositions, masks, arrays) for i, each in enumerate(stored))


def _decode_node(
    key: str,
    i: int,
    stored: Mapping[str, Any],
    compositions: Sequence[Composition],
    masks: Sequence[int],
    arrays: Arrays,
) -> Node:
    conform(stored, {"composition": int, "users": list[str], "group": int}, f"its node {i}")
    index = stored["composition"]
    if index not in range(len(compositions)):
        raise Malformed(f"its node {i} is composition {index} of {len(compositions)}")
    composition = compositions[index]
    mean = array(arrays, f"{key}.mean", (None,), finite=True)
    size = layout_of(composition).size
    if mean.shape != (size,):
        raise ModelFileError(
            f"{composition} has {size} hyperparameters here, but {len(mean)} in the file: one of its kernels is "
            "registered otherwise than where the model was learnt"
        )
    variance = array(arrays, f"{key}.variance", (size,), finite=True)
    thetas = array(arrays, f"{key}.thetas", (None, size), finite=True)
    if not (variance > 0).all():
        raise Malformed(f"the group of {composition} has a variance that is not above 0")
    group = Group(composition, mean, variance, stored["group"])
    return Node(masks[index], composition, thetas, group, tuple(stored["users"]))


def _decode_structures(content: Mapping[str, Any], masks: Sequence[int], arrays: Arrays) -> tuple[Structure, ...]:
    conform(content["structures"], list[dict[str, int]], "its structures")
    count, batches = len(content["structures"]), content["batches"]
    flat = array(arrays, "structures.paths", (count, sum(batches)), np.int64)
    log_joint = array(arrays, "structures.log_joint", (count,))
    if not count or len(batches) != len(content["users"]) or min(batches, default=0) < 1:
        raise Malformed("it has no structure, or not as many paths as users")
    if flat.min() < 0 or flat.max() >= len(masks):
        raise Malformed(f"its paths are not of its {len(masks)} compositions")
    ends = np.cumsum([0, *batches]).tolist()
    structures = []
    for stored, row, log in zip(content["structures"], flat.tolist(), log_joint.tolist(), strict=True):
        paths = tuple(tuple(masks[index] for index in row[a:b]) for a, b in pairwise(ends))
        structures.append(Structure(paths, log, stored["nodes"], stored["edges"], stored["visits"]))
    return tuple(structures)
