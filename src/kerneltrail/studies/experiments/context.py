"""Where an experiment runs: its folder, its seed, and the stages that are kept so that a stopped run goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from kerneltrail.engines import Engine
from kerneltrail.errors import DataError
from kerneltrail.evaluation import Evaluation
from kerneltrail.evaluation.result import EVALUATION
from kerneltrail.progress import Progress, Tell
from kerneltrail.store.atomic import check_writable, write
from kerneltrail.store.cache import JSON, KEY, Cache, Format
from kerneltrail.store.code import code_of
from kerneltrail.store.digest import code, content_digest, digest
from kerneltrail.store.document import read_json
from kerneltrail.trajectory.model import MODEL, TrajectoryModel
from kerneltrail.trajectory.sampler.chains import FitProgress

STAGES = "stages"
"""Folder of what is kept, inside the experiment's."""

KEPT = "kept from an earlier run"
"""What is said of a stage that was finished before."""

T = TypeVar("T")


@dataclass
class Context:
    """Where an experiment runs.

    Attributes:
        name: of the experiment.
        out: its folder.
        seed: of everything random.
        quick: whether a smaller version is wanted, of three minutes at most.
        data: the user's own copy of the data, where the experiment needs one.
        workers: processes, all cores if None; or the engine that runs the jobs.
        hear: called as stages go on.
        seconds: what each stage took, in the run that computed it; filled as stages finish.
    """

    name: str
    out: Path
    seed: int = 0
    quick: bool = False
    data: Path | None = None
    workers: Engine | int | None = None
    hear: Tell = lambda progress: None
    seconds: dict[str, float] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict, repr=False)
    _used: set[str] = field(default_factory=set, repr=False)

    def begin(self) -> None:
        """Refuse a folder that cannot be written, or that holds another experiment, before any work is done."""
        results = self.out / "results.json"
        check_writable(results)
        if not results.exists():
            return
        try:
            stored = read_json(results)["experiment"]
        except (DataError, KeyError, TypeError):
            stored = "something else"
        if stored != self.name:
            raise DataError(f"{self.out} holds the results of {stored}, not of {self.name}; name another folder")

    def tell(self, stage: str, done: int = 0, total: int | None = None, said: str = "") -> None:
        """Say how far a stage is."""
        self.hear(Progress(stage, done, total, said))

    def stage(
        self,
        name: str,
        compute: Callable[[], T],
        *,
        about: Mapping[str, Any] | None = None,
        format: Format[T] = JSON,
    ) -> T:
        """What `compute` returns, or what it returned in an earlier run with the same settings.

        Args:
            name: of the stage; a file name.
            compute: a function of a module (a lambda will do); it may call `tell`.
            about: all that the result depends on besides seed, data and code, as plain values.
            format: how the result is kept: `JSON` for plain values, `ARRAYS` for arrays by name.
        """
        return self._kept(name, self._named(name, compute, about), lambda folder: compute(), format)

    def model(
        self,
        name: str,
        learn: Callable[[Path, Callable[[FitProgress], None]], TrajectoryModel],
        *,
        about: Mapping[str, Any] | None = None,
        fits_of: str | None = None,
    ) -> TrajectoryModel:
        """A fitted model; a fit that was stopped halfway goes on from its checkpoint.

        Args:
            name: of the stage.
            learn: makes the model; gets a folder for its checkpoint, and whom to tell of progress.
            about: all that the model depends on besides seed, data and code, as plain values.
            fits_of: a model stage before this one with the same users, pool, priors, reward model and MAP settings,
                whose fits of candidates are used again.
        """
        # What is learnt does not depend on the methods that it is compared with, nor on how they are.
        entry = self._named(name, learn, about, layer="trajectory")

        def hear(progress: FitProgress) -> None:
            message = f"{progress.stage}{f', {progress.said}' if progress.said else ''}"
            self.hear(Progress(name, progress.done, progress.total, message, progress.bound))

        def compute(folder: Path) -> TrajectoryModel:
            if fits_of is not None:
                self._share(self._names[fits_of], entry)
            return learn(folder, hear)

        return self._kept(name, entry, compute, MODEL)

    def evaluation(
        self,
        name: str,
        measure: Callable[[Path, Tell], Evaluation],
        *,
        about: Mapping[str, Any] | None = None,
    ) -> Evaluation:
        """Methods evaluated; an evaluation that was stopped halfway goes on.

        Args:
            name: of the stage.
            measure: evaluates; gets a folder for what is finished, and whom to tell of progress.
            about: all that the evaluation depends on besides seed, data and code, as plain values.
        """
        return self._kept(
            name,
            self._named(name, measure, about),
            lambda folder: measure(folder, lambda now: self.hear(replace(now, stage=name))),
            EVALUATION,
        )

    def folder(self, name: str) -> Path:
        """A folder beside the stages for what several of them share, for these data, this seed and this code."""
        return self._cache.folder / self._legible(name, self._data(), code("evaluation"))

    def tidy(self) -> None:
        """Remove what older code, data or settings left of the stages of this run, at the same seed and size."""
        self._cache.tidy(self._used)

    @property
    def _cache(self) -> Cache:
        return Cache(self.out / STAGES)

    def _named(
        self, name: str, compute: Callable[..., Any], about: Mapping[str, Any] | None, layer: str = "evaluation"
    ) -> str:
        """The name of a stage's entry."""
        stage_code = code_of(compute, layer, by_module=True)
        return self._legible(name, self.name, name, self.seed, about or {}, self._data(), stage_code)

    def _legible(self, name: str, *depends: Any) -> str:
        """An entry's name: a key, after what runs may differ in without replacing each other's stages."""
        key = digest(*depends)[:KEY]
        entry = f"{self.name}-{name}-{self.seed}{'-quick' if self.quick else ''}-{key}"
        self._names[name] = entry
        self._used.add(entry)
        return entry

    def _data(self) -> str | None:
        return None if self.data is None else content_digest(self.data)

    def _work(self, entry: str) -> Path:
        """The folder in which a stage keeps what it has finished, to go on from it."""
        return self._cache.folder / f"{entry}.work"

    def _kept(self, name: str, entry: str, compute: Callable[[Path], T], format: Format[T]) -> T:
        """A stage's value: kept by an earlier run, or computed, kept and read back, so that both are alike."""
        stored = self._cache.get(entry, format)
        if stored is not None and isinstance(stored.facts.get("seconds"), float):
            value, seconds = stored.value, stored.facts["seconds"]
        else:
            stored = None
            self.tell(name)
            began = time.perf_counter()
            computed = compute(self._work(entry))
            seconds = time.perf_counter() - began
            value = self._cache.put(entry, computed, format, seconds=seconds)
        self.seconds[name] = seconds
        self.tell(name, 1, 1, f"{seconds:.1f} s{'' if stored is None else f', {KEPT}'}")
        return value

    def _share(self, other: str, entry: str) -> None:
        """Copy the fits of an earlier model stage to where this one reads its checkpoint; it takes those that apply."""
        fits, goal = (Cache(self._work(each)).log("fits").path for each in (other, entry))
        if fits.exists() and not goal.exists():
            write(goal, fits.read_bytes())
