"""All there is to know of a followed user but for the model: what an update replaces and a file keeps.

A file holds rows or the sums that replaced them, node fits, probabilities and history. It belongs to one model and does
not hold it: thousands of users share one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrail import gp
from kerneltrail.data import User
from kerneltrail.data.assignment import Assignment
from kerneltrail.data.columns import name_of
from kerneltrail.errors import ModelFileError
from kerneltrail.kernels import NOTHING, Array, Composition, Hyperparameters, layout_of
from kerneltrail.kernels.phrases import brief_chance, counted
from kerneltrail.store.container import Arrays, pack, unpack
from kerneltrail.store.validate import Malformed, array, conform, reading
from kerneltrail.trajectory.graph import LearntGraph, Node
from kerneltrail.trajectory.lateness import Time, decoded, encoded
from kerneltrail.trajectory.model_file import fingerprint
from kerneltrail.trajectory.node_fit import NodeFit
from kerneltrail.trajectory.settings import Memory, Selection, Settings

RECENT = 64
"""Steps of a user that are kept; of earlier ones the first, and how often each node was selected. Somebody who is
followed for years must not grow; whoever wants every step keeps what `update` returns."""

CONTEXTS = 200
"""Rows that are kept of a user, the newest ones, even after sums have replaced the rows: effects are stated over the
contexts that the user meets."""

ASSIGNED = ("action", "probability", "availability")
"""Columns of kept rows that a reward model reads."""

_ONLINE = {"rows": int, "tol": float, "max_rank": int, "widening_error": float}
_PLAIN: dict[str, Any] = {
    "name": str, "selection": Selection, "memory": Memory, "refine": int, "rows": int, "batches": int,
    "current": int | None,
}  # fmt: skip
"""What the file holds as the state does."""
LAYOUT: dict[str, Any] = {
    **_PLAIN, "judges": list[Any], "kept": dict[str, Any] | None, "history": list[Any],
}  # fmt: skip
"""The content of a user's file, besides its model's fingerprint."""


@dataclass(frozen=True)
class SelectionStep:
    """What was selected at one batch, counted from 1; evidences of the candidates and probabilities are on all rows."""

    batch: int
    rows: int
    composition: Composition
    log_evidence: Mapping[Composition, float]
    probabilities: Mapping[Composition, float]

    @property
    def selected(self) -> tuple[str, float]:
        """The selected kernel as text, and its probability."""
        return self.composition.text or NOTHING, self.probabilities[self.composition]

    def __repr__(self) -> str:
        kernel, probability = self.selected
        rows, sure = counted(self.rows, "row"), brief_chance(probability)
        return f"SelectionStep: batch {self.batch}, {rows} so far, {kernel} ({sure})"


@dataclass(frozen=True)
class UserState:
    """A followed user.

    Attributes:
        name: of the user.
        selection, memory, refine: how the user is followed.
        rows, batches: seen so far.
        history: what happened at the last batches, at most `RECENT`.
        fits: one per node of the model, in its order.
        kept: the rows that some fit still needs, scaled and less the population mean; None where sums have replaced
            them all.
        prior: probabilities of the nodes before the newest batch's evidence.
        weights: probabilities of the nodes.
        current: index of the selected node, None before any batch.
        first: what happened at the first batch, None before it.
        selected: after how many batches each node was the selected one, in the model's order.
        recent: the newest rows, at most `CONTEXTS`, scaled and less the population mean; None before any batch.
        outcomes: of the rows that are kept, as they are, (n,), where fits read them drawn in; None where they do not.
        level: what the covariates of the rows say of how high these lie, which is subtracted from all of them.
        latest: the newest time of the rows that came with one, by the model's order column; None where none did.
    """

    name: str
    selection: Selection
    memory: Memory
    refine: int
    rows: int
    batches: int
    history: tuple[SelectionStep, ...]
    fits: tuple[NodeFit, ...]
    kept: User | None
    prior: Array
    weights: Array
    current: int | None
    first: SelectionStep | None
    selected: tuple[int, ...]
    recent: User | None = None
    outcomes: Array | None = None
    level: float = 0.0
    latest: Time | None = None

    @classmethod
    def start(cls, name: object, settings: Settings, fits: tuple[NodeFit, ...], prior: Array) -> UserState:
        """Before any row; ids that are numbers become texts."""
        how = (settings.selection, settings.memory, settings.refine)
        return cls(name_of(name), *how, 0, 0, (), fits, None, prior, prior, None, None, (0,) * len(fits))

    @property
    def drawn(self) -> Array | None:
        """How far outcomes of the newest rows, as they are, lie from what fits read of them; None where they do not."""
        if self.outcomes is None or self.kept is None or self.recent is None:
            return None
        return (self.outcomes - self.kept.y)[-self.recent.rows :]

    def shared(self, model: LearntGraph, scaled: Array, assignment: Assignment | None) -> Array:
        """What the user varies around at scaled rows: the population mean, with what is said of the user's level."""
        if model.mean is None:
            return np.zeros(len(scaled))
        return model.mean.at(scaled, assignment) + (self.level if self.rows else model.mean.level_at(scaled))

    @property
    def steps(self) -> tuple[SelectionStep, ...]:
        """All steps that are known: the first and the last ones."""
        if self.first is None or self.batches <= len(self.history):
            return self.history
        return (self.first, *self.history)

    def to_bytes(self, model: LearntGraph) -> bytes:
        """The user, followed on a model, as the bytes of a file."""
        arrays: dict[str, NDArray[Any]] = {"prior": self.prior, "weights": self.weights}
        content = {
            "model": fingerprint(model),
            **{name: getattr(self, name) for name in _PLAIN},
            # The fits of the nodes; the key keeps its first name, so that older files load.
            "judges": [_encode_fit(fit, f"judges.{i}", arrays) for i, fit in enumerate(self.fits)],
            "kept": _encode_rows(self.kept, "kept", arrays),
            "recent": _encode_rows(self.recent, "recent", arrays),
            "history": _encode_history(self.steps, model, arrays),
            "selected": list(self.selected),
        }
        if self.outcomes is not None:
            arrays["outcomes"] = self.outcomes
        if self.level:
            content["level"] = self.level
        if self.latest is not None:
            content["latest"] = encoded(self.latest)
        return pack("user", content, arrays)

    @classmethod
    def from_bytes(cls, data: bytes, model: LearntGraph, shown: str) -> UserState:
        """The state of a user in a file's bytes; `shown` is what messages call the file."""
        content, arrays = unpack(data, "user", shown)
        if content.get("model") != fingerprint(model):
            raise ModelFileError(f"{shown} holds a user who was followed on another model than this one")
        with reading(shown, ModelFileError):
            conform(content, LAYOUT, "its content")
            count, current = len(model.selectable), content["current"]
            if current is not None and current not in range(count):
                raise Malformed(f"the selected node is number {current} of {count}")
            steps = _decode_history(content["history"], model, arrays)
            kept = _decode_rows(content["kept"], "kept", model, arrays)
            recent = _decode_rows(content.get("recent"), "recent", model, arrays)
            if recent is None and kept is not None:  # of files of before
                recent = kept.newest(CONTEXTS)
            return cls(
                **{name: content[name] for name in _PLAIN},
                history=steps[-RECENT:],
                fits=tuple(
                    _decode_fit(stored, node, model, f"judges.{i}", arrays)
                    for i, (stored, node) in enumerate(zip(content["judges"], model.followed, strict=True))
                ),
                kept=kept,
                prior=_shares(arrays, "prior", count),
                weights=_shares(arrays, "weights", count),
                first=steps[0] if steps else None,
                selected=_decode_selected(content.get("selected"), steps, model),
                recent=recent,
                outcomes=None if kept is None or model.drawing is None else array(arrays, "outcomes", (kept.rows,)),
                level=_level(content.get("level", 0.0)),
                latest=decoded(content.get("latest")),
            )


