"""What a page says of each node of a trajectory model: words, hyperparameters in data units, who passed, where to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from kerneltrail.data import in_data_units
from kerneltrail.kernels import Hyperparameters
from kerneltrail.kernels.hyperparameters import Slot
from kerneltrail.kernels.phrases import number, quantity, singular
from kerneltrail.report.graph import name_of
from kerneltrail.report.model_text import common_scaler, describe_node, node_noun
from kerneltrail.trajectory.graph import Node
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.sampler.urn import ROOT


@dataclass(frozen=True)
class Value:
    """One hyperparameter of a node or its noise, as people read it: the pilot users' centre, with its unit.

    The spread is the range that holds 90 % of users like them.
    """

    part: str
    name: str
    centre: str
    spread: str


@dataclass(frozen=True)
class Way:
    """An arrow out of a node: `label` is "2/3"; `to` is the number of its box in the graph."""

    to: int
    name: str
    label: str
    stays: bool


@dataclass(frozen=True)
class Fact:
    """What is said of a box of the graph; number 0 is the root, number i + 1 the model's node i.

    Attributes:
        number: of the box.
        name: the composition in text.
        noun: the composition in words; of the root, where it is.
        key: whether it is one of the key compositions.
        words: sentences in data units; of the root, what it is.
        values: hyperparameters.
        passed: pilot users with the batches at which they were there.
        ways: arrows out of it.
    """

    number: int
    name: str
    noun: str
    key: bool
    words: tuple[str, ...]
    values: tuple[Value, ...]
    passed: tuple[tuple[str, str], ...]
    ways: tuple[Way, ...]


def facts(model: TrajectoryModel, key: Sequence[int]) -> tuple[Fact, ...]:
    """One for every box of the graph, the root's first; `key` holds the numbers of the key boxes."""
    start = ("Where every user starts, before the first batch of rows.",)
    boxes = [Fact(0, "root", "the start", False, start, (), (), _ways(model, ROOT))]
    for box, node in enumerate(model.nodes, start=1):
        passed = tuple(
            (name, batches([t for t, mask in enumerate(path, start=1) if mask == node.mask]))
            for name, path in zip(model.users, model.paths, strict=True)
            if node.mask in path
        )
        name, words = name_of(node.composition), tuple(map(str, describe_node(model, node)))
        ways = _ways(model, node.mask)
        noun = node_noun(model, node)
        boxes.append(Fact(box, name, noun, box in key, words, _values(model, node), passed, ways))
    return tuple(boxes)


def _ways(model: TrajectoryModel, mask: int) -> tuple[Way, ...]:
    numbers = {node.mask: i + 1 for i, node in enumerate(model.nodes)}
    row = model.counts.rows.get(mask, {})
    total = sum(row.values())
    order = sorted(row.items(), key=lambda item: (-item[1], numbers[item[0]]))
    return tuple(
        Way(numbers[child], name_of(model.pool.composition(child)), f"{count}/{total}", child == mask)
        for child, count in order
    )


def _values(model: TrajectoryModel, node: Node) -> tuple[Value, ...]:
    group, scaler = node.group, common_scaler(model)
    centre, low, high = (
        in_data_units(Hyperparameters(node.composition, tuple(theta)), scaler)
        for theta in (group.mean, *group.interval(0.9, model.priors))
    )
    return tuple(
        _value(model, node, slot, *(values[slot.name] for values in (centre, low, high)))
        for slot in centre.layout.slots
    )


def _value(model: TrajectoryModel, node: Node, slot: Slot, *values: float) -> Value:
    """One hyperparameter, from its centre and the ends of its range."""
    units = model.schema.units
    if slot.covariate is not None:
        unit = units.get(slot.covariate, "") if slot.spec.unit != "none" else ""
        part = slot.name.rpartition(".")[0].rpartition(": ")[2]
        name = {"location": "centre"}.get(slot.spec.name, slot.spec.name)
        text = quantity(values[0], unit)
    else:
        # Variances are said as standard deviations, which have the target's unit.
        values = tuple(map(sqrt, values))
        product = node.composition.products[slot.product] if slot.product >= 0 else None
        linear = [atom.covariate for atom in product.atoms if atom.spec.linear] if product else []
        per = "".join(f" per {singular(units.get(name, '')) or name}" for name in linear)
        part, name = str(product or "noise"), "typical slope" if linear else "typical size"
        text = f"±{quantity(values[0], units.get(model.schema.target, ''))}{per}"
    return Value(part, name, text, f"{number(values[1])} to {number(values[2])}")


def batches(numbers: Sequence[int]) -> str:
    """Numbers of batches, with runs drawn together.

    >>> batches([2]), batches([1, 2, 3, 6])
    ('batch 2', 'batches 1–3, 6')
    """
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][-1] + 1:
            runs[-1][-1] = n
        else:
            runs.append([n, n])
    listed = ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in runs)
    return f"{'batch' if len(numbers) == 1 else 'batches'} {listed}"
