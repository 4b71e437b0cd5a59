"""A followed user in one file: rows or the sums that replaced them, judges, probabilities and history.

It belongs to one model and does not hold it: thousands of users share one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import User
from kerneltrail.errors import ModelFileError
from kerneltrail.gp import OnlineState
from kerneltrail.gp.basis import Basis
from kerneltrail.kernels import Hyperparameters
from kerneltrail.store.container import Arrays, pack, read_bytes, unpack, write_bytes
from kerneltrail.trajectory.model import Node, TrajectoryModel
from kerneltrail.trajectory.model_file import fingerprint, reading
from kerneltrail.trajectory.new_user import NewUser, Step, UserState
from kerneltrail.trajectory.node_fit import Judge


def save_user(user: NewUser, path: str | os.PathLike[str]) -> None:
    """Keep a followed user in one file.

    Raises:
        ModelFileError: if it cannot be written; what stood there before is untouched then.
    """
    write_bytes(path, user_to_bytes(user))


def load_user(path: str | os.PathLike[str], model: TrajectoryModel) -> NewUser:
    """The user in a file, to be followed further on the same model: as if never stopped, bit for bit.

    Raises:
        ModelFileError: as for a model's file, and if the user was followed on another model.
    """
    return user_from_bytes(read_bytes(path), model, os.fspath(path))


def user_to_bytes(user: NewUser) -> bytes:
    """A followed user as the bytes of its file."""
    state = user.state
    arrays: dict[str, NDArray[Any]] = {"prior": state.prior, "weights": state.weights}
    content = {
        "model": fingerprint(user.model),
        "name": state.name,
        "selection": state.selection,
        "memory": state.memory,
        "refine": state.refine,
        "rows": state.rows,
        "batches": state.batches,
        "current": state.current,
        "judges": [_encode_judge(judge, f"judges.{i}", arrays) for i, judge in enumerate(state.judges)],
        "kept": _encode_rows(state.kept, arrays),
        "history": _encode_history(state.history, user.model, arrays),
    }
    return pack("user", content, arrays)


def user_from_bytes(data: bytes, model: TrajectoryModel, shown: str = "the user") -> NewUser:
    """The user of a file's bytes; `shown` is what messages call it."""
    content, arrays = unpack(data, "user", shown)
    if content.get("model") != fingerprint(model):
        raise ModelFileError(f"{shown} holds a user who was followed on another model than this one")
    with reading(shown):
        empirical = model.settings.evidence == "empirical"
        state = UserState(
            name=content["name"],
            selection=content["selection"],
            memory=content["memory"],
            refine=content["refine"],
            rows=content["rows"],
            batches=content["batches"],
            history=_decode_history(content["history"], model, arrays),
            judges=tuple(
                _decode_judge(stored, node, empirical, model, f"judges.{i}", arrays)
                for i, (stored, node) in enumerate(zip(content["judges"], model.nodes, strict=True))
            ),
            kept=_decode_rows(content["kept"], model, arrays),
            prior=arrays["prior"],
            weights=arrays["weights"],
            current=content["current"],
        )
        return NewUser.resume(model, state)


def _encode_judge(judge: Judge, place: str, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    arrays[f"{place}.theta"] = judge.theta
    if judge.precision is not None:
        arrays[f"{place}.precision"] = judge.precision
    stored: dict[str, Any] = {"log_evidence": judge.log_evidence, "refined": judge.refined, "online": None}
    if judge.online is not None:
        online = judge.online
        arrays[f"{place}.gram"] = online.gram
        arrays[f"{place}.basis"] = online.basis.hyperparameters.vector
        arrays[f"{place}.box"] = np.array([online.basis.low, online.basis.high])
        if online.linear is not None:
            arrays[f"{place}.linear"] = online.linear
        stored["online"] = {
            "rows": online.rows,
            "tol": online.basis.tol,
            "max_rank": online.max_rank,
            "widening_error": online.widening_error,
        }
    return stored


def _decode_judge(
    stored: Mapping[str, Any], node: Node, empirical: bool, model: TrajectoryModel, place: str, arrays: Arrays
) -> Judge:
    online = None
    kept = stored["online"]
    if kept is not None:
        low, high = arrays[f"{place}.box"].tolist()
        basis = Basis(
            Hyperparameters(node.composition, tuple(arrays[f"{place}.basis"].tolist())),
            model.covariates,
            tuple(low),
            tuple(high),
            kept["tol"],
        )
        online = OnlineState(
            basis,
            arrays.get(f"{place}.linear"),
            arrays[f"{place}.gram"],
            kept["rows"],
            kept["max_rank"],
            kept["widening_error"],
        )
    return Judge(
        node,
        empirical,
        arrays[f"{place}.theta"],
        stored["log_evidence"],
        arrays.get(f"{place}.precision"),
        stored["refined"],
        online,
    )


def _encode_rows(kept: User | None, arrays: dict[str, NDArray[Any]]) -> dict[str, Any] | None:
    if kept is None:
        return None
    arrays["kept.X"], arrays["kept.y"] = kept.X, kept.y
    if kept.action is not None:
        arrays["kept.action"] = kept.action
    return {"name": kept.name, "ends": list(kept.ends)}


def _decode_rows(stored: Mapping[str, Any] | None, model: TrajectoryModel, arrays: Arrays) -> User | None:
    if stored is None:
        return None
    return User(
        stored["name"], model.covariates, arrays["kept.X"], arrays["kept.y"], stored["ends"], arrays.get("kept.action")
    )


def _encode_history(
    history: tuple[Step, ...], model: TrajectoryModel, arrays: dict[str, NDArray[Any]]
) -> list[dict[str, Any]]:
    nodes = [node.composition for node in model.nodes]
    shape = (len(history), len(nodes))
    arrays["history.log_evidence"] = np.array(
        [[step.log_evidence.get(node, np.nan) for node in nodes] for step in history], dtype=np.float64
    ).reshape(shape)
    arrays["history.probabilities"] = np.array(
        [[step.probabilities[node] for node in nodes] for step in history], dtype=np.float64
    ).reshape(shape)
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


def _decode_history(stored: list[Mapping[str, Any]], model: TrajectoryModel, arrays: Arrays) -> tuple[Step, ...]:
    nodes = [node.composition for node in model.nodes]
    log_evidence = arrays["history.log_evidence"].tolist()
    probabilities = arrays["history.probabilities"].tolist()
    return tuple(
        Step(
            step["batch"],
            step["rows"],
            nodes[step["selected"]],
            {nodes[i]: log_evidence[t][i] for i in step["candidates"]},
            {nodes[i]: probabilities[t][i] for i in step["ranking"]},
        )
        for t, step in enumerate(stored)
    )
