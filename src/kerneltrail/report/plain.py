"""A model in plain values, and its nodes in words: for files and for terminals."""

from __future__ import annotations

from typing import Any

from kerneltrail.data import Scaler
from kerneltrail.data.units import in_data_units
from kerneltrail.kernels import Hyperparameters
from kerneltrail.report.words import Description, describe
from kerneltrail.trajectory.group import Node
from kerneltrail.trajectory.model import TrajectoryModel


def _scaler(model: TrajectoryModel) -> Scaler:
    # Scaled user by user, there is no common unit to return to.
    return model.schema.scaler or Scaler.identity(model.covariates)


def words_of(model: TrajectoryModel, node: Node) -> Description:
    """What a node says, in data units, at the centre of its group."""
    schema = model.schema
    return describe(
        Hyperparameters(node.composition, tuple(node.group.mean)),
        target=schema.target,
        units=schema.units,
        scale=_scaler(model),
        levels=schema.levels,
    )


def as_json(model: TrajectoryModel) -> dict[str, Any]:
    """A model in plain values; hyperparameters are the group's centre, in data units."""
    scaler = _scaler(model)
    told = model.diagnostics
    return {
        "target": model.schema.target,
        "covariates": list(model.covariates),
        "schema": model.schema.to_json(),
        "pool": {str(product): p for product, p in zip(model.pool.products, model.pool.probabilities, strict=True)},
        "settings": model.settings.to_json(),
        "nodes": [
            {
                "composition": node.composition.text,
                "users": list(node.users),
                "hyperparameters": dict(
                    in_data_units(Hyperparameters(node.composition, tuple(node.group.mean)), scaler)
                ),
                "words": [sentence.text for sentence in words_of(model, node)],
            }
            for node in model.nodes
        ],
        "edges": [
            {
                "parent": None if edge.parent is None else edge.parent.text,
                "child": edge.child.text,
                "count": edge.count,
                "total": edge.total,
            }
            for edge in model.edges
        ],
        "users": {name: [composition.text for composition in path] for name, path in model.table()},
        "structures": [
            {
                "log_joint": structure.log_joint,
                "nodes": structure.nodes,
                "edges": structure.edges,
                "visits": structure.visits,
                "paths": [[model.pool.composition(mask).text for mask in path] for path in structure.paths],
            }
            for structure in model.structures
        ],
        "diagnostics": {
            "chains": len(told.log_joint),
            "sweeps": told.sweeps,
            "rhat": dict(told.rhat),
            "ess": dict(told.ess),
            "acceptance": dict(told.acceptance),
            "seconds": dict(told.seconds),
        },
        "provenance": dict(model.provenance),
    }