def _level(stored: Any) -> float:
    """Models that say nothing of a user's level do not speak of it."""
    conform(stored, float, "the user's level")
    return float(stored)


def _shares(arrays: Arrays, name: str, count: int) -> NDArray[Any]:
    """Probabilities of the nodes."""
    shares = array(arrays, name, (count,))
    if not ((shares >= 0).all() and abs(shares.sum() - 1.0) < 1e-6):
        raise Malformed(f"the array {name} does not hold probabilities")
    return shares


def _encode_fit(fit: NodeFit, prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    arrays[f"{prefix}.theta"] = fit.theta
    if fit.precision is not None:
        arrays[f"{prefix}.precision"] = fit.precision
    stored: dict[str, Any] = {"log_evidence": fit.log_evidence, "refined": fit.refined, "online": None}
    if fit.limited:
        stored["limited"] = True
    if fit.online is not None:
        online = fit.online
        arrays[f"{prefix}.gram"] = online.gram
        arrays[f"{prefix}.basis"] = online.basis.hyperparameters.vector
        arrays[f"{prefix}.box"] = np.array([online.basis.low, online.basis.high])
        if online.linear is not None and online.block_root is not None:
            arrays[f"{prefix}.linear"], arrays[f"{prefix}.root"] = online.linear, online.block_root
        values = (online.rows, online.basis.tol, online.max_rank, online.widening_error)
        stored["online"] = dict(zip(_ONLINE, values, strict=True))
    return stored


def _decode_fit(stored: Mapping[str, Any], node: Node, model: LearntGraph, prefix: str, arrays: Arrays) -> NodeFit:
    conform(stored, {"log_evidence": float, "refined": int, "online": dict[str, Any] | None}, prefix)
    size = layout_of(node.composition).size
    precision = f"{prefix}.precision"
    return NodeFit(
        node,
        array(arrays, f"{prefix}.theta", (size,), finite=True),
        stored["log_evidence"],
        array(arrays, precision, (size, size), finite=True) if precision in arrays else None,
        stored["refined"],
        None if stored["online"] is None else _decode_online(stored["online"], node, model, prefix, arrays),
        stored.get("limited") is True,
    )


def _decode_online(
    stored: Mapping[str, Any], node: Node, model: LearntGraph, prefix: str, arrays: Arrays
) -> gp.OnlineState:
    conform(stored, _ONLINE, f"{prefix}.online")
    size, covariates = layout_of(node.composition).size, model.covariates
    low, high = array(arrays, f"{prefix}.box", (2, len(covariates)), finite=True).tolist()
    vector = tuple(array(arrays, f"{prefix}.basis", (size,), finite=True).tolist())
    basis = gp.regression.Basis(
        Hyperparameters(node.composition, vector), covariates, tuple(low), tuple(high), stored["tol"]
    )
    linear = array(arrays, f"{prefix}.linear", (None, None), finite=True) if f"{prefix}.linear" in arrays else None
    sums = basis.rank + (0 if linear is None else len(linear)) + 1
    gram = array(arrays, f"{prefix}.gram", (sums, sums), finite=True)
    root = None  # files of before do not hold it: it is computed as it was then
    if linear is not None and f"{prefix}.root" in arrays:
        root = array(arrays, f"{prefix}.root", linear.shape, finite=True)
        if np.abs(root @ root.T - linear).max() > 1e-8 * np.abs(linear).max():
            raise Malformed(f"the array {prefix}.root is no root of the prior {prefix}.linear")
    return gp.OnlineState(basis, linear, gram, stored["rows"], stored["max_rank"], stored["widening_error"], root)


def _encode_rows(rows: User | None, key: str, arrays: dict[str, NDArray[Any]]) -> dict[str, Any] | None:
    if rows is None:
        return None
    arrays[f"{key}.X"], arrays[f"{key}.y"] = rows.X, rows.y
    for name in ASSIGNED:
        if getattr(rows, name) is not None:
            arrays[f"{key}.{name}"] = getattr(rows, name)
    return {"name": rows.name, "ends": list(rows.ends)}


def _decode_rows(stored: Mapping[str, Any] | None, key: str, model: LearntGraph, arrays: Arrays) -> User | None:
    if stored is None:
        return None
    conform(stored, {"name": str, "ends": list[int]}, "its rows")
    X, y = array(arrays, f"{key}.X", (None, len(model.covariates))), array(arrays, f"{key}.y", (None,))
    columns: dict[str, Array | None] = {}
    # Files of before hold actions that a model without a reward does not read, and do not say what was not logged.
    if model.reward is not None and model.reward.acts and f"{key}.action" in arrays:
        action, probability, available = (
            array(arrays, f"{key}.{name}", (None,)) if f"{key}.{name}" in arrays else None for name in ASSIGNED
        )
        assert action is not None
        whole = Assignment(action, probability, available).filled(model.reward.typical)
        columns = dict(zip(ASSIGNED, (whole.action, whole.probability, whole.available), strict=True))
    return User(stored["name"], model.covariates, X, y, stored["ends"], **columns)


def _encode_history(
    history: tuple[SelectionStep, ...], model: LearntGraph, arrays: dict[str, NDArray[Any]]
) -> list[dict[str, Any]]:
    nodes = [node.composition for node in model.selectable]
    for name in ("log_evidence", "probabilities"):
        values = [[getattr(step, name).get(node, np.nan) for node in nodes] for step in history]
        arrays[f"history.{name}"] = np.array(values, dtype=np.float64).reshape(len(history), len(nodes))
    return [
        {
            "batch": step.batch,
            "rows": step.rows,
            "selected": nodes.index(step.composition),
            "candidates": [nodes.index(candidate) for candidate in step.log_evidence],
            "ranking": [nodes.index(node) for node in step.probabilities],
        }
        for step in history
    ]


def _decode_history(stored: list[Mapping[str, Any]], model: LearntGraph, arrays: Arrays) -> tuple[SelectionStep, ...]:
    layout = {"batch": int, "rows": int, "selected": int, "candidates": list[int], "ranking": list[int]}
    nodes = [node.composition for node in model.selectable]
    log_evidence = array(arrays, "history.log_evidence", (len(stored), len(nodes))).tolist()
    probabilities = array(arrays, "history.probabilities", (len(stored), len(nodes))).tolist()
    steps = []
    for t, step in enumerate(stored):
        conform(step, layout, f"step {t + 1} of its history")
        every = list(range(len(nodes)))
        if not {step["selected"], *step["candidates"]} <= set(every) or sorted(step["ranking"]) != every:
            raise Malformed(f"step {t + 1} of its history is not of the model's nodes")
        steps.append(
            SelectionStep(
                step["batch"],
                step["rows"],
                nodes[step["selected"]],
                {nodes[i]: log_evidence[t][i] for i in step["candidates"]},
                {nodes[i]: probabilities[t][i] for i in step["ranking"]},
            )
        )
    return tuple(steps)


def _decode_selected(stored: Any, steps: tuple[SelectionStep, ...], model: LearntGraph) -> tuple[int, ...]:
    """Files that hold every step do not count them."""
    if stored is None:
        return tuple(sum(step.composition == node.composition for step in steps) for node in model.selectable)
    conform(stored, list[int], "how often each node was selected")
    if len(stored) != len(model.selectable):
        raise Malformed(f"it counts selections of {len(stored)} nodes, the model has {len(model.selectable)}")
    return tuple(stored)
