"""Where an experiment runs: its folder, its seed, and the stages that are kept so that a stopped run goes on."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from kerneltrail.errors import DataError
from kerneltrail.evaluation import Evaluation, Progress, load_evaluation
from kerneltrail.store.atomic import check_writable, write
from kerneltrail.store.digest import code_of, content_digest, library
from kerneltrail.studies.experiments.store import JSON, Codec, key_of, superseded
from kerneltrail.trajectory.model import TrajectoryModel, load
from kerneltrail.trajectory.sampler.chains import FitProgress

STAGES = "stages"
"""Folder of what is kept, inside the experiment's."""


@dataclass(frozen=True)
class Told:
    """How far a stage is.

    Attributes:
        stage: its name.
        done, total: steps; total is 0 where nobody knows how many there will be.
        said: what is being done.
        kept: whether the stage was finished by an earlier run.
    """

    stage: str
    done: int = 0
    total: int = 0
    said: str = ""
    kept: bool = False


@dataclass
class Context:
    """Where an experiment runs.

    Attributes:
        name: of the experiment.
        out: its folder.
        seed: of everything random.
        quick: whether a smaller version is wanted, of three minutes at most.
        data: the user's own copy of the data, where the experiment needs one.
        workers: processes.
        hear: called as stages go on.
        seconds: what each stage took, in the run that computed it; filled as stages finish.
    """

    name: str
    out: Path
    seed: int = 0
    quick: bool = False
    data: Path | None = None
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    hear: Callable[[Told], None] = lambda told: None
    seconds: dict[str, float] = field(default_factory=dict)
    _checkpoints: dict[str, Path] = field(default_factory=dict, repr=False)
    _used: set[str] = field(default_factory=set, repr=False)

    def begin(self) -> None:
        """Refuse a folder that cannot be written, or that holds another experiment, before any work is done."""
        results = self.out / "results.json"
        check_writable(results)
        try:
            held = json.loads(results.read_text(encoding="utf-8")).get("experiment")
        except FileNotFoundError:
            return
        except (ValueError, AttributeError):
            held = "something else"
        if held != self.name:
            raise DataError(f"{self.out} holds the results of {held}, not of {self.name}; name another folder")

    def tell(self, stage: str, done: int = 0, total: int = 0, said: str = "") -> None:
        """Say how far a stage is."""
        self.hear(Told(stage, done, total, said))

    def stage(
        self,
        name: str,
        compute: Callable[[], Any],
        *,
        about: Mapping[str, Any] | None = None,
        codec: Codec = JSON,
    ) -> Any:
        """What `compute` returns, or what it returned in an earlier run with the same settings.

        Args:
            name: of the stage; a file name.
            compute: a function of a module (a lambda will do); it may call `tell`.
            about: all that the result depends on besides seed, data and code, as plain values.
            codec: how the result is kept: `JSON` for plain values, `ARRAYS` for arrays by name.
        """
        stored = self._file(name, compute, about, codec.suffix)
        kept = self._finished(stored, lambda path: codec.load(path.read_bytes()))
        if kept is not None:
            self._done(name, kept[1], kept=True)
            return kept[0]
        self.tell(name)
        began = time.perf_counter()
        data = codec.save(compute())
        seconds = time.perf_counter() - began
        self._keep(stored, data, seconds)
        self._done(name, seconds)
        return codec.load(data)

    def model(
        self,
        name: str,
        learn: Callable[[Path, Callable[[FitProgress], None]], TrajectoryModel],
        *,
        about: Mapping[str, Any] | None = None,
        fits_of: str | None = None,
    ) -> TrajectoryModel:
        """A fitted model, kept as a model file; a fit that was stopped halfway goes on from its checkpoint.

        Args:
            name: of the stage.
            learn: makes the model; gets a folder for its checkpoint, and whom to tell of progress.
            about: all that the model depends on besides seed, data and code, as plain values.
            fits_of: a model stage before this one with the same users, pool, priors, reward model and MAP settings,
                whose fits of candidates are used again.
        """
        stored = self._file(name, learn, about, "trail")
        checkpoint = self._checkpoints[name] = stored.with_suffix(".fit")
        kept = self._finished(stored, load)
        if kept is not None:
            self._done(name, kept[1], kept=True)
            return kept[0]
        if fits_of is not None:
            self._share(fits_of, checkpoint)

        def hear(progress: FitProgress) -> None:
            said = {"fits": "fitting candidates", "chains": "sampling paths"}.get(progress.stage, progress.stage)
            self.tell(name, progress.done, progress.total, said)

        self.tell(name)
        began = time.perf_counter()
        made = learn(checkpoint, hear)
        seconds = time.perf_counter() - began
        made.save(stored)
        self._keep(stored, None, seconds)
        self._done(name, seconds)
        return load(stored)

    def evaluation(
        self,
        name: str,
        measure: Callable[[Path, Callable[[Progress], None]], Evaluation],
        *,
        about: Mapping[str, Any] | None = None,
    ) -> Evaluation:
        """Methods evaluated, kept as a folder of tables; an evaluation that was stopped halfway goes on.

        Args:
            name: of the stage.
            measure: evaluates; gets a folder for finished pieces, and whom to tell of progress.
            about: all that the evaluation depends on besides seed, data and code, as plain values.
        """
        stored = self._file(name, measure, about, "evaluation")
        kept = self._finished(stored, load_evaluation)
        if kept is not None:
            self._done(name, kept[1], kept=True)
            return kept[0]
        self.tell(name)
        began = time.perf_counter()
        made = measure(
            stored.with_suffix(".pieces"),
            lambda progress: self.tell(name, progress.done, progress.total, progress.said),
        )
        seconds = time.perf_counter() - began
        made.save(stored)
        self._keep(stored, None, seconds)
        self._done(name, seconds)
        return load_evaluation(stored)

    def folder(self, name: str) -> Path:
        """A folder beside the stages for what several of them share, for these data, this seed and this code."""
        return self._place(name, {"data": self._data(), "code": library()})

    def tidy(self) -> None:
        """Remove what older code, data or settings left of the stages of this run, at the same seed and size."""
        superseded(self.out / STAGES, self._used)

    def _file(self, name: str, compute: Callable[..., Any], about: Mapping[str, Any] | None, suffix: str) -> Path:
        depends = {
            "experiment": self.name,
            "stage": name,
            "seed": self.seed,
            "about": dict(about or {}),
            "data": self._data(),
            "code": code_of(compute),
        }
        place = self._place(name, depends)
        return place.with_name(f"{place.name}.{suffix}")

    def _place(self, name: str, depends: Mapping[str, Any]) -> Path:
        """Without an ending; what is legible in it, runs may differ in without replacing each other's stages."""
        stem = f"{self.name}-{name}-{self.seed}{'-quick' if self.quick else ''}-{key_of(depends)}"
        self._used.add(stem)
        return self.out / STAGES / stem

    def _data(self) -> str | None:
        return None if self.data is None else content_digest(self.data)

    def _finished(self, stored: Path, read: Callable[[Path], Any]) -> tuple[Any, float] | None:
        """Value and seconds of a finished stage; None where there is none, or its files are damaged."""
        try:
            seconds = float(json.loads(_seal(stored).read_bytes())["seconds"])
            return read(stored), seconds
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile):
            return None  # compute it again

    def _keep(self, stored: Path, data: bytes | None, seconds: float) -> None:
        if data is not None:
            write(stored, data)
        write(_seal(stored), json.dumps({"seconds": seconds}))  # last: its presence says that the stage is finished

    def _done(self, name: str, seconds: float, *, kept: bool = False) -> None:
        self.seconds[name] = seconds
        self.hear(Told(name, 1, 1, f"{seconds:.1f} s", kept=kept))

    def _share(self, other: str, checkpoint: Path) -> None:
        """Put the fits of a model stage before this one where a checkpoint is read from; it takes those that fit."""
        fits, goal = self._checkpoints[other] / "fits.jsonl", checkpoint / "fits.jsonl"
        if fits.exists() and not goal.exists():
            write(goal, fits.read_bytes())


def _seal(stored: Path) -> Path:
    return stored.with_name(f"{stored.name}.done")
